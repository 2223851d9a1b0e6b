"""Documents of collectd, from Elasticsearch or posted: rates or counters distinguished, devices counted once."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from iolens.config import DeviceRule
from iolens.errors import InputError
from iolens.records import Note, Problem
from iolens.sources import recognise
from iolens.sources.reading.options import ReadOptions
from tests.sources.stored import ingest, items_of, problems_of, rows_of, samples_of, stored

BB = ReadOptions(filesystem="bb")


def hit(
    second: float, read: float, write: float, kind: str = "disk_octets", device: str = "nvme0n1", host: str = "bb1"
) -> dict[str, Any]:
    """A hit of Elasticsearch."""
    minute, rest = divmod(second, 60)
    return {
        "_index": "collectd-2017.12.13",
        "_source": {
            "plugin": "disk",
            "plugin_instance": device,
            "collectd_type": kind,
            "hostname": host,
            "@timestamp": f"2017-12-13T08:{int(minute):02d}:{rest:06.3f}Z",
            "read": read,
            "write": write,
        },
    }


def posted(
    time: float, values: list[Any], kind: str = "disk_octets", device: str = "sda", **more: Any
) -> dict[str, Any]:
    """A value list as collectd posts it."""
    return {
        "values": values, "dstypes": ["derive", "derive"], "dsnames": ["read", "write"], "time": time, "interval": 10.0,
        "host": "oss1", "plugin": "disk", "plugin_instance": device, "type": kind, "type_instance": "", **more,
    }  # fmt: skip


RATES = [hit(8.785, 100.5, 0.0), hit(18.785, 0.0, 51.25), hit(28.786, 7.0, 0.0), hit(58.785, 1.0, 2.0)]


def write(tmp_path: Path, content: object, name: str = "dump.json") -> Path:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_rates_times_the_interval_that_is_found(tmp_path: Path) -> None:
    items = items_of("collectd", write(tmp_path, [RATES]), BB)
    assert problems_of(items) == []
    rows = rows_of(items, "target_io")
    assert [(row["read_bytes"], row["write_bytes"]) for row in rows] == [(1005, 0), (0, 512), (70, 0), (10, 20)]
    assert {(row["target"], row["target_kind"], row["duration_s"]) for row in rows} == {("bb1:nvme0n1", "device", 10.0)}
    seconds = [row["time"] / 1e6 - 1_513_152_000 for row in rows]
    assert seconds == [10, 20, 30, 60]  # a sample that is missing is a gap, not a longer interval
    assert all(row["time"] - row["start"] == 10_000_000 for row in rows)


@pytest.mark.parametrize("form", ["pages", "hits", "response", "lines", "sources", "pretty"])
def test_every_way_hits_are_saved(tmp_path: Path, form: str) -> None:
    content: object = {
        "pages": [RATES[:2], RATES[2:]],
        "hits": RATES,
        "response": {"took": 3, "hits": {"total": 4, "hits": RATES}},
        "lines": "\n".join(json.dumps(item) for item in RATES),
        "sources": "\n".join(json.dumps(item["_source"]) for item in RATES),
        "pretty": json.dumps([RATES], indent=2),
    }[form]
    path = write(tmp_path, content)
    assert recognise(path).name == "collectd"
    items = items_of("collectd", path, BB)
    assert (problems_of(items), len(rows_of(items, "target_io"))) == ([], 4)


def test_documents_come_in_any_order_and_more_than_once(tmp_path: Path) -> None:
    items = items_of("collectd", write(tmp_path, [*reversed(RATES), *RATES]), BB)
    assert (problems_of(items), [row["read_bytes"] for row in rows_of(items, "target_io")]) == ([], [1005, 0, 70, 10])


def test_octets_and_operations_of_one_reading_are_one_row(tmp_path: Path) -> None:
    more = [hit(8.786, 1.5, 0.5, "disk_ops"), hit(18.785, 2.5, 0.0, "disk_ops")]
    rows = rows_of(items_of("collectd", write(tmp_path, [*RATES, *more]), BB), "target_io")
    assert [(row["read_bytes"], row["read_ops"], row["write_ops"]) for row in rows[:3]] == [
        (1005, 15, 5),
        (0, 25, 0),
        (70, None, None),
    ]


def test_busy_time_is_kept(tmp_path: Path) -> None:
    busy = {**posted(1_000_000_010, [250, 900], "disk_io_time"), "dsnames": ["io_time", "weighted_io_time"]}
    later = {**busy, "values": [1250, 2900], "time": 1_000_000_020}
    samples = samples_of(items_of("collectd", write(tmp_path, [busy, later]), BB), "target_io")
    assert [sample[2] for sample in samples] == [
        {"busy_us": 250_000, "queue_us": 900_000},
        {"busy_us": 1_250_000, "queue_us": 2_900_000},
    ]


def test_posted_counters_stay_raw(tmp_path: Path) -> None:
    path = write(
        tmp_path, "\n".join(json.dumps([posted(1_000_000_000 + 10 * n, [2**60 + n * 512, n])]) for n in range(3))
    )
    items = items_of("collectd", path, BB)
    assert problems_of(items) == []
    assert [sample[2]["read_bytes"] - 2**60 for sample in samples_of(items, "target_io")] == [0, 512, 1024]
    ingest(tmp_path / "store", "collectd", [path], BB)
    assert (
        stored(tmp_path / "store", "bb", "target_io", "duration_s", "read_bytes", "write_bytes") == [(10.0, 512, 1)] * 2
    )


def test_posted_rates_are_reported_by_their_fractions_though_the_type_says_derive(tmp_path: Path) -> None:
    path = write(tmp_path, [posted(1_000_000_000, [51.2, None]), posted(1_000_000_010, [0, 1.5])])
    rows = rows_of(items_of("collectd", path, BB), "target_io")
    assert [(row["read_bytes"], row["write_bytes"]) for row in rows] == [(512, None), (0, 15)]


def test_whole_numbers_that_rise_and_fall_are_rates(tmp_path: Path) -> None:
    path = write(tmp_path, [hit(10 * n, 4096 * (n % 2), 0) for n in range(6)])
    assert len(rows_of(items_of("collectd", path, BB), "target_io")) == 6
    forced = ReadOptions(filesystem="bb", settings={"values": "counters"})
    assert len(samples_of(items_of("collectd", path, forced), "target_io")) == 6


def test_a_reset_does_not_make_counters_rates(tmp_path: Path) -> None:
    values = [10_000 * n for n in range(150)] + [5, 10_005]
    path = write(tmp_path, [posted(1_000_000_000 + 10 * n, [value, 0]) for n, value in enumerate(values)])
    tally = ingest(tmp_path / "store", "collectd", [path], BB)
    assert (tally.samples, tally.resets) == (152, 1)


def test_partitions_and_what_lies_over_disks_are_not_counted_again(tmp_path: Path) -> None:
    devices = ("nvme0n1", "nvme0n1p1", "dm-0", "loop3", "sdb1")
    path = write(tmp_path, [hit(10 * n, 0.5, 0.5, device=device) for n in range(2) for device in devices])
    items = items_of("collectd", path, BB)
    assert {row["target"] for row in rows_of(items, "target_io")} == {"bb1:nvme0n1", "bb1:sdb1"}  # sdb is not reported
    (note,) = [item for item in items if isinstance(item, Note)]
    assert "partition of nvme0n1" in note.reason
    chosen = ReadOptions(filesystem="bb", devices=DeviceRule(include=("dm-0",)))
    assert {row["target"] for row in rows_of(items_of("collectd", path, chosen), "target_io")} == {"bb1:dm-0"}


def test_processors_and_memory_become_loads(tmp_path: Path) -> None:
    def value_of(plugin: str, kind: str, state: str, value: float, instance: str = "") -> dict[str, Any]:
        source = {"plugin": plugin, "plugin_instance": instance, "collectd_type": kind, "type_instance": state}
        return {"_source": {**source, "hostname": "bb1", "@timestamp": "2017-12-13T08:00:00Z", "value": value}}

    idle = [value_of("cpu", "percent", "idle", 100.0, "0"), value_of("cpu", "percent", "idle", 50.0, "1")]
    memory = [
        value_of("memory", "memory", state, value) for state, value in (("used", 10), ("buffered", 20), ("cached", 30))
    ]
    free = [value_of("memory", "memory", "free", 40)]
    (row,) = rows_of(items_of("collectd", write(tmp_path, idle + memory + free), BB), "host_load")
    assert (row["host"], row["cpu_pct"], row["memory_pct"]) == ("bb1", 25.0, 60.0)
    (partly,) = rows_of(items_of("collectd", write(tmp_path, idle + memory), BB), "host_load")
    assert partly["memory_pct"] is None  # without the free memory the whole is not known


def test_other_plugins_are_said_once(tmp_path: Path) -> None:
    other = [
        {
            "_source": {
                "plugin": "load",
                "collectd_type": "load",
                "hostname": "bb1",
                "@timestamp": "2017-12-13T08:00:00Z",
            }
        }
    ] * 5
    notes = [item for item in items_of("collectd", write(tmp_path, RATES + other), BB) if isinstance(item, Note)]
    assert [note.reason for note in notes] == ["documents of 'load load' are not among those kept"]


def test_single_rates_do_not_tell_their_interval(tmp_path: Path) -> None:
    path = write(tmp_path, [RATES[0]])
    assert "--interval" in problems_of(items_of("collectd", path, BB))[0]
    (row,) = rows_of(items_of("collectd", path, ReadOptions(filesystem="bb", interval_s=10.0)), "target_io")
    assert row["read_bytes"] == 1005


def test_two_values_for_one_time_are_reported(tmp_path: Path) -> None:
    items = items_of("collectd", write(tmp_path, [*RATES, hit(8.785, 999.0, 0.0)]), BB)
    assert rows_of(items, "target_io")[0]["read_bytes"] == 1005
    assert any("has another already" in problem for problem in problems_of(items))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"_source": {"plugin": "disk"', "not a JSON document"),
        ('{"_source": {"nothing": 1}}', "names no plugin"),
        ('{"plugin": "disk", "collectd_type": "disk_octets", "hostname": "a", "@timestamp": "noon"}', "time 'noon'"),
        ('{"plugin": "disk", "dsnames": ["a"], "values": [], "type": "x", "host": "a", "time": 1e9}', "do not match"),
        ("rubbish", "not a JSON document"),
    ],
)
def test_a_bad_line_costs_itself(tmp_path: Path, line: str, reason: str) -> None:
    lines = [json.dumps(item) for item in RATES]
    items = items_of("collectd", write(tmp_path, "\n".join([*lines[:2], line, *lines[2:]])), BB)
    assert len(rows_of(items, "target_io")) == 4
    (problem,) = [item for item in items if isinstance(item, Problem)]
    assert problem.line == 3
    assert reason in problem.reason


@pytest.mark.parametrize("cut", range(5, 860, 97))
def test_a_cut_dump_keeps_whole_documents(tmp_path: Path, cut: int) -> None:
    text = json.dumps([RATES])
    items = items_of("collectd", write(tmp_path, text[:cut]), ReadOptions(filesystem="bb", interval_s=10.0))
    whole = text[:cut].count("}}")
    assert len(rows_of(items, "target_io")) == whole
    assert problems_of(items)


def test_gzip_and_nothing_twice(tmp_path: Path) -> None:
    path, store = tmp_path / "dump.json.gz", tmp_path / "store"
    path.write_bytes(gzip.compress(json.dumps([RATES]).encode()))
    assert recognise(path).name == "collectd"
    assert ingest(store, "collectd", [path], BB).rows["target_io"] == 4
    again = ingest(store, "collectd", [path], BB)
    assert (again.already_present, dict(again.rows)) == (1, {})


def test_what_is_missing_or_wrong_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--filesystem"):
        items_of("collectd", write(tmp_path, RATES), ReadOptions())
    with pytest.raises(InputError, match="empty file"):
        items_of("collectd", write(tmp_path, ""), BB)
    with pytest.raises(InputError, match=r"collectd\.values"):
        items_of("collectd", write(tmp_path, RATES), ReadOptions(filesystem="bb", settings={"values": "both"}))
    assert problems_of(items_of("collectd", write(tmp_path, "[]"), BB)) == ["no document of collectd in it"]


# --- NERSC's burst buffer ---


def test_burst_buffer_nodes(shared_data: Path, tmp_path: Path) -> None:
    """7,038 documents of 16 nodes, many lost: each is a row of its rate times ten seconds."""
    path = shared_data / "collectd" / "sample_collectdes-full.json.gz"
    with gzip.open(path) as stream:
        sources = [item["_source"] for page in json.load(stream) for item in page]
    rows = rows_of(items_of("collectd", path, BB), "target_io")
    assert (len(rows), len({row["target"] for row in rows})) == (7038, 64)
    assert {row["duration_s"] for row in rows} == {10.0}
    for name, field in (("read_bytes", "read"), ("write_bytes", "write")):
        assert sum(row[name] for row in rows) == pytest.approx(
            10 * sum(source[field] for source in sources), abs=7038 / 2
        )
    tally = ingest(tmp_path / "store", "collectd", [path], BB)
    assert (tally.rows["target_io"], tally.refused) == (7038, 0)


def test_a_mixture_of_plugins(shared_data: Path) -> None:
    path = shared_data / "collectd" / "collectdes_cpuloads.json.gz"
    items = items_of("collectd", path, ReadOptions(filesystem="bb", interval_s=10.0))
    assert not [item for item in items if isinstance(item, Problem) and not isinstance(item, Note)]
    operations = {row["target"]: row["read_ops"] for row in rows_of(items, "target_io") if row.get("read_ops")}
    assert operations == {"bb145:nvme2n1": 15}
    loads = [row["cpu_pct"] for row in rows_of(items, "host_load")]
    assert len(loads) == 4
    assert all(0 <= load <= 100 for load in loads)
