"""The columns of the table: what they show, how wide they are, and which go first when the terminal is narrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rich.cells import cell_len

from iolens.analyses.live.target_lines import TargetLine
from iolens.views.top import words
from iolens.visible_text import shown_name

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
    _number("fsu_pct", "FSU %", "disk time needed for I/Os of these sizes", 1, 6, words.per_cent, is_level=True),
    _number(
        "fsu_bytes_pct", "FSUb %", "the same from counts of operations and bytes (devices)", 1, 7, words.per_cent,
        optional=True, is_level=True,
    ),
    _number("util_pct", "util %", "time the kernel saw the device busy", 4, 7, words.per_cent, optional=True),
    SPARKLINE,
    _number("read_bytes_per_s", "rd MiB/s", "bytes read", 2, 9, words.mib_per_s),
    _number("write_bytes_per_s", "wr MiB/s", "bytes written", 2, 9, words.mib_per_s),
    _number("iops", "IOPS", "disk I/Os (operations where sizes are not counted)", 5, 7, words.short),
    _number("small_io_pct", "small %", "share of disk I/Os in bins below 1 MiB: sub-optimal", 6, 8, words.per_cent),
    _number(
        "latency_s", "lat ms", "95 % of I/Os took at most this, by histogram; else mean wait", 7, 7,
        words.milliseconds, optional=True,
    ),
    _number("metadata_ops_per_s", "md/s", "metadata operations (MDTs)", 5, 7, words.short, optional=True),
    _number("used_pct", "full %", "fullness", 8, 7, words.per_cent),
    _number("age_s", "age", "of the last interval", 9, 6, words.ago),
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
