"""What changed against the period before: a sentence for the first page, and a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from iolens.units import format_bytes_si
from iolens.views.render import tables as t
from iolens.views.render.section import OverviewLine, ReportSection
from iolens.views.render.shown_times import time_with_zone
from iolens.visible_text import listed

if TYPE_CHECKING:
    from iolens.analyses.period_change import PeriodChange, QuantityChange
    from iolens.views.render.tables import TableView


REPORT_ORDER: Final = 12
MATTERS_PCT: Final = 10.0
ENOUGH_PCT: Final = 90.0  # of the earlier period's data
SHOWN: Final[Mapping[str, Callable[[float], str]]] = {
    "%": lambda value: f"{t.show_percent(value)} %",
    "B/day": lambda value: f"{format_bytes_si(value)} a day",
    "B": format_bytes_si,
    "1/s": lambda value: f"{value:,.3g} per second",
}


def report_changes(result: PeriodChange) -> list[OverviewLine]:
    """What changed most, or that nothing did."""
    return [OverviewLine(words) for words in (result.reason or change_words(result), gap_words(result)) if words]


def report_sections(result: PeriodChange) -> list[ReportSection]:
    """Both periods side by side."""
    return [ReportSection("What changed", (change_table(result),), "load")] if result.changes else []


def change_words(result: PeriodChange) -> str:
    """Quantities that changed by a tenth or more, the largest change first."""
    known = [change for change in result.changes if change.before is not None and change.now is not None]
    if not known:
        return f"Nothing is known of {_against(result)}."
    moved = sorted((change for change in known if _matters(change)), key=_size, reverse=True)
    if not moved:
        same = [f"{change.quantity} {_shown(change, change.now)}" for change in known[:2]]
        return f"About the same as {_against(result)}: {listed(same, len(same))}."
    words = [_words(change) for change in moved]
    return f"Against {_against(result)}: {'; '.join(words)}."


def gap_words(result: PeriodChange) -> str:
    """A warning where much of the earlier period is missing."""
    complete = result.against_complete_pct
    if complete is None or complete >= ENOUGH_PCT:
        return ""
    return f"Only {t.show_percent(complete)} % of the data of the earlier period are there."


def change_table(result: PeriodChange) -> TableView:
    """All quantities; a change of a percentage is in points."""
    columns = (t.text("quantity", "Quantity"), t.text("before", "Before"), t.text("now", "Now"), t.text("by", "Change"))
    rows = [
        (change.quantity, _shown(change, change.before), _shown(change, change.now), _by(change))
        for change in result.changes
    ]
    return t.TableView(f"Against {_against(result)}", columns, rows)


def _against(result: PeriodChange) -> str:
    assert result.against_start is not None
    assert result.against_end is not None
    return f"{t.show_time(result.against_start)} to {time_with_zone(result.against_end)}"


def _matters(change: QuantityChange) -> bool:
    """By a tenth or more, and seen in the numbers as they are shown."""
    if _shown(change, change.before) == _shown(change, change.now):
        return False
    return change.change_pct is None or abs(change.change_pct) >= MATTERS_PCT


def _size(change: QuantityChange) -> float:
    """From nothing to something is more than any factor; half is as much as double."""
    assert change.before is not None
    assert change.now is not None
    low, high = sorted((change.before, change.now))
    return float("inf") if low <= 0 else high / low


def _words(change: QuantityChange) -> str:
    assert change.before is not None
    assert change.now is not None
    course = "up" if change.now > change.before else "down"
    return f"{change.quantity} {_shown(change, change.now)}, {course} from {_shown(change, change.before)}"


def _shown(change: QuantityChange, value: float | None) -> str:
    return t.MISSING if value is None else SHOWN[change.unit](value)


def _by(change: QuantityChange) -> str:
    if change.before is None or change.now is None:
        return t.MISSING
    if change.unit == "%":
        return f"{change.now - change.before:+.1f} points"
    return t.MISSING if change.change_pct is None else f"{change.change_pct:+,.1f} %"
