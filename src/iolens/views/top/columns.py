"""The columns of the table: what they show, how wide they are, and numbers, sparklines and bars as text."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from rich.cells import cell_len

from iolens.analyses.live.target_lines import TargetLine
from iolens.models.transaction_time import BUSY_ABOVE_PCT, IDLE_BELOW_PCT, FsuCategory
from iolens.units import MIB, format_bytes
from iolens.visible_text import shown_name

# Numbers, sparklines and bars as text, for cells of fixed width. Unknown is a dash, never a zero ----------------------

UNKNOWN: Final = "–"
LEVELS: Final = "▁▂▃▄▅▆▇█"
# Upper ends of the levels above the idle one: three are moderate, four are busy, so that height tells the category
# where there is no colour.
LEVEL_ENDS: Final = (11.0, 20.0, BUSY_ABOVE_PCT, 50.0, 70.0, 90.0)
UNLEVELLED: Final = "unlevelled"  # not calibrated: one colour, and no mark
Category = Literal["unlevelled"] | FsuCategory | None
STYLES: Final = {"idle": "#5f8787", "moderate": "#d7af5f", "busy": "bold #ff5f5f", UNLEVELLED: "#87afaf", None: "dim"}
MARKS: Final = {"idle": "·", "moderate": "▪", "busy": "▲", UNLEVELLED: " ", None: " "}
SILENT, LATE, AFTER_RESET = "✗", "?", "↺"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def category(fsu_pct: float | None, has_levels: bool) -> Category:
    """Of an FSU; `unlevelled` where it cannot be compared with a level."""
    known = FsuCategory.of(fsu_pct)
    return UNLEVELLED if known is not None and not has_levels else known


def style_of(fsu_pct: float | None, has_levels: bool = True) -> str:
    """The colour of an FSU's category."""
    return STYLES[category(fsu_pct, has_levels)]


def short(value: float | None) -> str:
    """A number in at most six or seven places: `0`, `0.3`, `42`, `1,234`."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if 0 < value < 0.05:
        return "<0.1"
    return f"{value:.1f}" if 0 < value < 9.95 else f"{value:,.0f}"


def per_cent(value: float | None) -> str:
    """One decimal; none from a hundred on. What is less than all or more than nothing is not shown as such."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if 0 < value < 0.05:
        return "<0.1"
    return f"{min(value, 99.9):.1f}" if value < 100 else f"{value:.0f}"


def mib_per_s(value: float | None) -> str:
    """A rate in MiB/s."""
    return short(None if value is None else value / MIB)


def milliseconds(value: float | None) -> str:
    """A latency in ms."""
    return short(None if value is None else 1e3 * value)


def ago(seconds: float | None) -> str:
    """An age: `3 s`, `12 min`, `5 h`, `2 d`."""
    if seconds is None:
        return UNKNOWN
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86400:.0f} d"


def label(size_bytes: int) -> str:
    """A size bin's label: `4 KiB`."""
    return format_bytes(size_bytes)


def level(fsu_pct: float | None, largest: float | None = None) -> str:
    """One character of a sparkline; blank where nothing was reported.

    By its category; where FSU has none, by its share of the `largest` that is shown.
    """
    if fsu_pct is None:
        return " "
    if largest is not None:
        return LEVELS[min(round(len(LEVELS) * fsu_pct / largest), len(LEVELS) - 1) if largest > 0 else 0]
    return LEVELS[0 if fsu_pct < IDLE_BELOW_PCT else 1 + bisect.bisect_left(LEVEL_ENDS, fsu_pct)]


def largest(course: Iterable[float | None]) -> float:
    """Of those that were reported."""
    return max((value for value in course if value is not None), default=0.0)


def bar(share: float, width: int) -> str:
    """A horizontal bar; `share` of 1 fills it, anything above zero is visible."""
    eighths = max(round(min(share, 1.0) * width * 8), 1) if share > 0 else 0
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(width)


# The columns of the table ---------------------------------------------------------------------------------------------
# What they show, how wide they are, and which go first when the terminal is narrow.

SHORTEST_SPARKLINE: Final = 8
LONGEST_SPARKLINE: Final = 60
GAP: Final = 1

Value = float | str | None


@dataclass(frozen=True, slots=True)
class TopColumn:
    """One column. A lower `rank` stays longer; one that is `optional` is shown only while some target has a value."""

    key: str
    heading: str
    meaning: str
    rank: int
    width: int
    value: Callable[[TargetLine], Value]
    show: Callable[[TargetLine], str]
    optional: bool = False
    is_text: bool = False
    is_level: bool = False  # coloured by its category


def _number(
    key: str,
    heading: str,
    meaning: str,
    rank: int,
    width: int,
    show: Callable[[float | None], str],
    *,
    optional: bool = False,
    is_level: bool = False,
) -> TopColumn:
    def value(line: TargetLine) -> float | None:
        number: float | None = getattr(line, key)
        return number

    return TopColumn(
        key, heading, meaning, rank, width, value, lambda line: show(value(line)), optional, is_level=is_level
    )


TARGET: Final = TopColumn(
    "target", "target", "OST, MDT or device, without the file system's name", 0, 8, lambda line: line.target,
    lambda line: line.target, is_text=True,
)  # fmt: skip
SPARKLINE: Final = TopColumn(
    "course", "FSU, last ticks", "▁ idle, to ▄ moderate, above busy; blank: no report", 3, SHORTEST_SPARKLINE,
    lambda line: line.busy_pct, lambda line: "", is_text=True,
)  # fmt: skip
COLUMNS: Final = (
    TARGET,
    _number("fsu_pct", "FSU %", "disk time needed for I/Os of these sizes", 1, 6, per_cent, is_level=True),
    _number(
        "fsu_bytes_pct", "FSUb %", "the same from counts of operations and bytes (devices)", 1, 7, per_cent,
        optional=True, is_level=True,
    ),
    _number("util_pct", "util %", "time the kernel saw the device busy", 4, 7, per_cent, optional=True),
    SPARKLINE,
    _number("read_bytes_per_s", "rd MiB/s", "bytes read", 2, 9, mib_per_s),
    _number("write_bytes_per_s", "wr MiB/s", "bytes written", 2, 9, mib_per_s),
    _number("iops", "IOPS", "disk I/Os (operations where sizes are not counted)", 5, 7, short),
    _number("small_io_pct", "small %", "share of disk I/Os in bins below 1 MiB: sub-optimal", 6, 8, per_cent),
    _number(
        "latency_s", "lat ms", "95 % of I/Os took at most this, by histogram; else mean wait", 7, 7,
        milliseconds, optional=True,
    ),
    _number("metadata_ops_per_s", "md/s", "metadata operations (MDTs)", 5, 7, short, optional=True),
    _number("used_pct", "full %", "fullness", 8, 7, per_cent),
    _number("age_s", "age", "of the last interval", 9, 6, ago),
)  # fmt: skip
SORTABLE: Final = tuple(column.key for column in COLUMNS if column is not SPARKLINE)


class Placed(NamedTuple):
    """A column and where it stands."""

    column: TopColumn
    start: int
    width: int


def short_name(target: str, filesystem: str) -> str:
    """The target without what the header says already, fit to be shown."""
    for mark in ("-", ":"):
        if target.startswith(f"{filesystem}{mark}"):
            return shown_name(target[len(filesystem) + 1 :])
    return shown_name(target)


def place(width: int, lines: Sequence[TargetLine], filesystem: str, indent: int = 0) -> list[Placed]:
    """The columns that fit, by rank; the sparkline takes what is left over. Names are shifted by `indent`."""
    longest = max((cell_len(short_name(line.target, filesystem)) for line in lines), default=0) + indent
    widths = {column.key: column.width for column in COLUMNS}
    widths["target"] = min(max(widths["target"], longest), max(widths["target"], width // 3))
    known = {column.key for column in COLUMNS if any(column.value(line) is not None for line in lines)}
    left_out = {column.key for column in COLUMNS if column.optional} - known
    if "fsu_bytes_pct" in known and "fsu_pct" not in known:
        left_out.add("fsu_pct")  # disks that do not count sizes
    wanted = [column for column in COLUMNS if column.key not in left_out]
    space = width - 2  # the mark before each row
    kept: list[TopColumn] = []
    for column in sorted(wanted, key=lambda top_column: top_column.rank):
        needed = widths[column.key] + GAP
        if needed <= space or column is TARGET:
            kept.append(column)
            space -= needed
    if SPARKLINE in kept:
        widths["course"] += min(max(space, 0), LONGEST_SPARKLINE - SHORTEST_SPARKLINE)
    placed, start = [], 2
    for column in COLUMNS:
        if column in kept:
            placed.append(Placed(column, start, widths[column.key]))
            start += widths[column.key] + GAP
    return placed
