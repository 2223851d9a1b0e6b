"""The server of each target as a selection of a store gives it: by a small table, in any window, exactly once."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from iolens.agent.store_feed import StoreFeed
from iolens.records import Capture, Item, Row, Rows
from iolens.store.store import Store
from iolens.units import from_epoch_us
from tests.analyses.load_rows import TICK_US, rows_of, spider
from tests.analyses.telemetry import T0_US, table_of

LAST = T0_US + 100 * TICK_US


def row(time_us: int, target: str, host: str) -> Row:
    return Row("target_servers", {"time": time_us, "filesystem": "scratch", "target": target, "host": host})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    store.append("target_io", table_of("target_io", rows_of(spider(ticks=100, targets=4), kind="ost")))
    return store


def take(store: Store, items: list[Item], identity: str = "agent/oss1/r/1") -> int:
    return store.ingest([Capture("made up", identity, partial(iter, items))], "agent").rows["target_servers"]


def test_a_store_without_that_knowledge_has_none(store: Store) -> None:
    assert store.select("scratch").target_servers().of_targets == {}


def test_moves_are_seen_in_windows_that_hold_them(store: Store) -> None:
    items: list[Item] = [
        row(T0_US, "c00", "oss1"), row(T0_US, "c01", "oss1"), row(T0_US, "c02", "oss2"),
        row(T0_US + 70 * TICK_US, "c01", "oss2"),
    ]  # fmt: skip
    assert take(store, items) == 4
    assert take(store, items) == 0  # the same capture again
    assert take(store, items, "agent/oss1/r/2") == 0  # the same rows by another
    whole = store.select("scratch").target_servers()
    assert whole.of_targets == {"c00": "oss1", "c01": "oss1", "c02": "oss2"}
    assert [(move.target, move.to_server) for move in whole.moves] == [("c01", "oss2")]
    late = store.select("scratch", since=from_epoch_us(T0_US + 80 * TICK_US)).target_servers()
    assert (late.of_targets["c01"], late.moves) == ("oss2", [])
    early = store.select("scratch", until=from_epoch_us(T0_US + 60 * TICK_US)).target_servers()
    assert (early.of_targets["c01"], early.moves) == ("oss1", [])
    before = store.select("scratch", until=from_epoch_us(T0_US) - timedelta(hours=1)).target_servers()
    assert before.of_targets == {}
    assert store.select("scratch", targets=["c02"]).target_servers().of_targets == {"c02": "oss2"}


def test_who_watches_a_store_is_given_the_last_server_of_each_target(store: Store) -> None:
    take(store, [row(T0_US, "c00", "oss1"), row(T0_US, "c01", "oss1"), row(LAST - 5 * TICK_US, "c01", "oss2")])
    feed = StoreFeed(store, servers={"scratch": {"oss9": ("c02",)}})
    (rows,) = (item for item in feed.poll() if isinstance(item, Rows) and item.table == "target_servers")
    given = dict(zip(rows.columns["target"], rows.columns["host"], strict=True))  # type: ignore[call-overload]
    assert given == {"c00": "oss1", "c01": "oss2", "c02": "oss9"}
