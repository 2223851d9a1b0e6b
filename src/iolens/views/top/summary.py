"""The lines above the table: the file system as a whole, how old the data are, and what is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from iolens.analyses.calibration.state import RestsOnCalibration
from iolens.analyses.live.analysis import NAMES_SHOWN, Board, LiveReading
from iolens.analyses.live.target_lines import KIND as SERVER
from iolens.analyses.live.target_lines import Past, SizeRate, TargetLine
from iolens.models.transaction_time import FsuCategory
from iolens.units import MIB, from_epoch_us
from iolens.views.render.shown_times import show_time, time_with_zone
from iolens.views.render.tables import is_missing
from iolens.views.top import columns as words
from iolens.views.top.columns import short_name
from iolens.visible_text import counted, shown_name, some_names, visible

BAR_WIDTH: Final = 20
NARROW: Final = 80


def title(origin: str, reading: LiveReading | None, mode: str, width: int) -> Text:
    """`iolens top  live  scratch  2026-01-01 12:00:05 UTC (3 s ago)  store centre`."""
    line = Text(no_wrap=True)
    line.append(" iolens top " if width >= NARROW else " top ", style="bold reverse")
    line.append(" ")
    line.append(f" {mode} ", style="bold" if mode == "live" else f"reverse {words.STYLES['moderate']}")
    if reading is not None:
        line.append(f" {shown_name(reading.filesystem)}", style="bold")
        if reading.time is not None:
            line.append(f"  {time_with_zone(reading.time)}")
        if reading.age_s is not None:
            style = f"reverse {words.STYLES['busy']}" if reading.stale else "dim"
            line.append(f" ({words.ago(reading.age_s)} ago)", style=style)
    line.append(f"  {visible(origin)}", style="dim")
    line.truncate(width, overflow="ellipsis")
    return line


def no_data(reading: LiveReading) -> str:
    """What is said where the newest tick is too old: `no data for 300 d`."""
    return f"no data for {words.ago(reading.age_s)}: has its writer stopped? ← shows the past"


def totals(reading: LiveReading | None, width: int) -> Text:
    """Mean FSU as number, bar and course, and what is moved."""
    line = Text(" ", no_wrap=True)
    if reading is None:
        return line
    by_bytes = reading.mean_fsu_pct is None and reading.mean_fsu_bytes_pct is not None
    mean = reading.mean_fsu_bytes_pct if by_bytes else reading.mean_fsu_pct
    style = words.style_of(mean, reading.has_levels)
    line.append(f"{reading.calibration_words}: " if not reading.has_levels else "", style="bold")
    line.append("FSUb " if by_bytes else "FSU ")
    line.append(f"{words.per_cent(mean):>5} %", style=style)
    if width >= 100 and reading.has_levels:
        line.append(" ▕", style="dim")
        line.append(words.bar((mean or 0.0) / 100.0, BAR_WIDTH), style=style)
        line.append("▏", style="dim")
    unit = "MiB/s" if width >= NARROW else ""
    parts = [
        ("read", words.mib_per_s(reading.read_bytes_per_s), unit),
        ("write", words.mib_per_s(reading.write_bytes_per_s), "MiB/s"),
        ("", words.short(reading.iops), "I/O/s"),
    ]
    if reading.metadata_ops_per_s is not None:
        parts.append(("", words.short(reading.metadata_ops_per_s), "md/s"))
    for name, value, measured_in in parts:
        line.append(f"  {name} " if name else "  ")
        line.append(value, style="bold")
        line.append(f" {measured_in}" if measured_in else "", style="dim")
    space = width - line.cell_len - 3
    if space >= 10 and reading.course:
        line.append("  ")
        append_sparkline(line, reading.course, min(space, len(reading.course)), reading.has_levels)
    line.truncate(width, overflow="ellipsis")
    return line


def coverage(reading: LiveReading | None, width: int) -> Text:
    """How many targets report, which do not, resets, gaps, and the calibration."""
    line = Text(" ", no_wrap=True)
    if reading is None:
        return line
    all_there = reading.targets_reporting == reading.targets_known
    reporting = f"{reading.targets_reporting} of {counted(reading.targets_known, 'target')}"
    line.append(f"{reporting} report{'s' * (reading.targets_reporting == 1)}", style="" if all_there else "bold")
    if reading.missing_targets:
        names = [short_name(name, reading.filesystem) for name in reading.missing_targets]
        line.append(f" · {words.SILENT} silent: {some_names(names, NAMES_SHOWN)}", style=words.STYLES["busy"])
    if reading.resets:
        line.append(f" · {words.AFTER_RESET} {reading.resets} after a reset", style=words.STYLES["moderate"])
    if reading.gaps:
        line.append(f" · {reading.gaps} with missed samples", style=words.STYLES["moderate"])
    if reading.interval_s is not None and not is_missing(reading.interval_s):
        line.append(f" · interval {reading.interval_s:.3g} s", style="dim")
    state = "" if reading.calibration_state is None else f" ({reading.calibration_state})"
    line.append(f" · calibration {visible(reading.calibration)}{state}", style="dim")
    line.truncate(width, overflow="ellipsis")
    return line


def append_sparkline(line: Text, course: tuple[float | None, ...], width: int, has_levels: bool) -> None:
    """A sparkline, each tick in the colour of its category; without levels as high as its share of the largest."""
    shown = course[-width:] if width > 0 else ()
    largest = None if has_levels else words.largest(shown)
    line.append(" " * (width - len(shown)))
    for value in shown:
        line.append(words.level(value, largest), style=words.style_of(value, has_levels))


# One target in full ---------------------------------------------------------------------------------------------------
# Its numbers, its course over the last ticks, and its disk I/Os by size.

CHART_HEIGHT = 4
LABEL_WIDTH = 9
_KINDS = {"p95_io_time": "95 % of I/Os took at most", "mean_wait": "mean wait"}


def detail(
    board: Board, line: TargetLine, at_us: int, width: int, height: int, calibrated: RestsOnCalibration | None = None
) -> list[Text]:
    """Lines of the pane; the histogram gets what space is left. A server has no more than its facts and targets.

    `calibrated` says whether FSU has levels; without it it has.
    """
    has_levels = calibrated is None or calibrated.has_levels
    texts = [_facts(line, width, "" if calibrated is None or has_levels else calibrated.calibration_words)]
    if line.target_kind == SERVER:
        own = sorted(name for name, server in board.servers.items() if server == line.target)
        return [*texts, Text(f" {len(own)} targets: {', '.join(map(shown_name, own))}", style="dim")]
    past = board.history_of(line.target, at_us, max(width - LABEL_WIDTH - 2, 1))
    texts += _chart(past, width, has_levels)
    space = height - len(texts) - 2
    if space > 0:
        texts += _sizes(board.sizes_of(line.target, at_us), width, space)
    return texts


def _facts(line: TargetLine, width: int, unlevelled: str) -> Text:
    """`unlevelled` is why FSU has no category; empty where it has one."""
    text = Text(f" {shown_name(line.target)}", style="bold", no_wrap=True)
    facts = [line.target_kind or "", line.state]
    busy = line.busy_pct
    if busy is not None:
        facts.append(f"FSU {words.per_cent(busy)} % ({unlevelled or FsuCategory.of(busy)})")
    if line.util_pct is not None:
        facts.append(f"util {words.per_cent(line.util_pct)} %")
    if line.latency_s is not None:
        facts.append(f"{_KINDS[line.latency_kind or '']} {words.milliseconds(line.latency_s)} ms")
    if line.used_pct is not None:
        facts.append(f"{words.per_cent(line.used_pct)} % full")
    if line.metadata_ops_per_s is not None:
        facts.append(f"{words.short(line.metadata_ops_per_s)} metadata operations/s")
    if line.after_reset:
        facts.append("counters were reset in this interval")
    if line.state != "reporting":
        facts.append(f"last interval {words.ago(line.age_s)} ago" if line.age_s is not None else "never reported here")
    text.append("  " + " · ".join(fact for fact in facts if fact), style="not bold")
    text.truncate(width, overflow="ellipsis")
    return text


def _chart(past: Sequence[Past], width: int, has_levels: bool) -> list[Text]:
    """FSU over time, a column per tick; the scale ends at the largest value, where it has levels at least at 30 %."""
    if not any(item.busy_pct is not None for item in past):
        return []
    top = max(30.0 if has_levels else 1e-9, *(item.busy_pct for item in past if item.busy_pct is not None))
    rows = []
    for row in range(CHART_HEIGHT, 0, -1):
        text = Text(no_wrap=True)
        text.append(f"{top * row / CHART_HEIGHT:6.0f} % ", style="dim")
        for entry in past:
            filled = 0.0 if entry.busy_pct is None else entry.busy_pct / top * CHART_HEIGHT - (row - 1)
            eighths = round(min(max(filled, 0.0), 1.0) * 8)
            is_base = row == 1 and entry.busy_pct is not None and entry.busy_pct > 0
            mark = (" " + words.LEVELS)[max(eighths, 1) if is_base else eighths]
            text.append(mark, style=words.style_of(entry.busy_pct, has_levels))
        rows.append(text)
    first, last = (show_time(from_epoch_us(item.time_us))[11:19] for item in (past[0], past[-1]))
    space = max(1, len(past) - len(first) - len(last))
    rows.append(Text(f"{'':8} {first}{' ' * space}{last}", style="dim", no_wrap=True))
    return rows


def _sizes(rates: Sequence[SizeRate], width: int, space: int) -> list[Text]:
    """Reads to the left, writes to the right, one row per size that has any."""
    by_size = {size: {direction: rate for direction, value, rate in rates if value == size} for _, size, _ in rates}
    busy = {size: directions for size, directions in by_size.items() if any(directions.values())}
    if not busy:
        reported = "no disk I/O in this interval" if rates else "no disk I/O sizes for this interval"
        return [Text(f" {reported}", style="dim")]
    sizes = sorted(busy)
    if len(sizes) > space:
        sizes = sorted(sorted(sizes, key=lambda size: -sum(busy[size].values()))[:space])
    largest = max(rate for directions in busy.values() for rate in directions.values())
    half = max(4, (width - LABEL_WIDTH - 22) // 2)
    head = f"{'size':>{LABEL_WIDTH}} {'reads/s':>8} {'':{half}} {'writes/s':>8}"
    rows = [Text(head, style="dim", no_wrap=True)]
    for size in sizes:
        style = "" if size >= MIB else words.STYLES["moderate"]
        text = Text(f"{words.label(size):>{LABEL_WIDTH}} ", style=style, no_wrap=True)
        for side in ("read", "write"):
            rate = busy[size].get(side, 0.0)
            text.append(f"{words.short(rate):>8} ", style="")
            text.append(words.bar(rate / largest, half), style="#5f87af" if side == "read" else "#af87d7")
        rows.append(text)
    return rows
