"""Who serves a target in a window: the server that had it longest, by what was seen; the configuration goes before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iolens.target_servers import SeenServer, servers_in_window
from iolens.units import epoch_us

HOUR = 3_600_000_000
OST = "scratch-OST0000"


def seen(*rows: tuple[int, str], target: str = OST, source: str = "agent") -> list[SeenServer]:
    return [SeenServer(target, source, hour * HOUR, host) for hour, host in rows]


def test_a_target_belongs_to_the_server_that_had_it_longest_and_a_move_is_noted() -> None:
    rows = seen((0, "oss1"), (4, "oss2"))
    short = servers_in_window(rows, (0, 6 * HOUR), {}, ())
    long = servers_in_window(rows, (0, 10 * HOUR), {}, ())
    assert (short.of_targets, long.of_targets) == ({OST: "oss1"}, {OST: "oss2"})
    (move,) = long.moves
    assert (epoch_us(move.time), move.target, move.from_server, move.to_server) == (4 * HOUR, OST, "oss1", "oss2")


def test_what_was_seen_before_the_window_holds_in_it_and_what_comes_after_does_not() -> None:
    rows = seen((0, "oss1"), (24, "oss1"), (48, "oss2"))
    assert servers_in_window(rows, (30 * HOUR, 40 * HOUR), {}, ()).of_targets == {OST: "oss1"}
    assert servers_in_window(rows, (30 * HOUR, 40 * HOUR), {}, ()).moves == []
    assert servers_in_window(seen((48, "oss2")), (30 * HOUR, 40 * HOUR), {}, ()).of_targets == {}


def test_back_and_forth_adds_up() -> None:
    rows = seen((0, "oss1"), (3, "oss2"), (5, "oss1"))
    result = servers_in_window(rows, (0, 6 * HOUR), {}, ())
    assert result.of_targets == {OST: "oss1"}  # 3 h and 1 h, against 2 h
    assert [(move.from_server, move.to_server) for move in result.moves] == [("oss1", "oss2"), ("oss2", "oss1")]


def test_the_configuration_goes_before_what_was_seen() -> None:
    configured = {"oss9": ["scratch-OST000[0-3]"], "rest": ["*"]}
    result = servers_in_window(seen((0, "oss1"), (1, "oss2")), (0, 2 * HOUR), configured, {"scratch-OST0004"})
    assert result.of_targets == {OST: "oss9", "scratch-OST0004": "rest"}
    assert result.moves == []


def test_of_several_sources_the_first_counts_from_its_first_row_on() -> None:
    rows = [*seen((0, "oss1.site"), (2, "oss1.site"), (9, "oss1.site"), source="lmt-db"), *seen((5, "oss1"))]
    window = (0, 10 * HOUR)
    by_agent = servers_in_window(rows, window, {}, (), ("agent", "lmt-db"))
    assert [(epoch_us(move.time) // HOUR, move.to_server) for move in by_agent.moves] == [(5, "oss1")]
    by_lmt = servers_in_window(rows, window, {}, (), ("lmt-db",))
    assert (by_lmt.of_targets, by_lmt.moves) == ({OST: "oss1.site"}, [])


def test_targets_sort_by_server_and_those_of_none_come_last() -> None:
    rows = [*seen((0, "b"), target="x-OST0000"), *seen((0, "a"), target="x-OST0001")]
    result = servers_in_window(rows, (0, HOUR), {}, ())
    assert sorted(["x-OST0000", "x-OST0001", "x-OST0002"], key=result.place) == ["x-OST0001", "x-OST0000", "x-OST0002"]
    assert result.are_several


hosts = st.lists(st.tuples(st.integers(0, 40), st.sampled_from("abc")), max_size=12, unique_by=lambda row: row[0])


@given(hosts, st.integers(0, 30), st.integers(1, 20))
def test_any_rows_against_hour_by_hour(rows: list[tuple[int, str]], start: int, length: int) -> None:
    """By the hour: the last row up to an hour names its server; the commonest of the window is the answer."""
    hours: dict[str, int] = {}
    at = dict(rows)
    now = None
    changes = 0
    for hour in range(start + length):
        before, now = now, at.get(hour, now)
        if hour >= start and now is not None:
            hours[now] = hours.get(now, 0) + 1
            changes += hour > start and before is not None and before != now
    result = servers_in_window(seen(*rows), (start * HOUR, (start + length) * HOUR), {}, ())
    assert len(result.moves) == changes
    if hours:
        assert hours[result.of_targets[OST]] == max(hours.values())
    else:
        assert result.of_targets == {}
