"""A sentence about a window says how much of it has data, where that is not nearly all."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from iolens.analyses.latency.analysis import latency
from iolens.analyses.results import has_data
from iolens.analyses.utilization.targets import CountersSinceStart
from iolens.store.frames import FrameSelection
from iolens.units import from_epoch_us
from iolens.views.latency import verdict as latency_verdict
from iolens.views.render.coverage import covered
from iolens.views.utilization.tables import verdict
from tests.analyses.telemetry import T0_US, made_up_io_times, table_of
from tests.views.results import busy_day, empty


@pytest.mark.parametrize(
    ("share", "sentence", "says"),
    [
        (94.9, "Busy 3 % of the time.", "With data for 94.9 % of the window: busy 3 % of the time."),
        (0.35, "OST0001 is slow.", "With data for 0.3 % of the window: OST0001 is slow."),
        (95.0, "Busy 3 % of the time.", "Busy 3 % of the time."),
        (None, "Busy 3 % of the time.", "Busy 3 % of the time."),
        (0.0, "No data in this window.", "No data in this window."),
    ],
)
def test_the_covered_share_stands_in_the_sentence(share: float | None, sentence: str, says: str) -> None:
    assert covered(SimpleNamespace(coverage=SimpleNamespace(complete_pct=share)), sentence) == says


def test_two_hours_of_a_day_are_said_to_be_that() -> None:
    """I/O times exist for two hours at its beginning."""
    rows = table_of("target_histograms", made_up_io_times(1, ticks=120, targets=5))
    start, end = from_epoch_us(T0_US), from_epoch_us(T0_US + 86_400_000_000)
    result = latency(FrameSelection({"target_histograms": rows}, "scratch", window=(start, end)))
    assert result.coverage.complete_pct == pytest.approx(100 * 2 / 24)
    assert latency_verdict(result).startswith("With data for 8.3 % of the window: 99 % of reads took at most")


def test_half_a_day_of_load_is_said_to_be_that() -> None:
    result = busy_day()
    half = replace(result, coverage=replace(result.coverage, complete_pct=48.0))
    assert verdict(half) == f"With data for 48.0 % of the window: b{verdict(result)[1:]}"
    assert (has_data(result), has_data(empty())) == (True, False)


def test_bytes_of_days_and_counters_since_a_start_are_data() -> None:
    """No interval has sizes of disk I/Os: there is no FSU, but there is an answer."""
    since = CountersSinceStart(1, None, None, from_epoch_us(T0_US), from_epoch_us(T0_US), 0, None, [])
    assert has_data(replace(empty(), daily=busy_day().daily))
    assert has_data(replace(empty(), since_start=since))
