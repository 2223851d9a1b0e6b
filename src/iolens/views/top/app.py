"""The application: a thread asks the feed, a timer plays a recording, keys change the session, widgets show it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Final, Protocol

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Static

from iolens.analyses.live.analysis import Board, LiveReading
from iolens.records import Item, Note, Problem
from iolens.times import utc_time
from iolens.units import epoch_us, from_epoch_us
from iolens.views.render.shown_times import show_time, time_with_zone, zone_name
from iolens.views.top import columns as words
from iolens.views.top import summary
from iolens.views.top.columns import COLUMNS, SORTABLE
from iolens.views.top.session import MARGIN_US, MINUTE_US, RecordedPage, Session
from iolens.views.top.summary import detail
from iolens.views.top.table import TargetTable
from iolens.visible_text import visible

FRAME_S: Final = 0.1
DETAIL_HEIGHT: Final = 18
LOW_SCREEN: Final = 30  # lines; below this the detail takes the place of the table
MOST_PROBLEMS: Final = 1000


class Feed(Protocol):
    """Where new rows come from. Whatever `poll` raises is shown, and it is asked again."""

    @property
    def origin(self) -> str:
        """For people."""

    @property
    def interval_s(self) -> float:
        """How often it is asked."""

    def poll(self) -> Sequence[Item]:
        """Rows and problems since the last time."""

    def trouble(self) -> str:
        """What the other side says is wrong with itself; empty: nothing."""


class Recording(Protocol):
    """Where past rows come from."""

    @property
    def origin(self) -> str:
        """For people."""

    def rows(self, filesystem: str, since_us: int, until_us: int) -> Sequence[Item]:
        """Everything of the intervals that start in [since, until)."""


class TopApp(App[None]):
    """Targets × measures, live or played back."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { background: #121212; color: #d0d0d0; }
    #title, #totals, #coverage { height: 1; background: #1c1c1c; }
    #message { height: auto; max-height: 3; background: #1c1c1c; padding: 0 1; }
    #detail { height: 18; border-top: solid #3a3a3a; display: none; background: #161616; }
    #prompt { height: 1; border: none; padding: 0 1; background: #303030; display: none; }
    Footer { background: #1c1c1c; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", "Quit"),
        Binding("question_mark,h", "help", "Help", key_display="?"),
        Binding("space", "pause", "Pause"),
        Binding("left", "step(-1)", "Step", key_display="←→"),
        Binding("right", "step(1)", "Step", show=False),
        Binding("shift+left", "skip(-1)", "Minute back", show=False),
        Binding("shift+right", "skip(1)", "Minute on", show=False),
        Binding("left_square_bracket", "speed(-1)", "Slower", show=False),
        Binding("right_square_bracket", "speed(1)", "Faster", show=False),
        Binding("home", "home", "First", show=False),
        Binding("end", "end", "Live", show=False),
        Binding("t", "ask_time", "Time", show=False),
        Binding("less_than_sign,comma", "sort(-1)", "Sort", key_display="< >"),
        Binding("greater_than_sign,full_stop", "sort(1)", "Sort", show=False),
        Binding("r", "reverse", "Reverse"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("f", "filesystem", "File system"),
        Binding("s", "servers", "Servers"),
        Binding("enter", "detail", "Detail"),
        Binding("escape", "leave", "Back", show=False),
        *(Binding(str(number % 10), f"column({number - 1})", show=False) for number in range(1, 11)),
    ]

    def __init__(
        self,
        session: Session,
        feed: Feed | None = None,
        recording: Recording | None = None,
        *,
        new_board: Callable[[str], Board] | None = None,
        expected: Callable[[], Mapping[str, Iterable[str]]] | None = None,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        super().__init__()
        self.session, self.feed, self.recording = session, feed, recording
        self.new_board = new_board or (lambda name: Board(name))
        self.expected, self.now_us = expected, now_us
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.loading: RecordedPage | None = None
        self.failure = ""  # the last poll or page did not come
        self.said = ""  # what a key did, until the next key
        self.problems: dict[tuple[str, str], str] = {}  # each place and reason once
        self.asking = ""
        self.reading: LiveReading | None = None
        self.lines = {name: Static(id=name) for name in ("title", "totals", "coverage", "message")}
        self.table, self.pane, self.prompt = TargetTable(), Static(id="detail"), Input(id="prompt")

    def compose(self) -> ComposeResult:
        """The parts of the screen."""
        yield from self.lines.values()
        yield self.table
        yield self.pane
        yield self.prompt
        yield Footer()

    def on_mount(self) -> None:
        """Begin to ask and to play."""
        self.table.focus()
        self.set_interval(1.0, self.show_reading)
        if self.recording is not None:
            self.set_interval(FRAME_S, self._play)
        if self.feed is not None:
            threading.Thread(target=self._watch, name="iolens-top-feed", daemon=True).start()
        self.show_reading()

    def on_unmount(self) -> None:
        """Let the thread end."""
        self.stopping.set()

    # The feed ------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """In a thread of its own: ask, hand over, wait for the next multiple of the interval."""
        assert self.feed is not None
        while not self.stopping.is_set():
            failure, items = "", list[Item]()
            try:
                items = list(self.feed.poll())
                known = self.expected() if items and self.expected is not None else {}
                with self.lock:
                    self.session.boards.expect(known)
                    self.session.boards.take(items)
                trouble = self.feed.trouble()
            except Exception as error:  # whatever it is, it is reported, and tried again
                failure, trouble = str(error) or type(error).__name__, ""
            problems = [item for item in items if isinstance(item, Problem) and not isinstance(item, Note)]
            with suppress(RuntimeError):  # the application has ended
                self.call_from_thread(self._arrived, failure, trouble, problems, bool(items))
            every = max(self.feed.interval_s, 0.05)
            self.stopping.wait(every - time.time() % every + 0.001)

    def _arrived(self, failure: str, trouble: str, problems: Sequence[Problem], has_rows: bool) -> None:
        before, self.failure = self.failure, failure or (f"the agent says: {trouble}" if trouble else "")
        for problem in problems if len(self.problems) < MOST_PROBLEMS else ():
            self.problems.setdefault((problem.place, problem.reason), str(problem))
        if has_rows or self.failure != before:
            self.show_reading()

    # A recording ---------------------------------------------------------------------------------------------

    def _play(self) -> None:
        changed = self.session.advance(FRAME_S)
        page = self.session.page()
        if page is not None and self.loading is None:
            self.loading = page
            threading.Thread(target=self._load, args=(page,), name="iolens-top-page", daemon=True).start()
            changed = True
        if changed:
            self.show_reading()

    def _load(self, page: RecordedPage) -> None:
        assert self.recording is not None
        board, failure = self.new_board(page.filesystem), ""
        try:
            board.take(self.recording.rows(page.filesystem, page.since_us - MARGIN_US, page.until_us))
        except Exception as error:  # reported, and tried again
            failure = str(error) or type(error).__name__
        if failure and self.stopping.wait(1.0):
            return
        with suppress(RuntimeError):
            self.call_from_thread(self._loaded, page, board, failure)

    def _loaded(self, page: RecordedPage, board: Board, failure: str) -> None:
        self.loading, self.failure = None, failure
        if not failure:
            before = self.session.boards.of.get(page.filesystem)
            board.expect(before.names if before is not None else ())
            self.session.take_page(page, board)
        self.show_reading()

    # Showing -------------------------------------------------------------------------------------------------

    def show_reading(self) -> None:
        """Compute what is to be shown and give each part its own."""
        if self.stopping.is_set():
            return
        with self.lock:
            self.reading = reading = self.session.reading(self.now_us())
        width = self.size.width
        source = self.feed or self.recording
        origin = source.origin if source is not None else ""
        self.lines["title"].update(summary.title(origin, reading, self.mode, width))
        self.lines["totals"].update(summary.totals(reading, width))
        self.lines["coverage"].update(summary.coverage(reading, width))
        self._show_message(reading)
        if reading is not None:
            self.table.show(reading, self.session.order)
        self._show_detail()

    @property
    def mode(self) -> str:
        """Live, held, or playing at some speed."""
        session = self.session
        if session.is_recording:
            return f"▶ playback {session.speed:g}×" if session.playing else "❚❚ paused"
        return "live" if session.at_us is None else "❚❚ paused"

    def _show_message(self, reading: LiveReading | None) -> None:
        lines = [line for line in (self.said, *self._warnings(reading)) if line]
        style = words.STYLES["busy" if reading is not None and reading.stale else "moderate"]
        if not lines and reading is not None and reading.notes:
            lines, style = reading.notes[:1], "dim"
        text = Text("\n".join(_cut(line, self.size.width - 2) for line in lines[:3]), style=style)
        message = self.lines["message"]
        message.display = bool(lines)
        message.update(text)

    def _warnings(self, reading: LiveReading | None) -> Iterator[str]:
        if self.failure:
            yield f"trying again: {self.failure}"
        if self.loading is not None:
            yield f"loading {_span(self.loading)} …"
        elif (reading is None or reading.time is None) and not self.failure:
            yield "no interval here" if self.session.is_recording else "no interval yet: the first needs two samples"
        if reading is not None and reading.stale and not self.failure:
            yield summary.no_data(reading)
        if reading is not None and reading.time is not None and not reading.has_levels:
            yield reading.level_unknown
        if self.problems:
            latest = next(reversed(self.problems.values()))
            yield f"not understood: {latest}" + (
                f" and {len(self.problems) - 1} more" if len(self.problems) > 1 else ""
            )
        if self.session.order.pattern:
            yield f"filter: {self.session.order.pattern}  (Esc clears it)"

    def _show_detail(self) -> None:
        pane, table = self.pane, self.table
        if not pane.display:
            return
        is_low = self.size.height < LOW_SCREEN
        table.styles.height = 0 if is_low else "1fr"  # it keeps the focus, so that its keys choose another target
        height = self.size.height - 5 if is_low else DETAIL_HEIGHT
        pane.styles.height = height
        line, board, reading = table.chosen_line, self.session.board, self.reading
        if line is None or board is None or reading is None or reading.time is None:
            pane.update(Text(" nothing to show yet", style="dim"))
            return
        with self.lock:
            lines = detail(board, line, epoch_us(reading.time), self.size.width, height - 1, reading)
        pane.update(Text("\n").join(lines))

    def on_resize(self, event: events.Resize) -> None:
        """Lay everything out for the new size."""
        self.call_after_refresh(self.show_reading)

    # Keys ----------------------------------------------------------------------------------------------------

    def _changed(self, said: str = "") -> None:
        self.said = said
        self.show_reading()

    def action_pause(self) -> None:
        """Hold or go on."""
        self.session.toggle()
        self._changed()

    def action_step(self, ticks: int) -> None:
        """One tick on or back, held."""
        self.session.step(ticks)
        self._changed()

    def action_skip(self, minutes: int) -> None:
        """A minute on or back."""
        self.session.skip(minutes * MINUTE_US)
        self._changed()

    def action_speed(self, step: int) -> None:
        """Play faster or slower."""
        if not self.session.is_recording:
            self._changed("speed is for playback: iolens top --store URL --from TIME")
            return
        self.session.change_speed(step)
        self._changed()

    def action_home(self) -> None:
        """The first tick."""
        self.session.home()
        self._changed()

    def action_end(self) -> None:
        """The newest tick, and follow it."""
        self.session.end()
        self._changed()

    def action_sort(self, step: int) -> None:
        """Sort by the column beside."""
        shown = [placed.column.key for placed in self.table.columns]
        self.session.order.move(shown, step)
        self._changed()

    def action_column(self, number: int) -> None:
        """Sort by a column by its number on the screen."""
        shown = [column.column.key for column in self.table.columns if column.column.key in SORTABLE]
        if number < len(shown):
            self.session.order.sort_by(shown[number])
        self._changed()

    def action_reverse(self) -> None:
        """Turn the order round."""
        self.session.order.descending = not self.session.order.descending
        self._changed()

    def action_filesystem(self) -> None:
        """The next file system."""
        self.session.next_filesystem()
        names = self.session.boards.filesystems
        self._changed("" if len(names) > 1 else "there is only one file system here")

    def action_servers(self) -> None:
        """Group the targets by server, or no longer."""
        order = self.session.order
        order.by_server = not order.by_server
        are_known = self.reading is None or self.reading.servers is not None
        self._changed("" if are_known or not order.by_server else "no two servers are known here")

    def action_detail(self) -> None:
        """Open or close the pane of one target."""
        self._open_detail(not self.pane.display)

    def action_leave(self) -> None:
        """Close the prompt (a filter goes with it), else the pane, else clear the filter."""
        if self.asking:
            is_filter, self.asking = self.asking == "filter", ""
            self._close_prompt()
        else:
            is_filter = not self.pane.display
            self._open_detail(False)
        if is_filter:
            self.session.order.pattern = ""
        self._changed()

    def action_help(self) -> None:
        """The help screen."""
        self.push_screen(HelpScreen())

    def action_filter(self) -> None:
        """Ask for a part of a name."""
        self._ask("filter", self.session.order.pattern, "part of a target's name, or a pattern such as *OST00[0-7]*")

    def action_ask_time(self) -> None:
        """Ask briefly."""
        self._ask("time", "", "go to: 14:30, 14:30:05 or 2026-01-31T14:30:00Z")

    def _open_detail(self, is_open: bool) -> None:
        self.pane.display = is_open
        self.table.styles.height = "1fr"
        self._changed()

    def _ask(self, what: str, value: str, hint: str) -> None:
        self.asking = what
        prompt = self.prompt
        prompt.value, prompt.placeholder, prompt.display = value, hint, True
        prompt.cursor_position = len(value)
        self.set_focus(prompt)  # at once: the next key may be on its way

    def on_input_changed(self, event: Input.Changed) -> None:
        """A filter works while it is typed."""
        if self.asking == "filter":
            self.session.order.pattern = event.value.strip()
            self._changed()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The answer is complete."""
        asked, self.asking = self.asking, ""
        self._close_prompt()
        self._changed(self._go_to(event.value.strip()) if asked == "time" else "")

    def _close_prompt(self) -> None:
        self.prompt.display = False
        self.set_focus(self.table)

    def _go_to(self, text: str) -> str:
        """Seek to what was typed; what is wrong with it otherwise."""
        time = self.reading.time if self.reading is not None else None
        if ":" in text and "-" not in text and time is not None:
            text = f"{show_time(time)[:10]}T{text}"
        try:
            if (asked := utc_time(text, zone_name())) is not None:
                self.session.seek(epoch_us(asked))
        except ValueError as error:
            return str(error)
        return ""

    def on_target_table_sort_asked(self, event: TargetTable.SortAsked) -> None:
        """A heading was clicked."""
        self.session.order.sort_by(event.key)
        self._changed()

    def on_target_table_chosen(self, event: TargetTable.Chosen) -> None:
        """Another line: the pane follows; a second click opens it."""
        if event.opened:
            self._open_detail(True)
        else:
            self._show_detail()


class HelpScreen(ModalScreen[None]):
    """Keys, columns and signs."""

    CSS = """
    HelpScreen { align: center middle; background: #121212 60%; }
    #help { width: 92; max-width: 100%; height: auto; max-height: 100%; overflow-y: auto;
            border: round #5f8787; background: #1c1c1c; padding: 0 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,question_mark,h,enter,space", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        """One page of text."""
        yield Static(help_text(), id="help")


KEYS: Final = (
    ("↑ ↓ PgUp PgDn g G", "choose a target"),
    ("Enter, click twice", "open or close the detail of the target"),
    ("< >  1…9 0, click", "sort by a column; r reverses"),
    ("/", "filter: part of a name, or a pattern with * ? […]; Esc clears"),
    ("Space", "pause; again: continue (live: at the newest tick)"),
    ("← →  Shift ← →", "back or forward by a tick, a minute"),
    ("Home End", "first tick; End follows the newest again"),
    ("[ ]", "slower, faster (playback)"),
    ("t", "go to a time"),
    ("f", "next file system"),
    ("s", "group by server, with a line for each: sums, and mean FSU"),
    ("q", "quit"),
)


def help_text() -> Text:
    """Keys, columns and signs as one text."""
    text = Text()
    for name, meaning in (*KEYS, ("", ""), *((column.heading, column.meaning) for column in COLUMNS)):
        text.append(f"{name:20}", style="bold")
        text.append(f"{meaning}\n")
    text.append("\n")
    signs = " ".join(f"{words.MARKS[name]} {name}" for name in ("idle", "moderate", "busy"))
    text.append(f"{signs}  (FSU below 2, to 30, above)\n")
    text.append(
        f"{words.LATE} late  {words.SILENT} silent: no numbers  {words.AFTER_RESET} counters were reset  – not known"
    )
    return text


def _cut(line: str, width: int) -> str:
    """One line of a message, however long it was."""
    plain = visible(" ".join(line.split()))
    return plain if len(plain) <= width else f"{plain[: max(0, width - 1)]}…"


def _span(page: RecordedPage) -> str:
    since, until = (from_epoch_us(end) for end in (page.since_us, page.until_us))
    return f"{page.filesystem} {show_time(since)} to {time_with_zone(until)}"
