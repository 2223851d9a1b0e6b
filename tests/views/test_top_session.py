"""What the terminal view shows: order, filter, columns, signs, and the time that is looked at."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from iolens.analyses.live.analysis import Board, LiveReading
from iolens.analyses.live.boards import Boards
from iolens.analyses.live.target_lines import TargetLine
from iolens.models.transaction_time import FsuCategory
from iolens.records import Rows
from iolens.views.render.json_text import to_plain
from iolens.views.top import columns as words
from iolens.views.top import summary
from iolens.views.top.columns import COLUMNS, SORTABLE, place, short_name
from iolens.views.top.session import MARGIN_US, SPEEDS, LineOrder, RecordedPage, Session
from iolens.views.top.summary import detail
from tests.views.top_rows import T0_US, TICK_US, at, boards_of, rows, ticks

HOUR_US = 3_600_000_000


def reading(lines: list[TargetLine]) -> LiveReading:
    from dataclasses import replace

    return replace(Board("scratch").reading(), targets=lines)


def some_lines(seed: int = 1, count: int = 40) -> list[TargetLine]:
    chance = random.Random(seed)

    def value(most: float) -> float | None:
        return None if chance.random() < 0.2 else round(chance.random() * most, 1)

    return [
        TargetLine(f"scratch-OST{n:04x}", "ost", "reporting", fsu_pct=value(100), iops=value(9), used_pct=value(100),
                   latency_s=value(1), read_bytes_per_s=value(1e9), write_bytes_per_s=value(1e9), age_s=value(60),
                   small_io_pct=value(100), metadata_ops_per_s=value(1e4), util_pct=value(99), fsu_bytes_pct=value(99))
        for n in chance.sample(range(count), count)
    ]  # fmt: skip


# Order ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", SORTABLE)
@pytest.mark.parametrize("descending", [True, False])
def test_lines_are_sorted_by_any_column_with_the_unknown_last(key: str, descending: bool) -> None:
    lines = some_lines()
    result = LineOrder(key, descending).lines(reading(lines))
    values = [getattr(line, key) for line in result]
    known = [value for value in values if value is not None]
    assert sorted(known, reverse=descending) == known
    assert all(value is None for value in values[len(known) :])
    assert {line.target for line in result} == {line.target for line in lines}
    for before, after in pairwise(result):
        if getattr(before, key) == getattr(after, key):
            assert before.target < after.target


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", 40), ("ost", 40), ("OST0001", 1), ("000", 16), ("*000[1-3]", 3), ("scratch-OST00?0", 3), ("mdt", 0),
        ("*0", 3), ("ost00?f", 2), ("[", 0),
    ],
)  # fmt: skip
def test_a_filter_is_a_part_of_the_name_or_a_pattern(pattern: str, expected: int) -> None:
    assert len(LineOrder(pattern=pattern).lines(reading(some_lines()))) == expected


def test_sorting_by_the_same_column_again_turns_it_round() -> None:
    order = LineOrder()
    order.sort_by("iops")
    assert (order.key, order.descending) == ("iops", True)
    order.sort_by("iops")
    assert order.descending is False
    order.sort_by("target")
    assert (order.key, order.descending) == ("target", False)
    order.sort_by("course")  # the sparkline is sorted by what it shows
    assert order.key == "fsu_pct"


def test_the_next_column_is_the_next_one_shown() -> None:
    order = LineOrder("fsu_pct")
    shown = ["target", "fsu_pct", "course", "read_bytes_per_s"]
    keys = []
    for step in (1, 1, 1, -1):
        order.move(shown, step)
        keys.append(order.key)
    assert keys == ["read_bytes_per_s", "target", "fsu_pct", "target"]


# Columns and signs ------------------------------------------------------------------------------------------------


def test_columns_fit_at_any_width() -> None:
    for width in range(1, 220):
        placed = place(width, some_lines(), "scratch")
        assert placed[0].column.key == "target"
        assert width < 20 or placed[-1].start + placed[-1].width <= width
        assert all(before.start + before.width < after.start for before, after in pairwise(placed))


def test_the_less_important_columns_go_first() -> None:
    kept: list[set[str]] = [
        {item.column.key for item in place(width, some_lines(), "scratch")} for width in (30, 60, 200)
    ]
    assert kept[0] < kept[1] < kept[2] == {column.key for column in COLUMNS}
    assert "fsu_pct" in kept[0]
    assert "age_s" not in kept[1]


def test_a_column_nobody_has_a_value_for_is_not_shown() -> None:
    keys = [item.column.key for item in place(200, [TargetLine("a-OST0000", "ost", "reporting", fsu_pct=1.0)], "a")]
    assert "fsu_pct" in keys
    assert {"util_pct", "fsu_bytes_pct", "metadata_ops_per_s", "latency_s"}.isdisjoint(keys)


def test_disks_without_sizes_are_sorted_and_shown_by_bytes() -> None:
    lines = [TargetLine(f"oss1:sd{n}", "device", "reporting", fsu_bytes_pct=pct) for n, pct in (("a", 1.0), ("b", 9.0))]
    assert [line.target for line in LineOrder().lines(reading(lines))] == ["oss1:sdb", "oss1:sda"]
    keys = [item.column.key for item in place(120, lines, "oss1")]
    assert "fsu_bytes_pct" in keys
    assert "fsu_pct" not in keys


def test_names_lose_what_the_header_says() -> None:
    assert short_name("scratch-OST0001", "scratch") == "OST0001"
    assert short_name("oss1:sdb", "oss1") == "sdb"
    assert short_name("scratch2-OST0001", "scratch") == "scratch2-OST0001"


def test_the_height_of_a_sparkline_tells_the_category() -> None:
    for tenths in range(1300):
        height = words.LEVELS.index(words.level(tenths / 10))
        assert ("idle" if height == 0 else "moderate" if height <= 3 else "busy") == FsuCategory.of(tenths / 10)


def test_sparklines_and_bars() -> None:
    assert "".join(map(words.level, [None, 0.0, 30.0, 31.0, 100.0])) == " ▁▄▅█"
    assert words.bar(0.5, 4) == "██  "
    assert words.bar(1e-9, 4) == "▏   "
    assert words.bar(0.0, 4) == "    "
    assert words.bar(7.0, 4) == "████"


def test_numbers_fit_their_cells_and_the_unknown_is_a_dash() -> None:
    assert [words.short(value) for value in (None, 0, 0.01, 0.34, 9.96, 1234.5)] == [
        "–",
        "0",
        "<0.1",
        "0.3",
        "10",
        "1,234",
    ]
    assert [words.per_cent(value) for value in (None, 0.0, 4.25, 99.96, 130.2)] == ["–", "0.0", "4.2", "99.9", "130"]
    assert words.mib_per_s(5 << 20) == "5.0"
    assert words.milliseconds(0.004) == "4.0"
    assert [words.ago(value) for value in (None, 3, 600, 9000, 400_000)] == ["–", "3 s", "10 min", "2 h", "5 d"]


# The summary and the detail -----------------------------------------------------------------------------------------


def silent_and_reset() -> LiveReading:
    board = Board("scratch", notes=("calibrate your own disks",))
    board.take(ticks(range(1, 5)))
    board.take(rows(9, {"OST0000": 40.0, "OST0001": 1.0}))
    return board.reading(now_us=at(9) + 3_000_000)


def test_the_summary_says_who_is_missing() -> None:
    reported = silent_and_reset()
    title = summary.title("/some/root", reported, "live", 120).plain
    assert "scratch" in title
    assert "2020-09-13 12:27:25 UTC (3 s ago)" in title
    assert "/some/root" in title
    coverage = summary.coverage(reported, 200).plain
    assert "2 of 3 targets report" in coverage
    assert "✗ silent: OST0002" in coverage
    assert "calibration grace-2012" in coverage
    assert "FSU  20." in summary.totals(reported, 120).plain


@pytest.mark.parametrize("width", [10, 40, 80, 200])
def test_no_line_of_the_summary_is_longer_than_the_screen(width: int) -> None:
    reported = silent_and_reset()
    for line in (
        summary.title("/root", reported, "live", width),
        summary.totals(reported, width),
        summary.coverage(reported, width),
    ):
        assert line.cell_len <= width


def test_without_a_reading_the_summary_is_empty() -> None:
    assert summary.totals(None, 80).plain.strip() == ""
    assert summary.coverage(None, 80).plain.strip() == ""
    assert "–" in summary.totals(Board("scratch").reading(), 80).plain


def test_the_detail_has_course_and_sizes() -> None:
    board = boards_of(ticks(range(1, 30))).board("scratch")
    line = board.reading(at(29)).targets[0]
    text = "\n".join(item.plain for item in detail(board, line, at(29), 100, 20))
    assert "scratch-OST0000" in text
    assert "(moderate)" in text
    assert "12:26:45" in text  # the first tick
    assert "12:29:05" in text
    assert "1 MiB" in text
    assert "512 KiB" not in text


def test_the_detail_of_a_silent_target_says_so() -> None:
    board = boards_of([*ticks(range(1, 3)), *rows(9, {"OST0000": 1.0})]).board("scratch")
    line = board.reading(at(9)).targets[2]
    text = "\n".join(item.plain for item in detail(board, line, at(9), 100, 20))
    assert "silent" in text
    assert "no disk I/O sizes for this interval" in text


# The time: live ---------------------------------------------------------------------------------------------------


def live(last: int = 10) -> Session:
    return Session(boards_of(ticks(range(1, last + 1))))


def shown(session: Session) -> int | None:
    result = session.reading(at(1000))
    return None if result is None or result.time is None else round((result.time.timestamp() * 1e6 - T0_US) / TICK_US)


def test_live_follows_the_newest_tick() -> None:
    session = live()
    assert shown(session) == 10
    session.boards.take(ticks([11]))
    assert shown(session) == 11
    assert session.playing


def test_live_can_be_held_and_goes_on_at_the_newest() -> None:
    session = live()
    session.toggle()
    session.boards.take(ticks([11, 12]))
    assert (shown(session), session.playing) == (10, False)
    session.toggle()
    assert (shown(session), session.playing) == (12, True)


def test_live_steps_back_through_what_is_kept() -> None:
    session = live()
    for _ in range(3):
        session.step(-1)
    assert (shown(session), session.playing) == (7, False)
    session.step(1)
    assert shown(session) == 8
    session.home()
    assert shown(session) == 1
    session.step(-1)
    assert shown(session) == 1
    session.end()
    assert (shown(session), session.playing, session.at_us) == (10, True, None)
    session.skip(-30_000_000)
    assert shown(session) == 4
    session.seek(at(500))
    assert shown(session) == 10
    assert session.advance(100.0) is False


def test_nothing_yet_can_be_held_stepped_and_sought() -> None:
    session = Session(Boards(Board))
    for act in (session.toggle, session.home, session.end, session.next_filesystem):
        act()
    session.step(-1)
    session.seek(at(1))
    session.skip(1)
    assert session.reading(at(1)) is None


def test_file_systems_take_turns() -> None:
    boards = boards_of([*ticks([1]), *rows(1, {"OST0000": 3.0}, "home")])
    session = Session(boards)
    names = []
    for _ in range(3):
        names.append(session.filesystem)
        session.next_filesystem()
    assert names == ["home", "scratch", "home"]
    assert Session(boards, filesystem="scratch").filesystem == "scratch"


def test_a_reading_is_not_computed_again_without_need() -> None:
    session = live()
    first = session.reading(at(10))
    again = session.reading(at(10) + 1_000_000)
    assert first is not None
    assert again is not None
    assert first.targets is again.targets
    assert again.age_s == pytest.approx(1.0)
    session.boards.take(ticks([11]))
    newer = session.reading(at(11))
    assert newer is not None
    assert newer.targets is not first.targets


# The time: playback -----------------------------------------------------------------------------------------------


class Tape:
    """An hour of ticks, given out by the page."""

    def __init__(self, session: Session) -> None:
        self.session, self.asked = session, list[RecordedPage]()

    def serve(self) -> None:
        page = self.session.page()
        if page is not None:
            self.asked.append(page)
            board = Board(page.filesystem, most_cells=10**7)
            low, high = (page.since_us - MARGIN_US - T0_US) // TICK_US, (page.until_us - T0_US) // TICK_US
            board.take(ticks(range(max(low, 0) + 1, min(high, 720) + 1), targets=("OST0000",)))
            self.session.take_page(page, board)


def playback(at_us: int | None = None) -> tuple[Session, Tape]:
    session = Session(Boards(Board), filesystem="scratch", window=(T0_US, T0_US + HOUR_US), at_us=at_us)
    return session, Tape(session)


def test_playback_waits_for_its_page_and_then_runs_at_its_speed() -> None:
    session, tape = playback()
    assert session.advance(1.0) is False
    assert session.reading(None) is None
    tape.serve()
    assert session.page() is None
    session.speed = 10.0
    for _ in range(10):
        session.advance(1.0)
    assert shown(session) == 20  # 10 s at 10× are 100 s, 20 ticks of 5 s
    session.toggle()
    session.advance(5.0)
    assert shown(session) == 20
    session.step(1)
    session.step(1)
    session.step(-1)
    assert shown(session) == 21
    session.skip(60_000_000)
    assert shown(session) == 33
    session.home()
    assert session.at_us == T0_US


def test_playback_has_no_age() -> None:
    session, tape = playback(at(100))
    tape.serve()
    result = session.reading(at(10_000))
    assert result is not None
    assert result.age_s is None
    assert shown(session) == 100
    assert not session.playing


def test_playback_ends_at_the_last_tick_and_starts_over() -> None:
    session, tape = playback()
    tape.serve()
    session.speed = 600.0
    for _ in range(100):
        session.advance(0.1)
    assert (shown(session), session.playing) == (720, False)
    session.toggle()
    assert (session.at_us, session.playing) == (T0_US, True)
    session.end()
    assert (shown(session), session.playing) == (720, False)


def test_a_long_recording_is_loaded_page_by_page() -> None:
    session = Session(Boards(Board), filesystem="scratch", window=(T0_US, T0_US + 3 * HOUR_US), at_us=T0_US)
    tape = Tape(session)
    session.boards.board("scratch").expect(f"scratch-OST{n:04x}" for n in range(1000))
    tape.serve()
    length = tape.asked[0].until_us - tape.asked[0].since_us
    assert length < HOUR_US
    session.seek(T0_US + 2 * HOUR_US)
    tape.serve()
    assert tape.asked[1].since_us <= session.at_us < tape.asked[1].until_us  # type: ignore[operator]
    assert tape.asked[1].until_us - tape.asked[1].since_us == length
    session.seek(tape.asked[1].since_us)
    tape.serve()
    assert len(tape.asked) == 2
    session.skip(-1)
    assert session.page() is not None
    assert session.page().until_us == tape.asked[1].since_us  # type: ignore[union-attr]


def test_steps_lead_from_page_to_page() -> None:
    session = Session(Boards(Board), filesystem="scratch", window=(T0_US, T0_US + HOUR_US), at_us=T0_US)
    tape = Tape(session)
    session.boards.board("scratch").expect(f"scratch-OST{n:04x}" for n in range(2000))
    tape.serve()
    border = tape.asked[0].until_us
    session.seek(border - TICK_US)
    session.step(1)
    tape.serve()
    session.step(1)
    tape.serve()
    assert session.at_us is not None
    assert session.at_us >= border
    session.step(-1)
    session.step(-1)
    tape.serve()
    assert session.at_us < border


def test_speeds_have_ends() -> None:
    session, _ = playback()
    for _ in range(20):
        session.change_speed(1)
    assert session.speed == SPEEDS[-1]
    for _ in range(20):
        session.change_speed(-1)
    assert session.speed == SPEEDS[0]


def test_a_heading_has_space_for_the_arrow() -> None:
    assert [column.key for column in COLUMNS if not column.is_text and len(column.heading) >= column.width] == []


def names(lines: list[TargetLine]) -> list[str]:
    return [line.target.removeprefix("scratch-") for line in lines]


def served(boards: Boards) -> Boards:
    columns = {"filesystem": "scratch", "target": ["scratch-OST0000", "scratch-OST0001", "scratch-OST0002"]}
    boards.take([Rows("target_servers", {**columns, "host": ["oss1", "oss2", "oss1"]}, 3)])
    return boards


def test_lines_are_grouped_by_server_with_the_sum_of_each_before_its_targets() -> None:
    session = Session(served(boards_of(ticks(range(1, 21)))))
    reading = session.reading(None)
    assert reading is not None
    assert reading.servers is not None
    assert names(session.order.lines(reading)) == ["OST0002", "OST0000", "OST0001"]
    session.order.by_server = True
    assert names(session.order.lines(reading)) == ["oss1", "OST0002", "OST0000", "oss2", "OST0001"]
    first, other = reading.servers
    members = [line for line in reading.targets if line.server == "oss1"]
    assert first.fsu_pct == pytest.approx(sum(line.fsu_pct or 0 for line in members) / 2)
    assert first.write_bytes_per_s == pytest.approx(sum(line.write_bytes_per_s or 0 for line in members))
    assert (first.target_kind, other.target) == ("server", "oss2")
    assert reading.course_of(first, 1) == [pytest.approx(first.fsu_pct)]
    session.order.sort_by("target")
    assert names(session.order.lines(reading)) == ["oss1", "OST0000", "OST0002", "oss2", "OST0001"]
    session.order.pattern = "oss2"
    assert names(session.order.lines(reading)) == ["oss2", "OST0001"]


def test_without_servers_there_is_nothing_to_group_by() -> None:
    session = Session(boards_of(ticks(range(1, 21))))
    session.order.by_server = True
    reading = session.reading(None)
    assert reading is not None
    assert reading.servers is None
    assert names(session.order.lines(reading)) == ["OST0002", "OST0000", "OST0001"]
    assert "server" not in to_plain(reading)["targets"][0]
