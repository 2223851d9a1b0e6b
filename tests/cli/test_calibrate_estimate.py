"""`iolens calibrate estimate`: what it prints, what it stores, and what it refuses."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bench.limited_centre import CentreOrder, random_centre

import iolens
from iolens.records import Row
from iolens.schema import size_column
from iolens.store.store import Store
from iolens.units import epoch_us
from tests.cli.command import iolens as run
from tests.store.samples import capture


def made_store(url: Path, order: CentreOrder) -> Path:
    """A store with the rows of a random centre."""
    store = Store(str(url))
    for name, table in random_centre(order).frames.items():
        texts = {"filesystem": "scratch", "source": "made-up"}
        for column, text in texts.items():
            table = table.append_column(column, pa.array([text] * table.num_rows))
        began = table["start" if "start" in table.column_names else "time"]
        store.append(name, table.append_column("date", pc.cast(began, pa.date32())))
    store.close()
    return url


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_store(tmp_path_factory.mktemp("limited") / "store", CentreOrder(1, days=6, ticks_a_day=200, targets=2))


def test_an_estimate_is_printed_stored_and_listed(limited: Path) -> None:
    done = run("calibrate", "estimate", "-f", "scratch", "--store", limited, "--format", "json", "--save", "january")
    result = json.loads(done.out)
    assert "stored january in" in done.err
    assert [(item["direction"], item["evidence"], item["class"]) for item in result["estimates"]] == [
        ("write", "frontier", None),
        ("read", "frontier", None),
    ]
    assert result["estimates"][0]["identified"] == ["latency", "s_per_byte"]
    assert result["in_use"]["state"] == "assumed"
    row = Store(str(limited)).calibrations()[-1]
    assert (row["name"], row["state"], row["method"], row["upper_bound"]) == ("january", "estimated", "frontier", False)
    assert row["write_latency_s"] == result["estimates"][0]["latency_s"]
    (ceiling,) = result["ceilings"]
    assert row["ceiling_fsu_pct"] == ceiling["ceiling_fsu_pct"] == pytest.approx(100.0, abs=5.0)
    assert row["write_latency_low_s"] == result["estimates"][0]["latency_low_s"]
    assert (
        "january  stored for scratch from 2026-01-01T00:00:00Z: writes: frontier of 6 days"
        in run("calibrate", "show", "--store", limited).out
    )
    again = iolens.open(str(limited)).calibrate_estimate("scratch")
    assert (again.in_use.name, again.in_use.state) == ("january", "estimated")


def test_the_table_says_what_the_coefficients_mean(limited: Path) -> None:
    done = run("calibrate", "estimate", "--store", limited)
    assert "limit reached" in done.out
    assert "Calibration in use" in done.out


def test_an_upper_bound_is_said_and_not_stored(tmp_path: Path) -> None:
    order = CentreOrder(1, reaches_limit=False, days=2, ticks_a_day=120, targets=1)
    url = made_store(tmp_path / "store", order)
    assert "upper bound of FSU" in run("calibrate", "estimate", "--store", url).out
    done = run("calibrate", "estimate", "--store", url, "--save", "x")
    assert done.code == 2
    assert "nothing is stored as 'x'" in done.err
    assert "the targets never reached their limit" in done.err
    assert Store(str(url)).calibrations() == []


def test_less_than_a_tick_is_refused_with_what_is_stored_and_what_is_needed(tmp_path: Path) -> None:
    """Intervals of 5 s are added up to ticks of 10 s; there is one of them."""
    begin = epoch_us(datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC))
    times = {"start": begin, "time": begin + 5_000_000, "duration_s": 5.0}
    row = {"filesystem": "scratch", "target": "scratch-OST0000", "target_kind": "ost", size_column("write", 4096): 500}
    Store(str(tmp_path)).ingest([capture([Row("target_sizes", {**row, **times})], "made up")], "test")
    done = run("calibrate", "estimate", "--store", tmp_path)
    assert done.code == 2
    assert (
        "scratch: no tick of this window is both whole and of one direction; stored of it is 2026-01-01T00:00:30Z to"
        " 2026-01-01T00:00:35Z. Needed are ticks of 10 s of which the intervals of a target cover nine tenths"
    ) in " ".join(done.err.split())


def test_a_window_without_rows_is_refused_with_what_is_stored(limited: Path) -> None:
    done = run("calibrate", "estimate", "--store", limited, "--from", "2030-01-01")
    assert done.code != 0
    assert "nothing is stored of this window; stored is 2026-01-01" in done.err


def test_drift_is_printed_drawn_and_the_same_in_python(limited: Path, tmp_path: Path) -> None:
    figure = tmp_path / "drift.svg"
    done = run("calibrate", "drift", "-f", "scratch", "--store", limited, "--format", "json", "--figure", figure)
    result = json.loads(done.out)
    assert figure.read_bytes().startswith(b"<?xml")
    assert {item["why"] for item in result["targets"]} == {
        "fewer than 3 targets of the class have enough ticks of a like size"
    }
    assert [(item["month"], item["direction"]) for item in result["months"]] == [
        ("2026-01-01", "write"),
        ("2026-01-01", "read"),
    ]
    assert "No target can be compared" in run("calibrate", "drift", "--store", limited).out
    again = iolens.open(str(limited)).calibrate_drift("scratch")
    assert again.months[0].latency_s == result["months"][0]["latency_s"]


def test_classes_that_were_found_are_stored_with_their_targets_and_used(tmp_path: Path) -> None:
    order = CentreOrder(1, days=6, ticks_a_day=200, targets=2, classes=2)
    opened = iolens.open(str(made_store(tmp_path / "store", order)))
    estimate = opened.calibrate_estimate(save="kinds")
    assert [len(chosen.targets) for chosen in estimate.classes] == [2, 2]
    (row,) = opened.store.calibrations()  # the other class is not identified
    chosen = next(chosen for chosen in estimate.classes if chosen.name == row["target_class"])
    assert json.loads(row["targets"]) == {"scratch": chosen.targets}
    result = opened.utilization()
    used = {item.target_class: item for item in result.calibrations}
    assert used[chosen.name].targets == chosen.targets
    assert used[chosen.name].calibration.write.latency_s == estimate.best(chosen.name, "write").latency_s
    assert result.calibration_state == "assumed"  # the weakest of those that hold
    assert f"{chosen.name} estimated: kinds" in result.calibration_evidence
