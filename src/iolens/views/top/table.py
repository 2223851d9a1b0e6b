"""The table of targets: only the rows that are visible are ever drawn, so a thousand targets cost what forty do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from iolens.analyses.live.analysis import LiveReading
from iolens.analyses.live.target_lines import KIND as SERVER
from iolens.analyses.live.target_lines import TargetLine
from iolens.models.transaction_time import FsuCategory
from iolens.views.top import columns as words
from iolens.views.top.columns import SPARKLINE, TARGET, Placed, place, short_name
from iolens.views.top.session import LineOrder

HEADER: Final = 1
INDENT: Final = "  "
_PLAIN: Final = Style()
_DIM: Final = Style(dim=True)
_HEAD: Final = Style.parse("bold #87afaf on #262626")
_SORTED: Final = Style.parse("bold reverse #87afaf on #262626")
_SERVER: Final = Style(bold=True)
_SELECTED: Final = Style.parse("on #3a3a3a")
_STYLES: Final = {name: Style.parse(style) for name, style in words.STYLES.items()}


class TargetTable(ScrollView, can_focus=True):
    """Lines under a header that stays; the line chosen stays chosen when the order changes."""

    DEFAULT_CSS = "TargetTable { height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("g", "jump(0)", "Top", show=False),
        Binding("G", "jump(-1)", "Bottom", show=False),
    ]

    class SortAsked(Message):
        """A heading was clicked."""

        def __init__(self, key: str) -> None:
            self.key = key
            super().__init__()

    class Chosen(Message):
        """Another line was chosen; `opened` when it was clicked once more."""

        def __init__(self, opened: bool = False) -> None:
            self.opened = opened
            super().__init__()

    def __init__(self) -> None:
        super().__init__()
        self.lines: Sequence[TargetLine] = ()
        self.everything: Sequence[TargetLine] = ()
        self.columns: list[Placed] = []
        self.order = LineOrder()
        self.filesystem = ""
        self.indent = ""  # of targets below their server
        self.chosen: str | None = None
        self._style = self._chosen_style = _PLAIN
        self.has_levels = True  # FSU can be compared with a level
        self.cursor = 0  # the number of the line chosen; the first until one is
        self.course_of: Callable[[TargetLine, int], Sequence[float | None]] = lambda line, ticks: ()

    @property
    def chosen_line(self) -> TargetLine | None:
        """The line chosen."""
        return self.lines[self.cursor] if self.lines else None

    def show(self, reading: LiveReading, order: LineOrder) -> None:
        """Show a reading in some order; columns are laid out for all lines, so that a filter does not move them."""
        self.lines = order.lines(reading)
        self.everything = [*reading.targets, *((reading.servers or ()) if order.by_server else ())]
        self.indent = INDENT if order.by_server and reading.servers is not None else ""
        self.course_of, self.order, self.filesystem = reading.course_of, order, reading.filesystem
        self.has_levels = reading.has_levels
        self._find_cursor()
        self._lay_out()

    def _find_cursor(self) -> None:
        values = (number for number, line in enumerate(self.lines) if line.target == self.chosen)
        self.cursor = next(values, 0) if self.chosen is not None else 0

    def _lay_out(self) -> None:
        self._style = self.rich_style  # costly to ask for on every line
        self._chosen_style = self._style + _SELECTED
        width = self.scrollable_content_region.width
        self.columns = place(width, self.everything, self.filesystem, len(self.indent))
        self.virtual_size = Size(0, len(self.lines) + HEADER)
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        """Lay the columns out anew."""
        self._lay_out()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        width = self.scrollable_content_region.width
        if y < HEADER:
            return self._header(width)
        number = y - HEADER + self.scroll_offset.y
        if number >= len(self.lines):
            return Strip.blank(width, self._style)
        line = self.lines[number]
        category = FsuCategory.BUSY if line.state == "silent" else words.category(line.busy_pct, self.has_levels)
        segments = [Segment(f"{_mark(line, self.has_levels)} ", _STYLES[category])]
        segments += self._cells(line) if line.state in ("reporting", "late") else self._without_numbers(line)
        strip = Strip(segments).adjust_cell_length(width, _PLAIN)
        strip = strip.apply_style(_SERVER) if line.target_kind == SERVER else strip
        return strip.apply_style(self._chosen_style if number == self.cursor and self.has_focus else self._style)

    def _header(self, width: int) -> Strip:
        segments = [Segment("  ", _HEAD)]
        for column, _, wide in self.columns:
            is_sorted = column.key == self.order.key
            arrow = ("▼" if self.order.descending else "▲") if is_sorted else ""
            heading = column.heading if len(column.heading) <= wide else column.heading.split()[-1]
            text = f"{heading}{arrow}"[:wide] if column.is_text else f"{arrow}{heading}"[-wide:]
            text = text.ljust(wide) if column.is_text else text.rjust(wide)
            segments += [Segment(text, _SORTED if is_sorted else _HEAD), Segment(" ", _HEAD)]
        return Strip(segments).adjust_cell_length(width, _HEAD)

    def _cells(self, line: TargetLine) -> list[Segment]:
        segments = []
        faint = _DIM if line.state == "late" else _PLAIN
        for column, _, wide in self.columns:
            if column is SPARKLINE:
                segments += _sparkline(self.course_of(line, wide), wide, self.has_levels)
            elif column is TARGET:
                segments.append(Segment(_fitted(self._shown_name(line), wide), faint))
            else:
                value = column.value(line)
                is_level = isinstance(value, float) and column.is_level
                level = words.category(value, self.has_levels) if isinstance(value, float) else None
                style = _STYLES[level] if is_level else faint
                style = _DIM if value is None else style
                segments.append(Segment(column.show(line)[:wide].rjust(wide), style))
            segments.append(Segment(" "))
        return segments

    def _shown_name(self, line: TargetLine) -> str:
        return f"{'' if line.target_kind == SERVER else self.indent}{short_name(line.target, self.filesystem)}"

    def _without_numbers(self, line: TargetLine) -> list[Segment]:
        name = _fitted(self._shown_name(line), self.columns[0].width if self.columns else 0)
        if line.state == "waiting":
            return [Segment(f"{name} ", _DIM), Segment("waiting for its second sample", _DIM)]
        since = "did not report here" if line.age_s is None else f"silent, last interval {words.ago(line.age_s)} ago"
        return [Segment(f"{name} ", _DIM), Segment(since, _DIM)]

    def action_move(self, step: int) -> None:
        """Choose the next line."""
        self._choose(self.cursor + step)

    def action_page(self, step: int) -> None:
        """Choose a line a screen away."""
        self._choose(self.cursor + step * max(1, self.scrollable_content_region.height - HEADER - 1))

    def action_jump(self, number: int) -> None:
        """Choose the first or the last line."""
        self._choose(number if number >= 0 else len(self.lines) - 1)

    def on_click(self, event: events.Click) -> None:
        """A heading sorts, a line is chosen."""
        if event.y < HEADER:
            for column, start, wide in self.columns:
                if start <= event.x < start + wide + 1:
                    self.post_message(self.SortAsked(column.key))
            return
        number = event.y - HEADER + self.scroll_offset.y
        if number < len(self.lines):
            again = number == self.cursor and self.chosen is not None
            self._choose(number, opened=again)

    def _choose(self, number: int, opened: bool = False) -> None:
        if not self.lines:
            return
        number = min(max(number, 0), len(self.lines) - 1)
        self.chosen, self.cursor = self.lines[number].target, number
        rows = max(1, self.scrollable_content_region.height - HEADER)
        top = self.scroll_offset.y
        if number < top:
            self.scroll_to(y=number, animate=False)
        elif number >= top + rows:
            self.scroll_to(y=number - rows + 1, animate=False)
        self.refresh()
        self.post_message(self.Chosen(opened))


def _fitted(name: str, width: int) -> str:
    """As wide as that on the screen, whatever the signs are."""
    return (
        name if cell_len(name) == width else f"{set_cell_size(name, width - 1)}{'…' if cell_len(name) > width else ' '}"
    )


def _mark(line: TargetLine, has_levels: bool) -> str:
    """The state in one character, for those who see no colour."""
    if line.state == "silent":
        return words.SILENT
    if line.state == "late":
        return words.LATE
    return words.AFTER_RESET if line.after_reset else words.MARKS[words.category(line.busy_pct, has_levels)]


def _sparkline(course: Sequence[float | None], width: int, has_levels: bool) -> list[Segment]:
    largest = None if has_levels else words.largest(course)
    segments = [Segment(" " * (width - len(course)))]
    run, style = "", _PLAIN
    for value in course:
        mark, new = words.level(value, largest), _STYLES[words.category(value, has_levels)]
        if new is not style and run:
            segments.append(Segment(run, style))
            run = ""
        run, style = run + mark, new
    return [*segments, Segment(run, style)]
