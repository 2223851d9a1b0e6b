"""One target in full: its numbers, its course over the last ticks, and its disk I/Os by size."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from iolens.analyses.calibration.state import RestsOnCalibration
from iolens.analyses.live.analysis import Board
from iolens.analyses.live.target_lines import KIND as SERVER
from iolens.analyses.live.target_lines import Past, SizeRate, TargetLine
from iolens.models.transaction_time import FsuCategory
from iolens.units import MIB, from_epoch_us
from iolens.views.render.shown_times import show_time
from iolens.views.top import words
from iolens.visible_text import shown_name

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
