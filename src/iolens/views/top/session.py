"""What the view looks at: file system, time, order and filter. Keys change it, widgets show it; no terminal here."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import chain
from typing import Final, NamedTuple

from iolens.analyses.live.analysis import MOST_CELLS, Board, LiveReading
from iolens.analyses.live.boards import Boards
from iolens.analyses.live.target_lines import TargetLine
from iolens.units import epoch_us
from iolens.views.top.columns import COLUMNS, SORTABLE, SPARKLINE, Value

SPEEDS: Final = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)  # simulated seconds per second
MINUTE_US: Final = 60_000_000
MARGIN_US: Final = 5 * MINUTE_US  # read before a page, for what holds at its beginning and for sparklines
SHORTEST_PAGE_US: Final = 5 * MINUTE_US
LONGEST_PAGE_US: Final = 60 * MINUTE_US
KEPT_US: Final = 5_000_000  # the ages of targets are renewed at least this often
USUAL_TICK_US: Final = 5_000_000
_BY_KEY: Final = {column.key: column for column in COLUMNS}


@dataclass(frozen=True, slots=True)
class RecordedPage:
    """A stretch of a recording: [since, until) of one file system, microseconds since 1970."""

    filesystem: str
    since_us: int
    until_us: int


@dataclass(slots=True)
class LineOrder:
    """How the lines are sorted and which are shown."""

    key: str = "fsu_pct"
    descending: bool = True
    pattern: str = ""
    by_server: bool = False

    def lines(self, reading: LiveReading) -> list[TargetLine]:
        """Lines that match, in order; by server, each has its sum before its targets, which are in the same order."""
        value = _BY_KEY[self.key].value
        if self.key == "fsu_pct" and all(line.fsu_pct is None for line in reading.targets):
            value = _BY_KEY["fsu_bytes_pct"].value
        shown = self._sorted([line for line in reading.targets if self._is_shown(line)], value)
        if not self.by_server or reading.servers is None:
            return shown
        of_servers = {line.server for line in shown}
        servers = self._sorted([line for line in reading.servers if line.target in of_servers], value)
        groups = [[server, *(line for line in shown if line.server == server.target)] for server in servers]
        named = {server.target for server in servers}
        return [*chain(*groups), *(line for line in shown if line.server not in named)]

    def _sorted(self, lines: list[TargetLine], value: Callable[[TargetLine], Value]) -> list[TargetLine]:
        """What is not known comes last either way, equals by name."""
        lines.sort(key=lambda line: line.target)
        known = sorted(
            (line for line in lines if value(line) is not None),
            key=lambda line: value(line) or 0,
            reverse=self.descending,
        )
        return known + [line for line in lines if value(line) is None]

    def _is_shown(self, line: TargetLine) -> bool:
        return self.matches(line.target) or (line.server is not None and self.matches(line.server))

    def matches(self, target: str) -> bool:
        """Whether a name has the pattern: a part of it, or a pattern with `*`, `?`, `[…]` for the whole of it."""
        wanted, name = self.pattern.lower(), target.lower()
        if any(mark in wanted for mark in "*?["):
            return fnmatchcase(name, wanted) or fnmatchcase(name, f"*{wanted}")
        return wanted in name

    def sort_by(self, key: str) -> None:
        """Sort by a column; once more turns it round. Names begin at A, numbers at the largest."""
        key = "fsu_pct" if key == SPARKLINE.key else key
        if key == self.key:
            self.descending = not self.descending
        else:
            self.key, self.descending = key, key != "target"

    def move(self, keys: Sequence[str], step: int) -> None:
        """Sort by the next or the last of the columns shown."""
        sortable = [key for key in keys if key in SORTABLE] or list(SORTABLE)
        place = sortable.index(self.key) if self.key in sortable else 0
        self.sort_by(sortable[(place + step) % len(sortable)])


class _Computed(NamedTuple):
    """A reading, of which board and time it is, and when it was made."""

    state: tuple[Board, int, int | None]
    now_us: int | None
    reading: LiveReading


class Session:
    """The time that is looked at.

    Live, `at_us` None follows the newest tick; a time is a look back at what is kept. A recording has a `window` and
    a clock of its own.
    """

    def __init__(
        self,
        boards: Boards,
        *,
        filesystem: str | None = None,
        window: tuple[int, int] | None = None,
        at_us: int | None = None,
    ) -> None:
        self.boards, self.window = boards, window
        self._filesystem = filesystem
        self.order = LineOrder()
        self.speed = 10.0 if window is not None else 1.0
        self.at_us = at_us if at_us is not None else (window[0] if window is not None else None)
        self.playing = at_us is None
        self._clock_us = float(self.at_us or 0)
        self.loaded: RecordedPage | None = None
        self._page_us: dict[str, int] = {}
        self._last: _Computed | None = None

    @property
    def is_recording(self) -> bool:
        """Whether a past stretch is played back."""
        return self.window is not None

    @property
    def filesystem(self) -> str | None:
        """The file system shown: the one chosen, else the first."""
        if self._filesystem is None and self.boards.filesystems:
            return self.boards.filesystems[0]
        return self._filesystem

    @property
    def board(self) -> Board | None:
        """Its board, once there is one."""
        return self.boards.of.get(self.filesystem or "")

    def reading(self, now_us: int | None) -> LiveReading | None:
        """What is to be shown; computed anew when the board or the time has changed, or it is a while ago."""
        board = self.board
        if board is None:
            return None
        now = None if self.is_recording else now_us
        state, last = (board, board.version, self.at_us), self._last
        if last is None or last.state != state or abs((now or 0) - (last.now_us or 0)) > KEPT_US:
            last = self._last = _Computed(state, now, board.reading(self.at_us, now))
        live_reading = last.reading
        if now is None or live_reading.time is None:
            return live_reading
        return replace(live_reading, age_s=max(0.0, (now - epoch_us(live_reading.time)) / 1e6))

    def next_filesystem(self) -> None:
        """Show the next file system."""
        names = self.boards.filesystems
        if names:
            current = self.filesystem
            self._filesystem = names[(names.index(current) + 1) % len(names) if current in names else 0]

    def toggle(self) -> None:
        """Hold, or go on: live at the newest tick, a recording where it is (from its start when it had ended)."""
        self.playing = not self.playing
        if not self.playing:
            self._hold()
        elif self.window is None:
            self.at_us = None
        elif self.at_us is not None and self.at_us >= self._last_us():
            self._go(self.window[0])

    def step(self, ticks: int) -> None:
        """Hold, some ticks later or earlier."""
        self.playing = False
        self._hold()
        times = self._times()
        if self.at_us is None or not times:
            return
        place = bisect.bisect_right(times, self.at_us) - 1 + ticks
        if place < 0 and self.window is not None:  # before the page: some time there, and its page is asked for
            self._go(max(self.window[0], times[0] - USUAL_TICK_US))
        else:
            self._go(times[min(max(place, 0), len(times) - 1)])

    def seek(self, at_us: int) -> None:
        """Go to a time; live, one that is not kept any more is the oldest that is."""
        if self.window is not None:
            self._go(min(max(at_us, self.window[0]), self.window[1]))
            return
        self.playing = False
        times = self._times()
        if times:
            self._go(min(max(at_us, times[0]), times[-1]))

    def skip(self, us: int) -> None:
        """Go some time later or earlier."""
        self._hold()
        if self.at_us is not None:
            self.seek(self.at_us + us)

    def home(self) -> None:
        """Go to the first tick there is."""
        if self.window is not None:
            self._go(self.window[0])
        elif self._times():
            self.seek(self._times()[0])

    def end(self) -> None:
        """Live: follow the newest tick again. A recording: hold at its last."""
        if self.window is None:
            self.at_us, self.playing = None, True
        else:
            self._go(self.window[1])
            self.playing = False

    def change_speed(self, step: int) -> None:
        """Play faster or slower."""
        place = min(range(len(SPEEDS)), key=lambda n: abs(SPEEDS[n] - self.speed))
        self.speed = SPEEDS[min(max(place + step, 0), len(SPEEDS) - 1)]

    def advance(self, seconds: float) -> bool:
        """Let a recording play for some real time; whether there is another tick to show."""
        if self.window is None or not self.playing or self.page() is not None:
            return False
        before = self._tick()
        self._clock_us = min(self._clock_us + seconds * self.speed * 1e6, float(self.window[1]))
        self.at_us = int(self._clock_us)
        if self.at_us >= self._last_us():
            self.playing = False
        return self._tick() != before or self.page() is not None

    def page(self) -> RecordedPage | None:
        """The page of a recording that must be loaded before its time can be shown; None: nothing is missing."""
        if self.window is None or self.filesystem is None or self.at_us is None:
            return None
        page = self._page_of(self.filesystem, min(self.at_us, self.window[1] - 1))
        return None if page == self.loaded else page

    def take_page(self, page: RecordedPage, board: Board) -> None:
        """A page was loaded into a board of its own."""
        self.boards.of[page.filesystem] = board
        self.loaded = page

    def _page_of(self, filesystem: str, at_us: int) -> RecordedPage:
        assert self.window is not None
        since, until = self.window
        if filesystem not in self._page_us:
            targets = len(self.boards.of[filesystem].names) if filesystem in self.boards.of else 1
            ticks = MOST_CELLS // max(1, targets)
            self._page_us[filesystem] = min(max(ticks * USUAL_TICK_US, SHORTEST_PAGE_US), LONGEST_PAGE_US)
        length = self._page_us[filesystem]
        begin = since + (at_us - since) // length * length
        return RecordedPage(filesystem, begin, min(begin + length, until))

    def _times(self) -> Sequence[int]:
        """Ticks one can go to."""
        if self.board is None:
            return ()
        if self.window is None:
            return self.board.times
        since, until = self.window
        return [time for time in self.board.times if since <= time <= until]

    def _tick(self) -> int | None:
        times = self._times()
        place = bisect.bisect_right(times, self.at_us or 0)
        return times[place - 1] if place else None

    def _last_us(self) -> int:
        """The last tick of a recording, as far as it is loaded: before that its end."""
        assert self.window is not None
        times = self._times()
        is_last_page = self.loaded is not None and self.loaded.until_us >= self.window[1]
        return times[-1] if times and is_last_page else self.window[1]

    def _hold(self) -> None:
        if self.at_us is None and self.board is not None:
            self.at_us = self.board.newest()

    def _go(self, at_us: int) -> None:
        self.at_us, self._clock_us = at_us, float(at_us)
