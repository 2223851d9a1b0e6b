"""What FSU is worth: the state of its calibration and its band wherever it is shown, and no level without one."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import pkgutil
import re
import typing
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import iolens.analyses
from iolens.analyses.blame import Blame
from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.calibration.state import (
    HoldsDiskTime,
    LargestMean,
    RefutedCalibration,
    RestsOnCalibration,
    calibration_of_result,
)
from iolens.analyses.explain.analysis import RunExplanation
from iolens.analyses.intervals.buckets import MOST_TICKS, BucketSpread
from iolens.analyses.job_list import JobList
from iolens.analyses.job_page import DiskCost
from iolens.analyses.job_search import JobSearch
from iolens.analyses.live.analysis import Board, LiveReading
from iolens.analyses.period_change import PeriodChange
from iolens.analyses.utilization.analysis import Utilization, UtilizationEnvelope, utilization
from iolens.api import OpenStore
from iolens.api.alerts import check_alerts
from iolens.models.transaction_time import GRACE_2012, Calibration, CalibrationState, Coefficients
from iolens.records import Row
from iolens.views.dashboard.shell import BlockAnswer, block_html
from iolens.views.render.formats import figures_of, tables_of
from iolens.views.render.json_text import to_json
from iolens.views.render.tables import to_terminal
from tests.alerts.centres import LAST, minute
from tests.cli.command import iolens as run
from tests.flash_centre import FLASH, NULL_WITHOUT_LEVELS, calibrate, flash, flash_store, levels_in

MADE = datetime(2026, 3, 2, 4, tzinfo=UTC)
SHARED = Path(os.environ.get("IOLENS_SHARED", "/nowhere")) / "data"


@pytest.fixture(scope="module")
def uncalibrated(tmp_path_factory: pytest.TempPathFactory) -> OpenStore:
    """At the limit of its flash: 1,665 % by the shipped default."""
    return flash_store(tmp_path_factory.mktemp("flash") / "store")


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> OpenStore:
    """At a twentieth of it: 83 % by the shipped default, which nothing refutes."""
    return flash_store(tmp_path_factory.mktemp("quiet") / "store", 0.05)


def terminal(result: object) -> str:
    return to_terminal(tables_of(result), None)


def test_the_terminal_says_first_that_it_is_not_calibrated_and_nothing_of_levels(quiet: OpenStore) -> None:
    shown = terminal(quiet.utilization())
    title, first = shown.splitlines()[:2]
    assert title == "scratch: file system utilization (not calibrated)"
    assert first.startswith("Warning: Not calibrated: what an I/O costs these targets was not measured")
    assert levels_in(shown) == []


def test_json_has_no_level_and_begins_with_the_state(quiet: OpenStore) -> None:
    plain = json.loads(to_json(quiet.utilization()))
    assert list(plain)[:3] == ["calibration_state", "calibration_evidence", "fsu_band_pct"]
    assert (plain["calibration_state"], plain["fsu_band_pct"]) == ("assumed", None)
    assert [plain[name] for name in NULL_WITHOUT_LEVELS] == [None] * 4
    assert {line["observations_pct"] for line in plain["categories"]} == {None}
    assert {line["busy_time_pct"] for line in plain["per_target"]} == {None}
    assert plain["mean_fsu_pct"] == pytest.approx(83.3, abs=0.1)  # order and change stay
    assert plain["warnings"][0].startswith("Not calibrated")


def test_a_mean_that_no_target_can_do_is_said_first(uncalibrated: OpenStore) -> None:
    result = uncalibrated.utilization()
    refuted = result.calibration_refuted
    assert refuted is not None
    assert refuted.mean_fsu_pct == pytest.approx(1665.5, abs=0.1)
    assert refuted.times_smaller == pytest.approx(16.65, abs=0.01)
    first = terminal(result).splitlines()[1]
    assert first.startswith("Warning: Not calibrated, and the data refute the default")
    assert "at least 16.7 times smaller" in first
    assert levels_in(terminal(result)) == []


def test_a_calibration_that_somebody_chose_can_be_refuted_too(uncalibrated: OpenStore) -> None:
    result = uncalibrated.utilization(calibration="grace-2012")
    assert result.calibration_state == "class"
    assert result.busy_time_pct == 100.0  # a number by it, which no sentence calls load
    title, first = terminal(result).splitlines()[:2]
    assert title.endswith("(calibration class, refuted by the data)")
    assert first.startswith("Warning: The data refute the calibration (class; grace-2012): mean FSU was 1,665 %")
    assert levels_in("\n".join(table.note for table in tables_of(result))) == []


@pytest.mark.parametrize("shows", [("now",), ("facts",), ("tables",)])
def test_blocks_of_pages(quiet: OpenStore, shows: tuple[str, ...]) -> None:
    shown = block_html(BlockAnswer(quiet.utilization(), shows, MADE, "/json", {}, ""))
    assert "not calibrated" in shown.lower()
    assert levels_in(re.sub("<[^>]*>", " ", shown)) == []


def test_figures_say_it_on_the_axis_and_draw_no_level(quiet: OpenStore) -> None:
    described = figures_of(quiet.utilization())
    panel = described["bandwidth"]().panels[0]
    assert panel.y.label == "FSU (%), not calibrated"
    histogram = described["histogram"]().panels[0]
    assert [mark.label for mark in histogram.marks] == ["observations"]


def test_the_report_says_it_on_its_first_page(quiet: OpenStore, tmp_path: Path) -> None:
    quiet.report(tmp_path / "report.html")
    text = re.sub(r"(?s)<(script|style).*?</\1>|<svg.*?</svg>|<[^>]*>", " ", (tmp_path / "report.html").read_text())
    assert text.index("Not calibrated: what an I/O costs") < text.index("Mean FSU")
    assert set(levels_in(text)) <= {"idle", "Idle"}  # minutes without bytes, in the chapter of the workload
    assert "idle (below " in text


def test_alerts_are_not_evaluated(quiet: OpenStore, tmp_path: Path) -> None:
    check = check_alerts(quiet, tmp_path, minute(LAST))
    assert check.alerts == []
    whys = {rule.rule: rule.why for rule in check.not_evaluated}
    said = "Not evaluated: not calibrated: what an I/O costs these targets was not measured"
    assert all(whys[kind].startswith(said) for kind in ("fsu", "plateau"))
    assert all("Warning" not in whys[kind] for kind in ("fsu", "plateau"))  # which would say it again


def test_top_once_says_it_first(uncalibrated: OpenStore) -> None:
    done = run("top", "--once", "--store", uncalibrated.store.url, "--at", "2026-03-02T03:00:00Z")
    title, first, *rest = done.out.splitlines()
    assert title == "Targets of scratch (not calibrated)"
    assert first.startswith("Warning: Not calibrated, and the data refute the default")
    assert levels_in("\n".join(rest)) == []


def test_blame_keeps_the_shares_and_drops_the_ceiling(quiet: OpenStore) -> None:
    from iolens.errors import NotKnownError

    with pytest.raises(NotKnownError, match="Not calibrated"):
        quiet.blame(plateau=1)


def test_a_measured_calibration_reads_as_before_with_its_state_and_band(tmp_path: Path) -> None:
    opened = flash_store(tmp_path / "store", 0.2)
    calibrate(opened)
    result = opened.utilization()
    assert (result.calibration_state, result.calibration_evidence) == ("measured", "ours: a sweep")
    assert result.fsu_band_pct is None  # no interval was stored
    assert result.busy_time_pct == 0.0 or result.busy_time_pct == 100.0
    assert terminal(result).splitlines()[0] == "scratch: file system utilization (calibration measured)"


# Which state holds.


def row(name: str, **more: object) -> dict:
    values = {f"{direction}_{what}": 1e-4 for direction in ("read", "write") for what in ("latency_s", "s_per_byte")}
    known = {"time": 1, "filesystem": "scratch", "target_class": None, "valid_from": None, "evidence": "a test"}
    return {**known, **values, "name": name, **more}


ESTIMATE = {"state": "estimated", "method": "frontier"}


@pytest.mark.parametrize(
    ("rows", "name", "state", "used"),
    [
        ([], None, "assumed", "grace-2012"),
        ([], "grace-2012", "class", "grace-2012"),
        ([row("ours")], None, "measured", "ours"),
        ([row("theirs", filesystem="home")], None, "assumed", "grace-2012"),
        ([row("theirs", filesystem="home")], "theirs", "class", "theirs"),
        ([row("any", filesystem=None)], "any", "measured", "any"),
        ([row("vendor", state="class")], None, "class", "vendor"),
        ([row("found", **ESTIMATE)], None, "estimated", "found"),
        ([row("found", method="latency")], None, "estimated", "found"),
        ([row("ours"), row("found", valid_from=5, **ESTIMATE)], None, "measured", "ours"),
        ([row("vendor", state="class"), row("found", **ESTIMATE)], None, "class", "vendor"),
        ([row("ours"), row("found", **ESTIMATE)], "found", "estimated", "found"),
    ],
)
def test_which_calibration_holds_and_what_it_is(rows: list[dict], name: str | None, state: str, used: str) -> None:
    from iolens.analyses.calibration.applied import applied_calibrations
    from iolens.config import Config

    applied, _ = applied_calibrations(rows, Config(), name, "scratch", (10, 20), ["a", "b"])
    fields = calibration_of_result(applied, ["a", "b"], 50.0)
    assert (fields["calibration_state"], applied[-1].calibration.name) == (state, used)


def test_the_weakest_of_those_that_hold_counts() -> None:
    measured = AppliedCalibration("flash", ["a"], None, None, GRACE_2012, None, CalibrationState.MEASURED, "a sweep")
    assumed = AppliedCalibration(None, None, None, None, GRACE_2012, None, CalibrationState.ASSUMED, "none")
    both = calibration_of_result([measured, assumed], ["a", "b"], 50.0)
    assert both["calibration_state"] == "assumed"
    assert both["calibration_evidence"] == "flash measured: a sweep; all others assumed: none"
    alone = calibration_of_result([measured, assumed], ["a"], 50.0)
    assert (alone["calibration_state"], alone["calibration_evidence"]) == ("measured", "a sweep")


# The band.


def applied(low: float, high: float, **more: object) -> AppliedCalibration:
    """Latencies that may be that many times as long; the time per byte is known."""
    used = Calibration("ours", *(Coefficients(*pair) for pair in FLASH))
    ends = (
        Calibration("end", *(Coefficients(times * latency, rate) for latency, rate in FLASH)) for times in (low, high)
    )
    return AppliedCalibration(None, None, None, None, used, None, CalibrationState.MEASURED, "", *ends, **more)


def test_the_band_is_what_the_windows_own_mix_costs_by_the_ends() -> None:
    item = applied(0.5, 3.0)
    small = calibration_of_result([item], 1, 50.0, {"write_ios_4096": 1000})["fsu_band_pct"]
    cost = 60e-6 + 0.25e-9 * 4096
    assert small.low == pytest.approx(50 * (30e-6 + 0.25e-9 * 4096) / cost)
    assert small.high == pytest.approx(50 * (180e-6 + 0.25e-9 * 4096) / cost)
    without_mix = calibration_of_result([item], 1, 50.0)["fsu_band_pct"]
    assert (without_mix.low, without_mix.high) == (25.0, 150.0)


def test_of_several_the_widest_and_none_where_one_is_not_known() -> None:
    two = [replace(applied(0.9, 1.1), target_class="flash", targets=["a"]), applied(0.5, 1.05)]
    band = calibration_of_result(two, ["a", "b"], 100.0)["fsu_band_pct"]
    assert (round(band.low), round(band.high)) == (50, 110)
    unknown = [two[0], replace(two[1], low=None, high=None)]
    assert calibration_of_result(unknown, ["a", "b"], 100.0)["fsu_band_pct"] is None


def test_an_upper_bound_begins_at_zero_and_has_no_level() -> None:
    fields = calibration_of_result([applied(0.5, 1.0, is_upper_bound=True)], 1, 50.0)
    band = fields["fsu_band_pct"]
    assert (band.low, band.high) == (0.0, 50.0)
    assert not RestsOnCalibration(**fields).has_levels


def test_the_band_is_drawn_around_the_line(tmp_path: Path) -> None:
    result = utilization(flash_store(tmp_path / "store", 0.01).store.select(), calibrations=[applied(0.5, 2.0)])
    mark = figures_of(result)["bandwidth"]().panels[0].marks[0]
    assert mark.low[3] / result.series.fsu_pct[3] == pytest.approx(result.fsu_band_pct.low / result.mean_fsu_pct)
    assert "mean FSU " in terminal(result).splitlines()[0]


def test_of_a_long_window_the_band_is_said_on_the_axis_and_drawn_where_it_is_zoomed_into(tmp_path: Path) -> None:
    """Beside the spread of ticks a second band is not read: the axis has that of the mean."""
    chosen = [applied(0.5, 2.0)]
    result = utilization(flash_store(tmp_path / "store", 0.01).store.select(), calibrations=chosen)
    series = result.series
    middle = np.ones(1) * series.fsu_pct[:1]
    envelope = UtilizationEnvelope(12_000.0, [result.window_start], BucketSpread(*[middle] * 4), None, None, None)
    panel = figures_of(replace(result, envelope=envelope))["bandwidth"]().panels[0]
    band = result.fsu_band_pct
    assert panel.y.label == f"FSU (%), mean {band.low:.3g}–{band.high:.3g}"
    drawn = [mark for mark in panel.marks if mark.label.startswith("by the ends of calibration")]
    assert [mark.zoom for mark in drawn] == [("in", MOST_TICKS * series.bucket_s * 1e6)]
    refuted = replace(result, envelope=envelope, calibration_refuted=RefutedCalibration.by(150.0))
    assert figures_of(refuted)["bandwidth"]().panels[0].y.label == "FSU (%), calibration refuted"


# Ten minutes.


def test_a_mean_over_ten_minutes_is_needed_to_refute() -> None:
    def largest(*levels: float, tick_s: int = 60) -> LargestMean:
        result = LargestMean()
        ends = np.arange(1, len(levels) + 1) * tick_s * 1_000_000
        for part in (slice(0, 7), slice(7, None)):  # as parts of days come
            seconds = np.full(len(ends), float(tick_s))
            columns = {"epoch_us": ends, "seconds": seconds, "fsu": np.array(levels, float)}
            result.add({name: values[part] for name, values in columns.items()})
        return result

    assert largest(*[500.0] * 8).pct is None  # eight minutes
    burst = largest(*[20.0] * 10, 1000.0, *[20.0] * 10)
    assert burst.pct == pytest.approx((9 * 20 + 1000) / 10)
    assert burst.refuted is None
    assert largest(*[50.0] * 5, *[130.0] * 10, *[50.0] * 5).refuted.mean_fsu_pct == pytest.approx(130)
    assert largest(150.0, tick_s=3600).refuted.times_smaller == 1.5
    assert RefutedCalibration.by(120.0) is None


def test_the_live_view_refutes_by_its_last_ten_minutes() -> None:
    assumed = AppliedCalibration(None, None, None, None, GRACE_2012, None, CalibrationState.ASSUMED, "none")
    board = Board("scratch", assumed, most_cells=10_000)
    board.take(Row(table, line) for table, lines in flash().items() for line in lines if line["time"])
    reading = board.reading()
    assert (reading.calibration_state, reading.has_levels) == ("assumed", False)
    assert reading.calibration_refuted.mean_fsu_pct == pytest.approx(1665.5, abs=0.1)
    assert terminal(reading).splitlines()[0].endswith("(not calibrated)")
    assert levels_in(terminal(reading)) == []


# Every result that holds an FSU.

WITH_FSU = (Blame, DiskCost, JobList, JobSearch, LiveReading, PeriodChange, RunExplanation, Utilization)
FIELD = re.compile(r"(^|_)fsu(_|$)")
OF_CALIBRATIONS = (
    "iolens.analyses.calibration.",
    "iolens.analyses.calibration_estimate.",
)  # what a full disk showed, and the band itself


def result_classes() -> Iterator[type]:
    for module in pkgutil.walk_packages(iolens.analyses.__path__, "iolens.analyses."):
        for item in vars(importlib.import_module(module.name)).values():
            if isinstance(item, type) and dataclasses.is_dataclass(item) and item.__module__ == module.name:
                yield item


def parts_of(result: type) -> Iterator[type]:
    """A result and the dataclasses it is made of."""
    yield result
    hints = typing.get_type_hints(result)
    waiting = [hints[field.name] for field in dataclasses.fields(result)]
    while waiting:
        hint = waiting.pop()
        waiting += typing.get_args(hint)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint) and hint is not result:
            yield from parts_of(hint)


def test_every_result_with_an_fsu_says_the_state_of_its_calibration() -> None:
    known = {part for result in WITH_FSU for part in parts_of(result)}
    holding = {
        item
        for item in result_classes()
        if item.__name__[0] != "_" and not item.__module__.startswith(OF_CALIBRATIONS)
        if any(FIELD.search(field.name) and field.name.endswith("_pct") for field in dataclasses.fields(item))
    }
    assert {item.__name__ for item in holding - known} <= {"BlameQuestion", "LatestLoad", "RunLoad", "Saturation"}
    assert all(issubclass(result, RestsOnCalibration) for result in WITH_FSU)


DISK_TIME = {"disk_s", "disk_seconds"}
BESIDE_A_COST = {"PageNeighbour", "UserDay", "UserJob"}  # on pages whose `DiskCost` says it


def test_every_result_with_disk_time_says_it_too() -> None:
    known = {part for result in WITH_FSU if issubclass(result, HoldsDiskTime) for part in parts_of(result)}
    holding = {item for item in result_classes() if DISK_TIME & {field.name for field in dataclasses.fields(item)}}
    assert {item.__name__ for item in holding - known} == BESIDE_A_COST


# Real captures.


@pytest.mark.skipif(not (SHARED / "lustre-2.17").is_dir(), reason="real captures are not here; set IOLENS_SHARED")
@pytest.mark.parametrize("capture", ["lustre-2.17/SYNTHETIC-oss", "iostat/x_y_t_1s_mixed_load.txt"])
def test_captures_of_systems_nobody_calibrated(capture: str, tmp_path: Path) -> None:
    opened = OpenStore(str(tmp_path / "store"), workers=1)
    place = SHARED / capture
    places = sorted(place.glob("*.txt")) if place.is_dir() else [place]
    opened.ingest(*places, timezone="UTC", **({} if place.is_dir() else {"filesystem": "disks"}))
    result = opened.utilization()
    assert (result.mean_pct or 0) > 0
    assert result.calibration_state == "assumed"
    title, first = terminal(result).splitlines()[:2]
    assert title.endswith("(not calibrated)")
    assert first.startswith("Warning: Not calibrated")
    assert levels_in(terminal(result)) == []
