"""Metadata capacity: published values, the knee, prices, huge files, keys."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from iolens.analyses.contents.scans import InodeSizes, sizes_of_rows
from iolens.errors import UsageError
from iolens.models.dom import METHODS
from iolens.plans.cases import between, value
from iolens.plans.metadata import MetadataPlan, Prices, StripeLayout, plan_metadata
from iolens.sources import ReadOptions
from iolens.views.render.json_text import to_plain
from tests.sources.stored import items_of, rows_of

TIB = 1 << 40
PB30 = value("capacity_bytes", 30e15, "test")
MADE_UP = {0: 40, 1024: 300, 4096: 900, 65536: 500, 1 << 20: 200, 1 << 26: 60, 1 << 30: 9}
PRICES = Prices(400.0, 100.0, StripeLayout(5, 5), StripeLayout(8, 2))


def made_up(files: dict[int, int] = MADE_UP, **others: dict[int, int]) -> InodeSizes:
    """Sizes by the upper end of power-of-two bins."""
    rows: list[dict[str, Any]] = []
    for kind, bins in {"file": files, **others}.items():
        rows += [
            {"histogram": "size", "inode_type": kind, "bin_from": end // 2 if end else None, "bin": end, "count": count}
            for end, count in bins.items()
        ]
    return sizes_of_rows(rows, "made up")


@pytest.fixture(scope="module")
def cori(shared_data: Path) -> MetadataPlan:
    path = shared_data / "fsstats" / "cscratch_20190115_sizebytype_hist.csv"
    rows = rows_of(items_of("size-histogram", path, ReadOptions("cscratch")), "contents")
    return plan_metadata(sizes_of_rows(rows, "file"), PB30, [65536, 1 << 20], methods=METHODS)


@pytest.mark.parametrize(
    ("s0", "method", "low", "avg", "high"),
    [
        (1 << 20, "paper", 130.0, 307.6, 805.5),
        (1 << 20, "tight", 201.8, 307.6, 517.9),
        (65536, "paper", 18.4, 45.6, 126.6),
        (65536, "tight", 31.7, 45.6, 73.4),
    ],
)
def test_dom_of_the_published_file_system(
    cori: MetadataPlan, s0: int, method: str, low: float, avg: float, high: float
) -> None:
    (item,) = [threshold for threshold in cori.thresholds if (threshold.dom_bytes, threshold.method) == (s0, method)]
    result = (item.dom_min_bytes, item.dom_avg_bytes, item.dom_max_bytes)
    assert [round(amount / TIB, 1) for amount in result if amount is not None] == [low, avg, high]


def test_inodes_of_the_published_file_system(cori: MetadataPlan) -> None:
    averages = {threshold.method: round((threshold.inode_avg_bytes or 0) / TIB, 2) for threshold in cori.thresholds}
    assert averages == {"tight": 6.24, "paper": 6.14}


def test_19_in_20_files_hold_about_a_twentieth_of_the_bytes(cori: MetadataPlan) -> None:
    assert cori.small_files is not None
    assert 95 <= cori.small_files.files_pct < 97
    assert cori.small_files.bytes_pct == pytest.approx(5, abs=0.5)


def test_two_huge_files_are_named(cori: MetadataPlan) -> None:
    (huge,) = cori.huge_files
    assert (huge.count, huge.to_bytes) == (2, 1 << 49)
    assert huge.bytes_pct == pytest.approx(3.3, abs=0.05)
    assert any("2 files of 256 TiB to 512 TiB carry 3.3 % of all bytes" in note for note in cori.notes)


def test_doubling_from_half_a_pebibyte_allows_four_times_the_threshold(cori: MetadataPlan) -> None:
    """What the paper reads off its Fig. 6."""
    reached = {
        goal: max(item.dom_bytes for item in cori.curve or [] if (item.total_avg_bytes or math.inf) <= goal)
        for goal in (512 * TIB, 1200 * TIB)
    }
    assert reached[1200 * TIB] == 4 * reached[512 * TIB]


def test_totals_are_sums_and_the_average_is_inside() -> None:
    for threshold in plan_metadata(made_up(dir={4096: 50, 1 << 22: 1}), PB30, [4096, 5000], methods=METHODS).thresholds:
        for end in ("min", "avg", "max"):
            parts = getattr(threshold, f"dom_{end}_bytes") + getattr(threshold, f"inode_{end}_bytes")
            assert getattr(threshold, f"total_{end}_bytes") == pytest.approx(parts, abs=2)
        assert threshold.total_min_bytes < threshold.total_avg_bytes < threshold.total_max_bytes  # type: ignore[operator]
        assert threshold.total_ci95 is not None
        assert threshold.total_ci95[0] < threshold.total_avg_bytes < threshold.total_ci95[1]  # type: ignore[operator]


def test_the_knee_is_one_of_the_curve_and_flat_curves_have_none() -> None:
    plan = plan_metadata(made_up(), PB30, prices=PRICES)
    assert plan.knee is not None
    assert plan.undecided is None
    assert plan.knee.dom_bytes == 1 << 20  # beyond it, 69 files of 2,009 hold nearly all bytes
    curve = plan.curve or []
    low, high = (end([item.cost_avg or 0.0 for item in curve]) for end in (min, max))
    ahead = [
        item.files_whole_pct / 100 - ((item.cost_avg or 0.0) - low) / (high - low)
        for item in curve
        if item.dom_bytes in (1 << 19, 1 << 20, 1 << 21)
    ]
    assert ahead[1] == max(ahead)
    assert plan_metadata(made_up({4096: 5}), PB30, prices=PRICES).knee is None


def test_without_prices_no_knee_decides_anything() -> None:
    plan = plan_metadata(made_up(), PB30)
    assert plan.knee is None
    assert plan.undecided is not None
    assert "the price of a raw TB on MDTs (cost-mdt) and on OSTs (cost-ost)" in plan.undecided
    assert plan_metadata(made_up(), PB30, [65536]).undecided is None  # there is nothing to choose among


def test_prices_count_raw_terabytes_of_both_kinds() -> None:
    (item,) = plan_metadata(made_up(), PB30, [65536], prices=PRICES).thresholds
    assert item.total_avg_bytes is not None
    assert item.dom_avg_bytes is not None
    mdt, ost = item.total_avg_bytes * 2.0 * 400, (30e15 - item.dom_avg_bytes) * 1.25 * 100
    assert item.cost_avg == pytest.approx((mdt + ost) / 1e12, rel=1e-9)
    assert item.cost_over_inodes_only == pytest.approx(item.dom_avg_bytes * (2 * 400 - 1.25 * 100) / 1e12, rel=1e-6)
    assert item.cost_min is not None
    assert item.cost_max is not None
    assert item.cost_min < item.cost_avg < item.cost_max  # type: ignore[operator]


def test_a_range_of_capacities() -> None:
    wide = plan_metadata(made_up(), between("capacity_bytes", 22e15, 30e15, "test"), [65536]).thresholds[0]
    narrow = plan_metadata(made_up(), value("capacity_bytes", 26e15, "test"), [65536]).thresholds[0]
    assert wide.dom_avg_bytes == narrow.dom_avg_bytes
    assert wide.dom_min_bytes == pytest.approx((narrow.dom_min_bytes or 0) * 22 / 26, rel=1e-9)
    assert wide.dom_max_bytes == pytest.approx((narrow.dom_max_bytes or 0) * 30 / 26, rel=1e-9)


def test_keys_of_the_result() -> None:
    plain = to_plain(plan_metadata(made_up(dir={4096: 3}), PB30))
    assert [item["dom_bytes"] for item in plain["thresholds"]] == [65536, 1 << 20]
    wanted = [f"{part}_{end}_bytes" for part in ("dom", "inode", "total") for end in ("min", "avg", "max")]
    assert list(plain["thresholds"][0])[:11] == ["dom_bytes", "method", *wanted]
    assert all(isinstance(plain["thresholds"][0][name], int) for name in wanted)
    priced = to_plain(plan_metadata(made_up(), PB30, prices=PRICES))
    assert list(priced["knee"])[:11] == ["dom_bytes", "method", *wanted]
    assert "cost_avg" not in plain["thresholds"][0]
    assert "curve" not in plain
    assert {item["name"]: item["origin"] for item in plain["inputs"]}["files"] == "made up"


def test_what_the_published_way_cannot_say_is_null() -> None:
    rows = [{"histogram": "size", "inode_type": "file", "bin_from": None, "bin": 4096, "count": 5, "bytes": 9000}]
    plan = plan_metadata(sizes_of_rows(rows, "coarse"), PB30, [1024], methods=METHODS)
    tight, paper = plan.thresholds
    assert tight.dom_avg_bytes is not None
    assert (paper.dom_min_bytes, paper.dom_max_bytes, paper.inode_max_bytes, paper.capacity_pct) == (None,) * 4


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(UsageError, match="capacity above 0"):
        plan_metadata(made_up(), value("capacity_bytes", 0, "test"))
    with pytest.raises(UsageError, match="thresholds"):
        plan_metadata(made_up(), PB30, [])
    with pytest.raises(UsageError, match="no file holds a byte"):
        plan_metadata(made_up({0: 7}), PB30)


def test_only_files_are_said_to_be_only_files() -> None:
    assert any("only files are counted" in note for note in plan_metadata(made_up(), PB30).notes)
    assert not any("only files" in note for note in plan_metadata(made_up(dir={4096: 1}), PB30).notes)
