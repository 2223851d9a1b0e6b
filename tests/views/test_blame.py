"""Who made it busy, in words and pictures: sentences against the numbers beside them, keys, gaps."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iolens.analyses.blame import Blame, BlameCoverage, BusyTarget, BusyTick, WhoShare
from iolens.units import from_epoch_us
from iolens.views import blame as figures
from iolens.views import blame as tables
from iolens.views import blame as words
from iolens.views.render import tables as t
from iolens.views.render.figures import BandMark, LineMark, Rule, draw
from tests.views.documented import undocumented

S = 1_000_000


def share(name: str, share_pct: float, moved: int, *, is_known: bool = True) -> WhoShare:
    return WhoShare(name, 1, share_pct, share_pct, moved, 0, 10, 5, "ana", "wrf", is_known)


COVERAGE = BlameCoverage(2, 2, [], 10, 0.0, 0.0, 3, 1, 0, 0, ["test"], 0, ["disks"], [])
RESULT = Blame(
    filesystem="scratch",
    window_start=from_epoch_us(0),
    window_end=from_epoch_us(600 * S),
    by="job",
    method="job_stats",
    basis="disk",
    disk_seconds=100.0,
    metadata_operations=None,
    fsu_pct=40.0,
    unattributed_pct=10.0,
    scale_factor=0.98,
    saturation_fsu_pct=90.0,
    bucket_s=60,
    who=[share("7", 70.0, 100), share("8", 20.0, 900)],
    others=None,
    series=[BusyTick(from_epoch_us(60 * minute * S), 40.0, {"7": 70.0, "8": 20.0}, 10.0) for minute in (0, 1, 2, 6, 7)],
    targets=[BusyTarget(f"scratch-OST000{n}", 50.0, None, {"7": 70.0, "8": 20.0}, 10.0) for n in range(2)],
    coverage=COVERAGE,
)


def test_every_key_is_documented() -> None:
    assert undocumented(Blame, "blame.md") == []


def test_disk_time_is_set_beside_bytes() -> None:
    assert words.verdict(RESULT) == (
        "Job 7 (ana, wrf) took 70.0 % of the disk time, but moved 10.0 % of the bytes that jobs moved."
    )
    even = replace(RESULT, who=[share("7", 70.0, 700), share("8", 20.0, 200)])
    assert "and moved 77.8 % of the bytes" in words.verdict(even)


def test_an_overlap_is_never_called_a_cause() -> None:
    by_overlap = replace(RESULT, method="overlap")
    text = f"{words.verdict(by_overlap)} {words.method(by_overlap)}"
    assert "is associated with" in text
    assert "association, not cause" in text
    assert "took" not in text


def test_an_unknown_id_is_called_an_id_and_nobody_is_nobody() -> None:
    unknown = replace(RESULT, who=[share("x.y", 70.0, 1, is_known=False)])
    assert words.verdict(unknown).startswith("Id x.y")
    assert words.verdict(replace(RESULT, who=[])) == "No disk time of this window belongs to a job."


def test_what_weakens_the_answer_is_said() -> None:
    weak = replace(
        RESULT,
        unattributed_pct=45.0,
        coverage=replace(
            COVERAGE, targets_without_job_stats=["a"], assumed_pct=3.0, unmeasured_pct=4.0, incomplete_ids=2,
            contradictory_ids=1,
        ),
    )  # fmt: skip
    text = t.to_terminal(tables.tables(weak), None)
    for said in ("45.0 % of the disk time is unattributed", "no job_stats of 1 target", "for 3.0 % one disk I/O",
                 "for 4.0 % the requests of the jobs", "2 job ids cut short", "1 job id with records"):  # fmt: skip
        assert said in text
    assert words.warnings(RESULT) == ()


def test_shares_are_stacked_up_to_the_level_and_break_at_gaps() -> None:
    panel = figures.shares(RESULT).panels[0]
    bands = [mark for mark in panel.marks if isinstance(mark, BandMark)]
    assert [band.label for band in bands] == ["7 ana", "8 ana", "unattributed"]
    assert np.nanmax(bands[0].high) == pytest.approx(28.0)
    for below, above in itertools.pairwise(bands):
        np.testing.assert_allclose(below.high, above.low)
    line = next(mark for mark in panel.marks if isinstance(mark, LineMark))
    np.testing.assert_allclose(bands[-1].high, line.y)
    assert np.isnan(line.y).sum() == 1
    assert any(isinstance(mark, Rule) and mark.text == "saturated" for mark in panel.marks)


OPERATIONS = replace(
    RESULT,
    basis="metadata",
    disk_seconds=None,
    fsu_pct=None,
    metadata_operations=5000,
    series=[BusyTick(from_epoch_us(0), None, {"9": 90.0}, 10.0)],
    who=[replace(share("9", 90.0, 0), disk_seconds=None, metadata_operations=4500)],
    targets=[BusyTarget("scratch-MDT0000", None, 5000, {"9": 90.0}, 10.0)],
)


def test_operations_without_a_cost_are_called_operations() -> None:
    """Also on the targets, in the sum and in what is nobody's."""
    views = {table.name: table for table in tables.tables(OPERATIONS)}
    text = t.to_terminal(list(views.values()), None)
    assert "Server time" not in text
    assert "Disk time" not in text
    for name in ("shares", "targets", "summary"):
        assert "metadata_operations" in [column.name for column in views[name].columns]
        assert "disk_seconds" not in [column.name for column in views[name].columns]
    assert views["targets"].rows == [("scratch-MDT0000", 5000, "9", 90.0, 10.0)]
    place = [column.name for column in views["shares"].columns].index("metadata_operations")
    assert views["shares"].rows[-1][place] == 500
    heat = figures.targets(OPERATIONS).panels[0].marks[0]
    assert (heat.label, heat.values.sum()) == ("operations", pytest.approx(5000))
    assert "Server time" in t.to_terminal(tables.tables(replace(RESULT, basis="metadata")), None)


@pytest.mark.parametrize("result", [RESULT, replace(RESULT, series=[], targets=[]), replace(RESULT, basis="metadata")])
def test_figures_are_drawn(result: Blame, tmp_path: Path) -> None:
    for name, make in figures.figures(result).items():
        for suffix in ("png", "html"):
            draw(make(), tmp_path / f"{name}.{suffix}")
            assert (tmp_path / f"{name}.{suffix}").stat().st_size > 5_000
