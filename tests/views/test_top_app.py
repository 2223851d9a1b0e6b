"""The terminal view driven by keys and mouse: it sorts, filters, holds, plays back, and outlives what goes wrong."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot
from textual.widgets import Input, Static

from iolens.analyses.live.analysis import Board
from iolens.analyses.live.boards import Boards
from iolens.errors import StoreError
from iolens.records import Item, Note, Problem, Rows
from iolens.units import epoch_us
from iolens.views.top.app import HelpScreen, TopApp, help_text
from iolens.views.top.session import Session
from iolens.views.top.table import TargetTable
from tests.hostile_names import HOSTILE, SOURCES_OF_TROUBLE
from tests.views.test_hostile_names import is_harmless
from tests.views.top_rows import T0_US, TICK_US, at, boards_of, rows, ticks

HOUR_US = 3_600_000_000
WIDE = (140, 40)


class Feed:
    """Gives what it is reported to give; raises when it is reported to."""

    origin, interval_s, said = "made up", 0.05, ""

    def __init__(self, *polls: Sequence[Item] | Exception) -> None:
        self.polls = list(polls)
        self.asked, self.failing = 0, False
        self.lock = threading.Lock()

    def give(self, poll: Sequence[Item] | Exception) -> None:
        with self.lock:
            self.polls.append(poll)

    def poll(self) -> Sequence[Item]:
        with self.lock:
            self.asked += 1
            again = self.failing and len(self.polls) == 1  # fails until it is reported otherwise
            result = self.polls[0] if again else self.polls.pop(0) if self.polls else []
        if isinstance(result, Exception):
            raise result
        return result

    def trouble(self) -> str:
        return self.said


class Tape:
    """A recording of one file system: 720 ticks."""

    origin = "store made-up"

    def __init__(self) -> None:
        self.failures = 0

    def rows(self, filesystem: str, since_us: int, until_us: int) -> Sequence[Item]:
        if self.failures:
            self.failures -= 1
            raise StoreError("the store is away")
        low, high = (since_us - T0_US) // TICK_US, (until_us - T0_US) // TICK_US
        return ticks(range(max(low, 0) + 1, min(high, 720) + 1))


Script = Callable[[TopApp, Pilot[None]], Awaitable[None]]


def run(app: TopApp, script: Script, size: tuple[int, int] = WIDE) -> None:
    async def drive() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(app, pilot)

    asyncio.run(drive())


def view(items: Sequence[Item] = (), feed: Feed | None = None, **options: Any) -> TopApp:
    now = options.pop("now_us", lambda: at(21) + 2_000_000)
    return TopApp(Session(boards_of(items or ticks(range(1, 21)))), feed or Feed(), now_us=now, **options)


async def until(pilot: Pilot[None], true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        await pilot.pause(0.02)


def table(app: TopApp) -> TargetTable:
    return app.query_one(TargetTable)


def names(app: TopApp) -> list[str]:
    return [line.target.removeprefix("scratch-") for line in table(app).lines]


def text(app: TopApp, part: str) -> str:
    return str(app.query_one(f"#{part}", Static).render())


def screen(app: TopApp) -> str:
    """Every row of the table as it is drawn."""
    widget = table(app)
    return "\n".join(widget.render_line(y).text for y in range(widget.size.height))


def tick(app: TopApp) -> int | None:
    if app.reading is None or app.reading.time is None:
        return None
    return (epoch_us(app.reading.time) - T0_US) // TICK_US


# Showing ------------------------------------------------------------------------------------------------------------


def test_it_shows_targets_totals_and_coverage() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        assert names(app) == ["OST0002", "OST0000", "OST0001"]  # by FSU: 50, 20, 1
        drawn = screen(app)
        assert "▲ OST0002" in drawn
        assert "▪ OST0000" in drawn
        assert "· OST0001" in drawn
        assert "3 of 3 targets report" in text(app, "coverage")
        assert "made up" in text(app, "title")
        assert "live" in text(app, "title")
        first = drawn.splitlines()[1].split()
        assert first[2] == pytest.approx("50.0")

    run(view(), script)


def test_new_rows_appear_and_old_ones_are_kept() -> None:
    feed = Feed()

    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        feed.give(rows(21, {"OST0000": 90.0, "OST0001": 1.0, "OST0002": 50.0}))
        await until(pilot, lambda: tick(app) == 21)
        assert names(app)[0] == "OST0000"

    run(view(feed=feed), script)


def test_a_dead_target_is_shown_as_such() -> None:
    items = [*ticks(range(1, 10)), *ticks(range(10, 21), targets=("OST0000", "OST0001"))]

    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        assert names(app)[-1] == "OST0002"
        assert "✗ OST0002  silent, last interval" in screen(app)
        assert "silent: OST0002" in text(app, "coverage")

    run(view(items), script)


def test_names_that_a_terminal_would_obey_are_shown() -> None:
    """In the table, the lines above it, the detail, and what is said of problems."""
    names_ = [name.replace("/", "") for name in SOURCES_OF_TROUBLE]
    boards = Boards(Board)
    for tick_ in range(1, 6):
        boards.take(rows(tick_, dict.fromkeys(names_, 20.0), filesystem=HOSTILE["clear the screen"]))
    boards.expect({HOSTILE["clear the screen"]: [HOSTILE["set the title"] + "2"]})  # one that does not report
    feed = Feed([Problem(HOSTILE["clear the screen"], 3, HOSTILE["set the title"])])
    feed.origin = HOSTILE["new lines"]
    app = TopApp(Session(boards), feed, now_us=lambda: at(5) + 2_000_000)

    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "not understood" in text(app, "message"))
        await pilot.press("enter")
        await pilot.pause()
        for number in range(len(names_) + 1):
            drawn = [screen(app), *(text(app, part) for part in ("title", "totals", "coverage", "message", "detail"))]
            assert all(is_harmless(item) for item in drawn), number
            assert {cell_len(line) for line in screen(app).splitlines()} == {table(app).size.width}
            await pilot.press("down")
        assert "a\\x1b[2J\\x1b[Hb" in text(app, "title")
        shown = app.export_screenshot()  # the whole screen, as SVG
        ElementTree.fromstring(shown)

    run(app, script, (200, 60))


# Keys and mouse -----------------------------------------------------------------------------------------------------


def test_it_sorts_by_keys() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("1")
        assert names(app) == ["OST0000", "OST0001", "OST0002"]
        await pilot.press("r")
        assert names(app) == ["OST0002", "OST0001", "OST0000"]
        await pilot.press("greater_than_sign")
        assert app.session.order.key == "fsu_pct"
        await pilot.press("greater_than_sign", "greater_than_sign")
        assert app.session.order.key == "write_bytes_per_s"
        assert "▼wr MiB/s" in screen(app).splitlines()[0]
        await pilot.press("less_than_sign")
        assert app.session.order.key == "read_bytes_per_s"

    run(view(), script)


def test_it_sorts_by_mouse_and_opens_the_detail_at_the_second_click() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.click(TargetTable, offset=(4, 0))
        assert names(app) == ["OST0000", "OST0001", "OST0002"]
        await pilot.click(TargetTable, offset=(4, 0))
        assert names(app) == ["OST0002", "OST0001", "OST0000"]
        await pilot.click(TargetTable, offset=(4, 2))
        assert table(app).chosen == "scratch-OST0001"
        assert not app.query_one("#detail").display
        await pilot.click(TargetTable, offset=(4, 2))
        assert app.query_one("#detail").display
        assert "scratch-OST0001" in text(app, "detail")

    run(view(), script)


def test_it_filters_while_one_types_and_escape_clears() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("slash", "0", "0", "1")
        assert names(app) == ["OST0001"]
        assert app.query_one("#prompt", Input).display
        await pilot.press("enter")
        assert names(app) == ["OST0001"]
        assert "filter: 001" in text(app, "message")
        await pilot.press("q")  # typed into nothing: the prompt is closed

    run(view(), script)

    async def escape(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("slash", "asterisk", "2", "space", "f")
        assert app.query_one("#prompt", Input).value == "*2 f"
        await pilot.press("escape")
        assert len(names(app)) == 3
        assert not app.query_one("#prompt", Input).display
        await pilot.press("slash", "2", "enter", "escape")
        assert len(names(app)) == 3

    run(view(), escape)


def test_the_chosen_target_stays_chosen_when_the_order_changes() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("down", "down", "down", "up")
        assert table(app).chosen == "scratch-OST0000"
        await pilot.press("1")
        assert table(app).cursor == 0
        await pilot.press("r")
        assert table(app).cursor == 2
        await pilot.press("G")
        assert table(app).cursor == 2
        await pilot.press("g")
        assert table(app).chosen == "scratch-OST0002"

    run(view(), script)


def test_it_holds_steps_and_goes_on() -> None:
    feed = Feed()

    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("space")
        assert "paused" in text(app, "title")
        feed.give(ticks([21]))
        await until(pilot, lambda: not feed.polls)
        await pilot.pause(0.1)
        assert tick(app) == 20
        await pilot.press("left", "left")
        assert tick(app) == 18
        await pilot.press("right")
        assert tick(app) == 19
        await pilot.press("home")
        assert tick(app) == 1
        await pilot.press("shift+right")
        assert tick(app) == 13
        await pilot.press("end")
        assert tick(app) == 21
        assert "live" in text(app, "title")
        await pilot.press("left_square_bracket")
        assert "speed is for playback" in text(app, "message")

    run(view(feed=feed), script)


def test_it_goes_to_a_time() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("t")
        app.query_one("#prompt", Input).value = "12:27:10"
        await pilot.press("enter")
        assert tick(app) == 6
        await pilot.press("t")
        app.query_one("#prompt", Input).value = "tomorrow"
        await pilot.press("enter")
        assert "not a time" in text(app, "message")
        assert tick(app) == 6
        await pilot.press("t", "escape")
        assert tick(app) == 6

    run(view(), script)


def test_file_systems_switch() -> None:
    items = [*ticks(range(1, 21)), *rows(20, {"OST0000": 5.0}, "home")]

    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        assert "home" in text(app, "title")
        await pilot.press("f")
        assert "scratch" in text(app, "title")
        assert len(names(app)) == 3

    run(view(items), script)

    async def single(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("f")
        assert "only one file system" in text(app, "message")

    run(view(), single)


def test_detail_and_help_open_and_close() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("enter")
        assert "scratch-OST0002" in text(app, "detail")
        assert "(busy)" in text(app, "detail")
        await pilot.press("down")
        assert "scratch-OST0000" in text(app, "detail")
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("escape")
        assert not isinstance(app.screen, HelpScreen)
        assert app.query_one("#detail").display
        await pilot.press("escape")
        assert not app.query_one("#detail").display

    run(view(), script)


def test_on_a_low_screen_the_detail_takes_the_place_of_the_table() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("enter")
        assert table(app).size.height == 0
        assert "scratch-OST0002" in text(app, "detail")
        await pilot.press("down")
        assert "scratch-OST0000" in text(app, "detail")
        await pilot.press("escape")
        assert table(app).size.height > 5
        await pilot.press("down")
        assert table(app).chosen == "scratch-OST0001"

    run(view(), script, (80, 20))


def test_every_key_is_in_the_help() -> None:
    reported = help_text().plain
    for name in ("Space", "Home", "[ ]", "/", "Enter", "f ", "q ", "t ", "r reverses", "FSU %", "small %", "silent"):
        assert name in reported


def test_the_window_may_be_made_narrow_and_wide_again() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        assert "full %" in screen(app)
        await pilot.resize_terminal(50, 12)
        await pilot.pause()
        narrow = screen(app)
        assert "full %" not in narrow
        assert "FSU %" in narrow
        assert max(map(len, narrow.splitlines())) <= 50
        await pilot.resize_terminal(12, 5)
        await pilot.pause()
        await pilot.resize_terminal(140, 40)
        await pilot.pause()
        assert "full %" in screen(app)

    run(view(), script)


def test_it_ends_by_q() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("q")
        assert not app.is_running or app._exit

    run(view(), script)


# What goes wrong ----------------------------------------------------------------------------------------------------


def test_before_the_first_interval_it_says_what_it_waits_for() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        assert "the first needs two samples" in text(app, "message")
        await pilot.press("space", "left", "enter", "down", "r", "f", "home", "end", "1", "escape")

    app = TopApp(Session(Boards(Board)), Feed(), now_us=lambda: at(1))
    run(app, script)


def test_a_feed_that_fails_is_reported_and_tried_again() -> None:
    feed = Feed(StoreError("s3://centre: unreachable"))
    feed.failing = True

    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "trying again: s3://centre: unreachable" in text(app, "message"))
        feed.give(ZeroDivisionError())
        await until(pilot, lambda: "trying again: ZeroDivisionError" in text(app, "message"))
        feed.failing = False
        assert len(names(app)) == 3  # what was known stays
        feed.give(ticks([21]))
        await until(pilot, lambda: tick(app) == 21)
        await until(pilot, lambda: not app.failure)
        assert "trying again" not in text(app, "message")

    run(view(feed=feed), script)


def test_a_writer_that_stopped_is_missed_and_its_trouble_reported() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        assert "no data for 100 s" in text(app, "message")
        await pilot.press("space")
        assert "no data" not in text(app, "message")  # it is held on purpose

    run(view(now_us=lambda: at(40)), script)
    feed = Feed()
    feed.said = "no space for a sample"

    async def trouble(app: TopApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "the agent says: no space for a sample" in text(app, "message"))

    run(view(feed=feed), trouble)


def test_old_data_are_not_shown_as_the_present() -> None:
    """Three hundred days after the last tick nobody reports; a step back shows what was."""

    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        assert "no data for 300 d" in text(app, "message")
        assert "0 of 3 targets report" in text(app, "coverage")
        assert screen(app).count("silent, last interval 300 d ago") == 3
        assert "50.0" not in screen(app)
        title = app.lines["title"].render()
        assert "(300 d ago)" in str(title)
        await pilot.press("left")
        assert "3 of 3 targets report" in text(app, "coverage")
        assert "50.0" in screen(app)

    run(view(now_us=lambda: at(20) + 300 * 86_400_000_000), script)


def test_problems_are_reported_once_and_notes_not_at_all() -> None:
    problem, note = Problem("/proc/x", 3, "not a counter line"), Note("/proc/y", None, "left out by rule")
    feed = Feed([problem, note], [problem], [Problem("/proc/z", None, "cannot be read")])

    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "/proc/z" in text(app, "message"))
        assert "and 1 more" in text(app, "message")
        assert len(app.problems) == 2

    run(view(feed=feed), script)


def test_a_store_tells_which_targets_there_should_be() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(names(app)) == 4)
        assert "did not report here" in screen(app)
        assert "3 of 4 targets report" in text(app, "coverage")

    run(view(feed=Feed(ticks([20])), expected=lambda: {"scratch": ["scratch-OST00ff"]}), script)


# Playback -----------------------------------------------------------------------------------------------------------


def recording(at_us: int | None = None, tape: Tape | None = None) -> TopApp:
    session = Session(Boards(Board), filesystem="scratch", window=(T0_US, T0_US + HOUR_US), at_us=at_us)
    return TopApp(session, recording=tape or Tape(), new_board=lambda name: Board(name, most_cells=10**7))


def test_it_plays_back_with_speed_pause_step_and_seek() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: tick(app) is not None)
        assert "playback 10×" in text(app, "title")
        before = tick(app) or 0
        await pilot.press("right_square_bracket", "right_square_bracket")
        assert "playback 60×" in text(app, "title")
        await until(pilot, lambda: (tick(app) or 0) >= before + 5)
        await pilot.press("space")
        held = tick(app)
        assert "paused" in text(app, "title")
        await pilot.pause(0.5)
        assert tick(app) == held
        await pilot.press("right", "right", "left")
        assert tick(app) == (held or 0) + 1
        await pilot.press("t")
        app.query_one("#prompt", Input).value = "13:00:00"
        await pilot.press("enter")
        assert tick(app) == (13 * 3600 - (12 * 3600 + 26 * 60 + 40)) // 5
        await pilot.press("end")
        assert tick(app) == 720
        await pilot.press("home")
        assert app.session.at_us == T0_US
        assert "ago" not in text(app, "title")

    run(recording(), script)


def test_a_time_of_the_past_is_held() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: tick(app) == 100)
        await pilot.pause(0.3)
        assert tick(app) == 100
        assert names(app)[0] == "OST0000"  # its FSU is its tick

    run(recording(at(100)), script)


def test_a_page_that_does_not_come_is_reported_and_asked_for_again() -> None:
    tape = Tape()
    tape.failures = 1

    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "the store is away" in text(app, "message"))
        await until(pilot, lambda: tick(app) == 50)
        assert "away" not in text(app, "message")

    run(recording(at(50), tape), script)


# Size ---------------------------------------------------------------------------------------------------------------


def test_a_thousand_targets_are_drawn_as_fast_as_forty() -> None:
    """Only what is visible is drawn: the work of a redraw does not grow with the targets."""
    many = {f"OST{n:04x}": float(n % 100) for n in range(1000)}
    items = [item for tick in range(1, 8) for item in rows(tick, many)]

    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        widget, drawn = table(app), []
        original = widget.render_line
        widget.render_line = lambda y: drawn.append(y) or original(y)  # type: ignore[func-returns-value,method-assign,return-value]
        app.show_reading()
        await pilot.pause()
        assert 0 < len(drawn) <= 2 * widget.size.height
        await pilot.press("G")
        assert widget.chosen_line is not None
        assert widget.cursor == 999
        assert short(widget) in screen(app)
        drawn.clear()
        app.session._last = None
        app.show_reading()
        await pilot.pause()
        assert 0 < len(drawn) <= 2 * widget.size.height  # also at the other end of the list

    def short(widget: TargetTable) -> str:
        return widget.lines[999].target.removeprefix("scratch-")

    run(view(items, now_us=lambda: at(8)), script)


def test_targets_are_grouped_by_server_and_a_server_has_a_detail() -> None:
    hosts = {"filesystem": "scratch", "target": ["scratch-OST0000", "scratch-OST0001"], "host": ["oss1", "oss2"]}

    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("s")
        await pilot.pause()
        assert names(app) == ["oss1", "OST0000", "oss2", "OST0001", "OST0002"]
        assert "▪ oss1 " in screen(app)
        assert "▪   OST0000" in screen(app)
        await pilot.press("g", "enter")
        await pilot.pause()
        assert "1 targets: scratch-OST0000" in text(app, "detail")
        await pilot.press("s")
        await pilot.pause()
        assert names(app) == ["OST0002", "OST0000", "OST0001"]

    run(view([*ticks(range(1, 21)), Rows("target_servers", hosts, 2)]), script)


def test_the_key_says_where_no_servers_are_known() -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("s")
        await pilot.pause()
        assert "no two servers are known here" in text(app, "message")
        assert names(app) == ["OST0002", "OST0000", "OST0001"]

    run(view(), script)
