"""Sources of made-up stores against plain loops over the batches they were made of."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.analyses.source_list import SourceList
from iolens.api import OpenStore
from iolens.api.store_state import HEALTH_DAYS, REASONS, source_list
from iolens.errors import StoreError
from iolens.schema import TABLES
from iolens.store.maintenance import compact_store, store_info
from iolens.store.rollup import retain_raw, roll_up, rollup_backlog
from iolens.store.rows import to_arrow
from iolens.store.store import Store
from iolens.store.tables import BatchPart
from iolens.units import DAY_US, epoch_us, from_epoch_us, iso
from tests.analyses.capacity_rows import T0_US
from tests.api.test_centre_state import row
from tests.cli.command import iolens
from tests.views.documented import undocumented

HOUR_US = 3_600_000_000
HOSTILE = "/tmp/<img src=x>\x1b[2J\u202e\n=1+1"
COUNTS = ("samples", "rows", "resets", "repeated", "older", "refused")

Row = dict[str, Any]


def listed(folder: Path, *window: datetime | None, top: int = 50) -> SourceList:
    with OpenStore(str(folder)) as opened:
        return source_list(opened, *window, top=top)


def written(folder: Path, table: str, rows: list[Row]) -> Store:
    """Rows without a batch that says so."""
    store = Store(folder)
    store.tables.append(table, {BatchPart(f"made-up/{table}", 1): to_arrow(TABLES[table], rows)})
    return store


def batch(number: int, source: str | None, origin: str | None, hour: float, **more: Any) -> Row:
    """A batch whose data are of one hour and which was ingested a minute after it."""
    start = T0_US + round(hour * HOUR_US)
    times = {"first_time": start, "last_time": start + HOUR_US, "time": start + HOUR_US + 60_000_000}
    usual = {"batch": f"file/{number:064x}", "part": 1, "source": source, "origin": origin, "problems": "[]"}
    return {**usual, **times, **dict.fromkeys(COUNTS, 0), **more}


def random_batches(numbers: random.Random) -> list[Row]:
    rows = []
    for number in range(60):
        source = numbers.choice(("lustre-lctl", "agent", "slurm", None))
        host = numbers.choice(("oss1", "oss2", "oss/3"))
        own: Row = {name: numbers.choice((None, 0, 1, 7)) for name in COUNTS}
        if source == "agent":
            own["batch"] = f"agent/{host}/run1/{number}"
        if numbers.random() < 0.1:
            own |= {"first_time": None, "last_time": None}
        if numbers.random() < 0.1:
            own["batch"] = f"compact/{number}"
        if own["refused"]:
            own["problems"] = json.dumps([f"line {place}: not understood" for place in range(own["refused"])])
        rows.append(batch(number, source, f"/captures/{numbers.randrange(5)}", numbers.randrange(48), **own))
    return rows


def in_window(rows: list[Row], first_us: int, until_us: int) -> list[Row]:
    return [
        item
        for item in rows
        if not item["batch"].startswith("compact/")
        and (item["last_time"] or item["time"]) >= first_us
        and (item["first_time"] or item["time"]) < until_us
    ]


def place_of(item: Row) -> str:
    if item["batch"].startswith("agent/"):
        return str(item["batch"].removeprefix("agent/").rsplit("/", 2)[0])
    return str(item["origin"])


def sums(items: list[Row]) -> tuple[Any, ...]:
    times = [[item[name] for item in items if item[name] is not None] for name in ("first_time", "last_time")]
    counts = [[item[name] for item in items if item[name] is not None] for name in COUNTS]
    return (
        min(times[0]) if times[0] else None,
        max(times[1]) if times[1] else None,
        max(item["time"] for item in items),
        len(items),
        *(sum(values) if values else None for values in counts),
    )


def seen(activity: Any) -> tuple[Any, ...]:
    times = (activity.first_time, activity.last_time, activity.last_ingest)
    in_us = (None if time is None else epoch_us(time) for time in times)
    return (*in_us, activity.batches, *(getattr(activity, name) for name in COUNTS))


@pytest.mark.parametrize("seed", range(4))
def test_sources_and_origins_add_up_as_a_loop_over_batches(tmp_path: Path, seed: int) -> None:
    rows = random_batches(random.Random(seed))
    written(tmp_path, "batches", rows)
    hours = ((0, 10_000), (10, 20), (47, 48))[seed % 3]
    window = [T0_US + hour * HOUR_US for hour in hours]
    answer = listed(tmp_path, *map(from_epoch_us, window))
    wanted = in_window(rows, *window)
    by_source, by_place = defaultdict(list), defaultdict(list)
    for item in wanted:
        by_source[item["source"] or "file"].append(item)
        by_place[item["source"] or "file", place_of(item)].append(item)
    assert {activity.source: seen(activity) for activity in answer.sources} == {
        source: sums(items) for source, items in by_source.items()
    }
    assert {(activity.source, activity.origin): seen(activity) for activity in answer.origins} == {
        place: sums(items) for place, items in by_place.items()
    }
    assert (answer.origins_known, answer.batches) == (len(by_place), len(wanted))
    assert [activity.last_ingest for activity in answer.origins] == sorted(
        (activity.last_ingest for activity in answer.origins), reverse=True
    )
    refused = sorted((item for item in wanted if item["refused"]), key=lambda item: (-item["time"], item["batch"]))
    assert [(epoch_us(item.time), item.origin, item.refused) for item in answer.refused_inputs] == [
        (item["time"], place_of(item), item["refused"]) for item in refused
    ]
    assert all(1 <= len(item.reasons) <= REASONS for item in answer.refused_inputs)


def test_lists_are_cut_and_say_so(tmp_path: Path) -> None:
    rows = [batch(number, "ltop", f"/{number}", number, refused=1) for number in range(10)]
    written(tmp_path, "batches", rows)
    answer = listed(tmp_path, top=3)
    assert [activity.origin for activity in answer.origins] == ["/9", "/8", "/7"]
    assert [item.origin for item in answer.refused_inputs] == ["/9", "/8", "/7"]
    assert (answer.origins_known, answer.refused_inputs_known, answer.refused) == (10, 10, 10)


@pytest.mark.parametrize("problems", ["", None, "[", '{"a": 1}', "[1, null]", json.dumps([HOSTILE] * 200)])
def test_reasons_that_are_no_list_of_ours_are_no_error(tmp_path: Path, problems: str | None) -> None:
    written(tmp_path, "batches", [batch(1, "ltop", HOSTILE, 0, refused=2, problems=problems)])
    (item,) = listed(tmp_path).refused_inputs
    assert len(item.reasons) <= REASONS


def health(host: str, run: str, tick: int, **more: Any) -> Row:
    time = T0_US + tick * 60_000_000
    usual = {"time": time, "date": time // DAY_US, "source": "agent", "host": host, "run": run, "ticks": tick}
    return {**usual, "late_ticks": 1, "missed_ticks": 2, "lost_ticks": 0, "spool_bytes": 10 * tick, **more}


def test_agents_by_their_reports_and_batches(tmp_path: Path) -> None:
    long_ago = T0_US - (HEALTH_DAYS + 2) * DAY_US
    rows = [
        health("oss1", "a", 5), health("oss1", "b", 8, trouble="spool is full"), health("oss1", "b", 9),
        health("oss2", "a", 4, trouble=HOSTILE), health("silent", "a", 1, time=long_ago, date=long_ago // DAY_US),
    ]  # fmt: skip
    written(tmp_path, "agent_health", rows)
    sent = [batch(1, "agent", "x.taken", -400, batch=f"agent/{host}/a/1") for host in ("silent", "mds1")]
    written(tmp_path, "batches", sent)
    agents = {agent.host: agent for agent in listed(tmp_path).agents}
    first = agents["oss1"]
    assert (first.starts, first.ticks, first.late_ticks, first.missed_ticks, first.lost_ticks) == (2, 14, 2, 4, 0)
    assert (first.lag_s, first.spool_bytes, first.trouble) == (0.0, 90, None)
    assert (agents["oss2"].lag_s, agents["oss2"].trouble) == (300.0, HOSTILE)
    assert (agents["mds1"].ticks, agents["mds1"].last_tick) == (None, None)
    assert agents["silent"].last_tick is None
    assert agents["silent"].last_time == from_epoch_us(T0_US - 399 * HOUR_US)
    assert [agent.host for agent in listed(tmp_path).agents] == ["mds1", "silent", "oss2", "oss1"]
    old = listed(tmp_path, from_epoch_us(long_ago - DAY_US)).agents
    assert {agent.host: agent.ticks for agent in old}["silent"] == 1


def test_tables_are_those_of_store_info(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append("target_io", to_arrow(TABLES["target_io"], [row("target_io", "alpha", T0_US)]))
    tables = {line["name"]: line for line in store_info(store)["tables"]}
    for table in listed(tmp_path).tables:
        line = tables.pop(table.name)
        assert (table.rows, table.files, table.bytes) == (line["rows"], line["files"], line["bytes"])
        assert (iso(table.first_time) if table.first_time else None) == line["first_time"]
    assert tables == {}


@pytest.mark.parametrize("seed", range(3))
def test_the_backlog_is_what_rollup_then_makes(tmp_path: Path, seed: int) -> None:
    """Rows, late rows, compaction and dropped days in any order: the days named are those that a rollup rolls up."""
    numbers, store = random.Random(seed), Store(tmp_path)
    late = 0
    for _ in range(8):
        match numbers.randrange(4):
            case 0:
                roll_up(store)
            case 1:
                compact_store(store)
            case 2 if seed:
                retain_raw(store, 0.0)
            case _:
                late += 1
                day = numbers.randrange(4)
                rows = [row("target_io", "alpha", T0_US + day * DAY_US + late * 5_000_000)]
                store.append("target_io", to_arrow(TABLES["target_io"], rows))
        named = {f"{table} {day}" for table, days in rollup_backlog(store.tables).items() for day in days}
        made: list[str] = []
        if numbers.random() < 0.5:
            roll_up(store, made.append)
            assert set(made) == named
            assert rollup_backlog(store.tables) == {}


def test_a_store_without_batches(tmp_path: Path) -> None:
    written(tmp_path, "agent_health", [health("oss1", "a", 5)])
    answer = listed(tmp_path)
    assert (answer.sources, answer.origins, answer.refused_inputs, answer.batches) == ([], [], [], 0)
    assert [agent.host for agent in answer.agents] == ["oss1"]


def test_no_store_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no data yet"):
        listed(tmp_path / "nothing")


def test_the_command_shows_refused_input_and_escapes_it(tmp_path: Path) -> None:
    bad = tmp_path / "bad\u202e.txt"
    bad.write_text("obdfilter.scratch-OST0000.brw_stats=\nsnapshot_time: \x1b[2J\n", "utf-8")
    iolens("ingest", "lustre-lctl", bad, "--store", tmp_path / "s")
    problems = json.dumps([HOSTILE])
    written(tmp_path / "s", "batches", [batch(1, "ltop", HOSTILE, 0, refused=2, problems=problems)])
    shown = iolens("store", "sources", "--store", tmp_path / "s")
    assert shown.code == 0, shown.err
    assert "Refused input, newest first" in shown.out
    for format_ in ("table", "markdown"):
        text = iolens("store", "sources", "--store", tmp_path / "s", "--format", format_).out
        assert not {"\x1b", "\u202e"}.intersection(text)
    cells = iolens("store", "sources", "--store", tmp_path / "s", "--table", "refused_inputs", "--format", "csv").out
    assert cells.startswith("time,source,origin,refused,reasons\n")
    answer = json.loads(iolens("store", "sources", "--store", tmp_path / "s", "--format", "json").out)
    assert [item["reasons"] for item in answer["refused_inputs"] if item["origin"] == HOSTILE] == [[HOSTILE]]
    assert set(answer) == set(SourceList.__dataclass_fields__)


def test_every_key_is_documented() -> None:
    assert undocumented(SourceList, "store.md") == []
