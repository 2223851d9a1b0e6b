"""`iolens workload`: sections, formats, figures, options and errors."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from iolens.store.store import Store
from tests.analyses.workload_rows import made_up_centre
from tests.cli.command import iolens

KEYS = [
    "resolution", "days_only_in_rollups",
    "filesystem", "window_start", "window_end", "tick_s", "samples", "sections", "targets", "aggregate", "peak_vs_sum",
    "models", "sizes", "size_peaks", "size_bandwidth", "rhythm", "throughput", "censored_idle", "maintenance",
    "maintenance_left_out", "coverage",
]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    opened = Store(folder)
    for name, table in made_up_centre(1, targets=3, ticks=2400, tick_s=5.0).tables.items():
        opened.append(name, table)
    return folder


def asked(store: Path, *arguments: object) -> dict:
    done = iolens("workload", *arguments, "--store", store, "--bootstrap", "0", "--format", "json")
    assert done.code == 0, done.err
    assert "NaN" not in done.out
    return json.loads(done.out)


def test_json_has_the_documented_keys_in_order(store: Path) -> None:
    result = asked(store)
    assert list(result) == KEYS
    assert result["sections"] == ["bandwidth", "mix", "sizes", "arrivals", "idle", "rhythm", "throughput"]
    assert len(result["models"]) == 6
    assert result["models"]["read_bandwidth"]["mle"]["p_value"] is None


def test_sections_alone_and_together(store: Path) -> None:
    result = asked(store, "rhythm", "throughput", "--timezone", "Asia/Tokyo", "--peak", "1GB/s")
    assert result["sections"] == ["rhythm", "throughput"]
    assert result["models"] == {}
    assert result["rhythm"]["timezone"] == "Asia/Tokyo"
    assert result["throughput"]["peak_bytes_per_s"] == 1e9
    assert result["throughput"]["peak_origin"] == "given"


def test_sizes_are_given_by_a_store_that_holds_nothing_else(store: Path, tmp_path: Path) -> None:
    opened = Store(tmp_path)
    for name, table in made_up_centre(1, targets=3, ticks=2400, tick_s=5.0).tables.items():
        if name != "target_io":
            opened.append(name, table)
    result, whole = asked(tmp_path, "sizes"), asked(store, "sizes")
    assert (result["sizes"], result["size_peaks"]) == (whole["sizes"], whole["size_peaks"])
    assert (result["tick_s"], result["coverage"]["targets_reporting"]) == (60.0, 3)
    assert "no target tells its bytes: sizes alone are known" in result["coverage"]["notes"]
    done = iolens("workload", "sizes", "--store", tmp_path, "--bootstrap", "0")
    assert (done.code, "no target tells its bytes" in done.out + done.err) == (0, True)


def test_p_values_and_weights_on_request(store: Path) -> None:
    done = iolens(
        "workload", "arrivals", "--store", store, "--bootstrap", "5", "--weight", "requests", "--format", "json"
    )
    weighted, plain = json.loads(done.out), asked(store, "arrivals")
    for name, model in weighted["models"].items():
        assert 0 <= model["mle"]["p_value"] <= 1
        assert model["samples"] > plain["models"][name]["samples"]


def test_a_table_for_people_and_figures(store: Path, tmp_path: Path) -> None:
    base = ("workload", "--store", store, "--bootstrap", "0")
    done = iolens(*base, "--top", "2", "--figure", tmp_path / "a.png", "--figure", f"mix={tmp_path / 'b.html'}")
    assert done.code == 0, done.err
    assert "The 2 of 3 targets that moved most" in done.out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "b.html").read_bytes().startswith(b"<!DOCTYPE")
    listed = iolens("workload", "idle", "--store", store, "--bootstrap", "0", "--figure", "list").out.split()
    assert listed == ["idle", "idle-model"]


def test_csv_is_the_first_table_of_the_section(store: Path) -> None:
    done = iolens("workload", "sizes", "--store", store, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [int(row["size_bytes"]) for row in rows] == [16384, 524288, 786432, 1048576]
    assert sum(float(row["read_pct"] or 0) for row in rows) == pytest.approx(100)


def test_maintenance_from_the_configuration(store: Path, tmp_path: Path) -> None:
    settings = tmp_path / "iolens.toml"
    settings.write_text(
        "[[filesystems.spider.maintenance]]\nfrom = 2020-09-14T01:00:00Z\nto = 2020-09-14T02:00:00Z\nname = 'disks'\n"
    )
    whole = asked(store, "throughput", "--config", settings)
    rest = asked(store, "throughput", "--config", settings, "--without-maintenance")
    assert [item["name"] for item in whole["maintenance"]] == ["disks"]
    assert (whole["maintenance_left_out"], rest["maintenance_left_out"]) == (False, True)
    assert whole["throughput"]["observed_minutes"] - rest["throughput"]["observed_minutes"] == 60


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["colour"], "'colour' is not one of"),
        (["--timezone", "Mars/Base"], "Mars/Base"),
        (["-f", "nowhere"], "spider"),
        (["--peak", "much"], "not a quantity"),
        (["--peak", "0"], "above zero"),
        (["--from", "2030-01-01"], "no target's bytes are known in this window"),
        (["--top", "0"], "--top"),
        (["mix", "--figure", "idle=x.png"], "no figure 'idle' here; there are: mix"),
    ],
)
def test_errors_are_one_clear_message(store: Path, arguments: list[str], message: str) -> None:
    done = iolens("workload", "--store", store, "--bootstrap", "0", *arguments)
    assert done.code == 2, done.err
    assert message in done.err
    assert "Traceback" not in done.err
