"""`iolens utilization`: formats, figures, comparison, windows and errors."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from iolens.store.store import Store
from tests.analyses.telemetry import made_up, made_up_devices, table_of
from tests.chosen_calibration import GRACE, choose_grace
from tests.cli.command import iolens

KEYS = [
    "calibration_state",
    "calibration_evidence",
    "fsu_band_pct",
    "fsu_is_upper_bound",
    "resolution",
    "days_only_in_rollups",
    "filesystem",
    "window_start",
    "window_end",
    "model",
    "targets",
    "samples",
    "target_samples",
    "mean_fsu_pct",
    "mean_fsu_bytes_pct",
    "mean_util_pct",
    "busy_time_pct",
    "optimal_busy_time_pct",
    "under_report_factor",
    "bandwidth_busy_time_pct",
    "peak_bytes_per_s",
    "peak_origin",
    "categories",
    "histogram",
    "io_sizes",
    "daily",
    "daily_summary",
    "plateaus",
    "per_target",
    "target_outliers",
    "calibration",
    "coverage",
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    opened = Store(folder)
    for part in (made_up(1, 300, 3), made_up(2, 300, 3, filesystem="scratch2")):
        for name in ("target_sizes", "target_io"):
            opened.append(name, part.table(name))
    choose_grace(opened, "scratch", "scratch2")
    return folder


def test_json_has_the_documented_keys_in_order(store: Path) -> None:
    done = iolens("fsu", "--store", store, "-f", "scratch", "--format", "json", "--peak", "35GB/s")
    result = json.loads(done.out)
    assert list(result) == KEYS
    assert (result["peak_bytes_per_s"], result["peak_origin"]) == (35e9, "given")
    assert list(result["categories"][0]) == [
        "name",
        "fsu_from_pct",
        "fsu_to_pct",
        "observations_pct",
        "optimal_pct",
        "suboptimal_pct",
    ]
    assert list(result["calibration"]) == ["name", "write", "read"]
    assert len(result["histogram"]) == 101
    assert result["histogram"][-1]["fsu_to_pct"] is None
    assert result["window_start"].endswith("Z")
    assert "NaN" not in done.out


def test_compare_adds_the_second_file_system(store: Path) -> None:
    done = iolens("fsu", "--store", store, "-f", "scratch", "--compare", "scratch2", "--format", "json")
    result = json.loads(done.out)
    assert list(result) == [*KEYS, "compare"]
    assert list(result["compare"]) == KEYS
    assert result["compare"]["filesystem"] == "scratch2"


def test_every_format_is_written(store: Path, tmp_path: Path) -> None:
    base = ("fsu", "--store", store, "-f", "scratch")
    assert "Idle, moderate, busy" in iolens(*base).out
    assert iolens(*base, "--format", "markdown").out.count("|") > 50
    rows = list(csv.DictReader(io.StringIO(iolens(*base, "--format", "csv").out)))
    assert rows[0]["filesystem"] == "scratch"
    assert iolens(*base, "--format", "parquet", "-o", tmp_path / "out.parquet").code == 0
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 1
    refused = iolens(*base, "--format", "parquet")
    assert (refused.code, "--output" in refused.err) == (2, True)


def test_figures_are_named_listed_and_drawn(store: Path, tmp_path: Path) -> None:
    base = ("fsu", "--store", store, "-f", "scratch")
    assert iolens(*base, "--figure", "list").out.split() == ["bandwidth", "histogram", "sizes", "heatmap"]
    done = iolens(
        *base,
        "--figure",
        tmp_path / "a.png",
        "--figure",
        f"heatmap={tmp_path / 'b.svg'}",
        "--figure",
        f"sizes={tmp_path / 'c.html'}",
    )
    assert done.code == 0, done.err
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "b.svg").read_text()
    assert "<html" in (tmp_path / "c.html").read_text().lower()
    wrong = iolens(*base, "--figure", f"nothing={tmp_path / 'd.png'}")
    assert (wrong.code, "heatmap" in wrong.err) == (2, True)


def flat(value: Any, place: str = "") -> dict[str, Any]:
    """Every leaf of a document by its place."""
    if isinstance(value, dict):
        parts = [flat(item, f"{place}.{name}") for name, item in value.items()]
    elif isinstance(value, list):
        parts = [flat(item, f"{place}[{number}]") for number, item in enumerate(value)]
    else:
        return {place: value}
    return {name: leaf for part in parts for name, leaf in part.items()}


def test_windows_take_a_zone(store: Path) -> None:
    base = ("fsu", "--store", store, "-f", "scratch", "--format", "json")
    utc = json.loads(iolens(*base, "--from", "2020-09-14T00:05:00", "--to", "2020-09-14T00:10:00").out)
    berlin = json.loads(
        iolens(*base, "--from", "2020-09-14T02:05", "--to", "2020-09-14T02:10", "--timezone", "Europe/Berlin").out
    )
    assert (utc["daily_summary"].pop("timezone"), berlin["daily_summary"].pop("timezone")) == ("UTC", "Europe/Berlin")
    item, other = flat(utc), flat(berlin)
    floats = {place for place, leaf in item.items() if isinstance(leaf, float)}
    assert {place: leaf for place, leaf in item.items() if place not in floats} == {
        place: leaf for place, leaf in other.items() if place not in floats
    }
    for place in floats:  # the engine's threads add up in any order
        assert item[place] == pytest.approx(other[place], rel=1e-12), place
    assert utc["window_start"] == "2020-09-14T00:05:00Z"
    assert iolens(*base, "--from", "2020-09-14", "--timezone", "Mars/Olympus").code == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "scratch, scratch2"),
        (["-f", "nowhere"], 2, "scratch, scratch2"),
        (["-f", "scratch", "--calibration", "none"], 2, "grace-2012"),
        (["-f", "scratch", "--engine", "abacus"], 2, "local-spark"),
        (["-f", "scratch", "--peak", "fast"], 2, "35GB"),
        (["-f", "scratch", "--from", "soon"], 2, "2026-W03"),
        (["-f", "scratch", "--from", "2021-01-01", "--to", "2020-01-01"], 2, "window is empty"),
        (["-f", "scratch", "--config", "/nonexistent.toml"], 1, "/nonexistent.toml"),
        (["-f", "scratch", "-o", "/nonexistent/x.txt"], 1, "/nonexistent"),
    ],
)
def test_errors_are_one_clear_message(store: Path, arguments: list[str], code: int, message: str) -> None:
    done = iolens("fsu", "--store", store, *arguments)
    assert done.code == code, done.err
    assert message in done.err
    assert "Traceback" not in done.err


def test_an_empty_store_says_how_to_fill_it(tmp_path: Path) -> None:
    done = iolens("fsu", "--store", tmp_path / "none")
    assert (done.code, "iolens ingest" in done.err) == (1, True)


def test_store_and_calibration_may_come_from_the_configuration(store: Path, tmp_path: Path) -> None:
    (tmp_path / "iolens.toml").write_text(
        f"""store = "{store}"
        [filesystems.scratch]
        peak = "2 GB/s"
        calibration = "ours"
        [calibrations.ours]
        write_latency_s = 2e-3
        write_s_per_byte = 4e-9
        read_latency_s = 1e-3
        read_s_per_byte = 2e-9"""
    )
    result = json.loads(iolens("fsu", "-f", "scratch", "--format", "json", cwd=tmp_path).out)
    assert (result["peak_origin"], result["peak_bytes_per_s"]) == ("configured", 2e9)
    assert result["calibration"] == {
        "name": "ours",
        "write": {"latency_s": 2e-3, "s_per_byte": 4e-9},
        "read": {"latency_s": 1e-3, "s_per_byte": 2e-9},
    }  # fmt: skip


def test_standard_error_stays_clean(store: Path) -> None:
    assert iolens("fsu", "--store", store, "-f", "scratch").err == ""


def test_disks_have_a_utilization_beside_the_kernels(tmp_path: Path) -> None:
    Store(tmp_path / "store").append("target_io", table_of("target_io", made_up_devices(1, 100, 3)))
    base = ("fsu", "--store", tmp_path / "store", "--calibration", GRACE)
    result = json.loads(iolens(*base, "--format", "json").out)
    assert list(result) == KEYS
    assert (result["model"], result["mean_fsu_pct"]) == ("counters", None)
    assert result["mean_fsu_bytes_pct"] > 0
    assert 0 < result["mean_util_pct"] < 100
    assert iolens(*base, "--figure", "list").out.split() == ["bandwidth", "histogram", "heatmap", "util"]
    done = iolens(*base, "--figure", f"util={tmp_path / 'util.png'}")
    assert "Mean FSU by bytes" in done.out
    assert (tmp_path / "util.png").read_bytes().startswith(b"\x89PNG")


def test_osts_are_no_disks(store: Path) -> None:
    done = iolens("fsu", "--store", store, "-f", "scratch", "--model", "counters")
    assert (done.code, "never stand for disk I/Os" in done.err) == (2, True)


def test_a_real_iostat_capture_has_fsu_beside_its_own_util(shared_data: Path, tmp_path: Path) -> None:
    """The kernel's %util as iostat printed it, and FSU from its rates by hand."""
    capture = shared_data / "iostat" / "x_t_1s_mixed_load.json"
    reports = json.loads(capture.read_text())["sysstat"]["hosts"][0]["statistics"][1:]  # the first is since boot
    disks = [disk for report in reports for disk in report["disk"] if disk["disk_device"] == "vda"]
    store = tmp_path / "store"
    done = iolens("ingest", "iostat", capture, "--store", store, "-f", "node1", "--timezone", "UTC")
    assert done.code == 0, done.err
    result = json.loads(iolens("fsu", "--store", store, "--format", "json", "--calibration", "grace-2012").out)
    assert (result["model"], result["samples"]) == ("counters", len(disks))
    assert result["mean_util_pct"] == pytest.approx(sum(disk["util"] for disk in disks) / len(disks), rel=0.01)
    by_hand = [
        100
        * (
            disk["w/s"] * 1.04e-3
            + disk["wkB/s"] * 1024 * 1.73e-9
            + disk["r/s"] * 8.02e-4
            + disk["rkB/s"] * 1024 * 1.23e-9
        )
        for disk in disks
    ]
    assert result["mean_fsu_bytes_pct"] == pytest.approx(sum(by_hand) / len(by_hand), rel=0.01)


def test_a_table_alone(store: Path, tmp_path: Path) -> None:
    base = ("utilization", "--store", store, "-f", "scratch")
    names = iolens(*base, "--table", "list").out.split()
    assert names[:4] == ["summary", "categories", "distribution", "io_sizes"]
    assert "per_target" in names
    rows = list(csv.DictReader(io.StringIO(iolens(*base, "--table", "per_target", "--format", "csv").out)))
    assert [row["target"] for row in rows] == [f"scratch-OST000{n}" for n in range(3)]
    assert iolens(*base, "--table", "per_day", "--format", "parquet", "-o", tmp_path / "days.parquet").code == 0
    assert pq.read_table(tmp_path / "days.parquet").column_names[0] == "date"
    alone = iolens(*base, "--table", "categories").out
    assert alone.startswith("Idle, moderate, busy\n")
    assert "Daily volume" not in alone
    assert iolens(*base, "--format", "csv").out == iolens(*base, "--format", "csv", "--table", "summary").out


def test_tables_that_cannot_be_had(store: Path) -> None:
    base = ("utilization", "--store", store, "-f", "scratch")
    done = iolens(*base, "--table", "categorys")
    assert (done.code, done.out) == (2, "")
    assert "no table 'categorys' here; did you mean categories" in done.err
    done = iolens(*base, "--table", "categories", "--format", "json")
    assert done.code == 2
    assert "JSON is the whole answer" in done.err


def test_a_narrow_terminal_and_wide(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written to a file or a pipe there are always all columns."""
    import shutil

    from iolens.views.render.tables import to_terminal

    base = ("utilization", "--store", store, "-f", "scratch", "--table", "per_target")
    piped = iolens(*base).out
    assert "not shown" not in piped
    widths: list[tuple[int | None, bool]] = []

    def noted(tables: Any, width: int | None = None, colour: bool = False, *, wide: bool = False) -> str:
        widths.append((width, wide))
        return to_terminal(tables, 40, wide=wide)

    monkeypatch.setattr("iolens.views.render.tables.to_terminal", noted)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_: 1 / 0)  # nobody asks: this is a pipe
    assert "not shown: --wide" in iolens(*base).out
    assert "not shown" not in iolens(*base, "--wide").out
    assert widths == [(None, False), (None, True)]
