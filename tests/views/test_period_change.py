"""What changed against the period before: no sentence contradicts the numbers of the table."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.analyses.period_change import PeriodChange, QuantityChange, quantity_changes
from iolens.views.period_change import MATTERS_PCT, change_table, change_words, gap_words, report_changes
from tests.views.results import busy_day

START = datetime(2026, 1, 12, tzinfo=UTC)
UNITS = {"mean FSU": "%", "time busy by FSU": "%", "read": "B/day", "written": "B/day", "used": "B",
         "metadata operations": "1/s"}  # fmt: skip
VALUES = st.one_of(st.none(), st.just(0.0), st.floats(1e-3, 100.0), st.floats(1e6, 1e15))


def change_of(values: dict[str, tuple[float | None, float | None]], complete: float | None = 100.0) -> PeriodChange:
    return PeriodChange(
        filesystem="scratch", window_start=START, window_end=START + timedelta(days=7),
        against_start=START - timedelta(days=7), against_end=START, against_complete_pct=complete,
        changes=[QuantityChange(name, UNITS[name], *pair) for name, pair in values.items()],  # type: ignore[arg-type]
    )  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(values=st.fixed_dictionaries({name: st.tuples(VALUES, VALUES) for name in UNITS}))
def test_the_sentence_is_that_of_the_table(values: dict[str, tuple[float | None, float | None]]) -> None:
    result = change_of(values)
    words, rows = change_words(result), {row[0]: row for row in change_table(result).rows}
    reported = re.findall(r"(?:: |; )([a-zA-Z ]+?) ([0-9][^;]*?), (up|down) from ([^;]*?)(?=;|\.$)", words)
    for name, now, course, before in reported:
        earlier, later = values[name]
        assert earlier is not None
        assert later is not None
        assert (now, before) == (rows[name][2], rows[name][1])
        assert course == ("up" if later > earlier else "down")
        assert now != before
    both = {name: pair for name, pair in values.items() if None not in pair}
    far = {
        name
        for name, (earlier, later) in both.items()
        if rows[name][1] != rows[name][2] and (not earlier or abs(later - earlier) / earlier >= MATTERS_PCT / 100)
    }
    assert {name for name, *_ in reported} == far
    assert ("About the same" in words) == (bool(both) and not far)
    assert ("Nothing is known" in words) == (not both)


def test_a_change_of_a_percentage_is_in_points() -> None:
    table = change_table(change_of({"mean FSU": (10.0, 15.0), "written": (1e12, 2e12), "used": (None, 1e12)}))
    assert [row[3] for row in table.rows] == ["+5.0 points", "+100.0 %", "–"]


def test_gaps_of_the_earlier_period_are_reported() -> None:
    assert gap_words(change_of({"used": (1.0, 2.0)}, 95.0)) == ""
    assert "Only 40.0 %" in gap_words(change_of({"used": (1.0, 2.0)}, 40.0))
    (only,) = report_changes(PeriodChange(filesystem="a", window_start=None, window_end=None, reason="Not compared."))
    assert only.words == "Not compared."


def test_volumes_are_by_the_time_that_targets_reported() -> None:
    result = busy_day()
    (read,) = [c for c in quantity_changes({"utilization": result}, {"utilization": result}) if c.quantity == "read"]
    assert result.coverage.hours_median is not None
    assert read.now == sum(day.read_bytes or 0 for day in result.daily) / (result.coverage.hours_median / 24)
    assert read.change_pct == 0
