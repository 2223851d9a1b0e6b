"""Recordings of `ltop -r`: each metric string once, counters raw, everything unknown with its line."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iolens.errors import InputError
from iolens.records import Item, Note, Problem
from iolens.sources import recognise
from iolens.sources.lmt.ltop import MDS_OPERATIONS, MDT_OPERATIONS, MalformedMetric, parse_metric, parse_recovery
from iolens.sources.reading.options import ReadOptions
from tests.sources.stored import ingest, items_of, rows_of, samples_of, stored

OST = "{name};900;1000;600;1024;{read};{write};{ops};7;180;2;1;5;6;COMPLETE 3/4 0s remaining"


def problems_of(items: list[Item]) -> list[str]:
    """What was not understood; what is left out by rule is no problem."""
    return [item.reason for item in items if isinstance(item, Problem) and not isinstance(item, Note)]


def ost(read: int, write: int, ops: int = 0, name: str = "lake-OST0001") -> str:
    return OST.format(name=name, read=read, write=write, ops=ops)


def line(polled: int, received: int, value: str, metric: str = "lmt_ost", node: str = "oss1") -> str:
    return f"{polled} {received} {node} {metric} {value}\n"


def oss(*osts: str, host: str = "oss1") -> str:
    return f"2;{host};1.5;40.25;" + ";".join(osts) + ";"


def operations(names: tuple[str, ...], **counts: int) -> str:
    return ";".join(f"{counts.get(name, 0)};9;9" for name in names)


RECORDING = (
    line(1_300_000_001, 1_300_000_000, oss(ost(100, 10, 4), ost(0, 0, 0, "lake-OST0002")))
    + line(1_300_000_003, 1_300_000_000, oss(ost(100, 10, 4), ost(0, 0, 0, "lake-OST0002")))  # polled again
    + line(1_300_000_006, 1_300_000_005, oss(ost(1100, 10, 9), ost(50, 0, 1, "lake-OST0002")))
)


def test_a_string_polled_twice_is_one_sample(tmp_path: Path) -> None:
    path = tmp_path / "record.log"
    path.write_text(RECORDING)
    items = items_of("ltop", path)
    assert problems_of(items) == []
    assert samples_of(items, "target_io") == [
        ("lake-OST0001", 1_300_000_000_000_000, {"read_bytes": 100, "write_bytes": 10, "unsplit_ops": 4}),
        ("lake-OST0001", 1_300_000_005_000_000, {"read_bytes": 1100, "write_bytes": 10, "unsplit_ops": 9}),
        ("lake-OST0002", 1_300_000_000_000_000, {"read_bytes": 0, "write_bytes": 0, "unsplit_ops": 0}),
        ("lake-OST0002", 1_300_000_005_000_000, {"read_bytes": 50, "write_bytes": 0, "unsplit_ops": 1}),
    ]


def test_capacity_state_and_load_stand_beside_the_counters(tmp_path: Path) -> None:
    path = tmp_path / "record.log"
    path.write_text(RECORDING)
    items = items_of("ltop", path)
    capacity = rows_of(items, "target_capacity")[0]
    assert (capacity["total_bytes"], capacity["used_bytes"], capacity["free_bytes"]) == (
        1024 * 1024,
        424 * 1024,
        600 * 1024,
    )
    assert (capacity["total_inodes"], capacity["used_inodes"], capacity["free_inodes"]) == (1000, 100, 900)
    state = rows_of(items, "target_state")[0]
    assert (state["recovery_status"], state["completed_clients"], state["expected_clients"]) == ("COMPLETE", 3, 4)
    assert (state["exports"], state["recovery_remaining_s"]) == (7, None)
    assert (state["locks"], state["lock_grants_per_s"], state["lock_cancels_per_s"]) == (180, 2, 1)
    assert [str(item.reason) for item in items if isinstance(item, Note)] == [
        "connect and reconnect of OSTs have no column in target_io: left out"
    ]
    load = rows_of(items, "host_load")
    assert [(item["host"], item["cpu_pct"], item["memory_pct"]) for item in load] == [("oss1", 1.5, 40.25)] * 2
    assert {item["filesystem"] for item in load} == {"lake"}


def test_intervals_in_the_store_and_nothing_twice(tmp_path: Path) -> None:
    path, store = tmp_path / "record.log.gz", tmp_path / "store"
    path.write_bytes(gzip.compress(RECORDING.encode()))
    assert ingest(store, "ltop", [path], ReadOptions()).rows["target_io"] == 2
    assert stored(store, "lake", "target_io", "target", "duration_s", "read_bytes", "unsplit_ops") == [
        ("lake-OST0001", 5.0, 1000, 5),
        ("lake-OST0002", 5.0, 50, 1),
    ]
    again = ingest(store, "ltop", [path], ReadOptions())
    assert (again.already_present, dict(again.rows)) == (1, {})


def test_a_recording_that_goes_on_elsewhere_continues(tmp_path: Path) -> None:
    first, second, store = tmp_path / "b.log", tmp_path / "a.log", tmp_path / "store"
    first.write_text(RECORDING)
    second.write_text(line(1_300_000_011, 1_300_000_010, oss(ost(1200, 10, 9))))
    ingest(store, "ltop", [second, first], ReadOptions())  # named in the wrong order
    assert [row[1] for row in stored(store, "lake", "target_io", "target", "read_bytes")] == [100, 1000, 50]


@pytest.mark.parametrize(
    ("version", "fields", "names"),
    [
        ("1", "lake-MDT0000;90;100;60;64;", MDT_OPERATIONS),
        ("1", "lake-MDT0000;90;100;60;64;", MDS_OPERATIONS),
        ("2", "lake-MDT0000;90;100;60;64;COMPLETE 1/1 0s remaining;", MDT_OPERATIONS),
        ("3", "lake-MDT0000;90;100;60;64;INACTIVE 0s remaining;", (*MDT_OPERATIONS, "one more", "another")),
    ],
)
def test_every_version_of_lmt_mdt(version: str, fields: str, names: tuple[str, ...]) -> None:
    report = parse_metric("lmt_mdt", f"{version};mds1;2.0;3.0;{fields}{operations(names, open=12, getattr=34)}")
    assert report is not None
    (reading,) = report.readings
    assert (reading.target, reading.counters["open"], reading.counters["getattr"]) == ("lake-MDT0000", 12, 34)
    assert not any(name.endswith("_us") for name in reading.counters)  # the string does not tell the unit of the sums


def test_operations_of_lmt_2_without_a_column_are_named(tmp_path: Path) -> None:
    path = tmp_path / "record.log"
    counts = operations(MDS_OPERATIONS, open=3, set_info_async=4, iocontrol=5, preprw=0)
    value = f"2;mds1;lake-MDT0000;1.0;2.0;90;100;60;64;{counts}"
    path.write_text(line(1_300_000_001, 1_300_000_000, value, "lmt_mds"))
    items = items_of("ltop", path)
    ((_, _, counters),) = samples_of(items, "metadata_ops")
    assert (counters["open"], counters["set_info"]) == (3, 4)
    assert [item.reason for item in items if isinstance(item, Note)] == [
        "operations without a column, left out: iocontrol"
    ]


def test_operations_without_a_name_are_said_to_be_left_out(tmp_path: Path) -> None:
    names = (*MDT_OPERATIONS, "one more", "another")
    value = f"3;mds1;2.0;3.0;lake-MDT0000;90;100;60;64;COMPLETE 1/1;{operations(names, open=1, another=5)}"
    path = tmp_path / "record.log"
    path.write_text("".join(line(1_300_000_000 + n, 1_300_000_000 + n, value, "lmt_mdt", "mds1") for n in (0, 5)))
    notes = [item for item in items_of("ltop", path) if isinstance(item, Note)]
    assert [note.line for note in notes] == [1]


@pytest.mark.parametrize("version", ["1.0", "2"])
def test_lmt_mds_of_lmt_2(version: str) -> None:
    value = f"{version};mds1;lake-MDT0000;2.0;3.0;90;100;60;64;{operations(MDS_OPERATIONS, setxattr=3, sync=2)}"
    report = parse_metric("lmt_mds", value)
    assert report is not None
    assert (report.cpu_pct, report.readings[0].counters["setxattr"], report.readings[0].counters["sync"]) == (2.0, 3, 2)
    assert "iocontrol" not in report.readings[0].counters


@pytest.mark.parametrize("fields", [8, 9, 10, 13, 15])
def test_lmt_ost_2_grew_without_a_new_number(fields: int) -> None:
    begin = "lake-OST0001;900;1000;600;1024;100;10"
    ends = {8: "7", 9: "7;COMPLETE", 10: "4;7;COMPLETE", 13: "4;7;0;0;0;COMPLETE", 15: "4;7;0;0;0;5;6;COMPLETE"}
    report = parse_metric("lmt_ost", oss(f"{begin};{ends[fields]}", f"{begin};{ends[fields]}"))
    assert report is not None
    assert [(reading.counters["read_bytes"], reading.exports) for reading in report.readings] == [(100, 7)] * 2
    assert ("unsplit_ops" in report.readings[0].counters) == (fields >= 10)


def test_load_of_lmt_2_finds_its_file_system_by_the_targets_of_the_server(tmp_path: Path) -> None:
    path = tmp_path / "record.log"
    early = line(1_300_000_000, 1_300_000_000, "1.0;oss1;5.0;6.0", "lmt_oss")
    target = line(1_300_000_001, 1_300_000_001, "1.0;oss1;pond-OST0000;9;10;6;8;1;2")
    path.write_text(early + target + line(1_300_000_005, 1_300_000_005, "1.0;oss1;7.0;6.0", "lmt_oss"))
    items = items_of("ltop", path)
    assert [(row["filesystem"], row["cpu_pct"]) for row in rows_of(items, "host_load")] == [("pond", 7.0)]
    assert "--filesystem" in problems_of(items)[0]
    given = items_of("ltop", path, ReadOptions(filesystem="pond"))
    assert [row["cpu_pct"] for row in rows_of(given, "host_load")] == [5.0, 7.0]


def test_recovery_as_it_is_printed() -> None:
    recovering = parse_recovery("RECOVERING 172 43s remaining")
    assert (recovering["recovery_status"], recovering["recovery_remaining_s"]) == ("RECOVERING", 43.0)
    assert (recovering["completed_clients"], recovering["expected_clients"]) == (172, None)
    assert parse_recovery("INACTIVE 0s remaining")["recovery_remaining_s"] is None
    with pytest.raises(MalformedMetric):
        parse_recovery("17 of 18")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (line(1_300_000_000, 1_300_000_000, "4;oss1;1;1;x"), "version '4' is not known"),
        (line(1_300_000_000, 1_300_000_000, "1;a", "lmt_dog"), "lmt_dog version '1' is not known"),
        (line(1_300_000_000, 1_300_000_000, "2;oss1;1;1;lake-OST0001;9;9"), "has 3 fields"),
        (line(1_300_000_000, 1_300_000_000, oss(ost(10, 2**63))), "where a count was expected"),
        (line(1_300_000_000, 1_300_000_000, oss("rubbish;1;2;3")), "name of a target"),
        (line(1_300_000_000, 1_300_000_000, "2;oss1;101;1;"), "percentage"),
        ("half a li", "not a recorded metric string"),
    ],
)
def test_what_is_not_understood_is_reported_with_its_line(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "record.log"
    path.write_text(RECORDING + text)
    items = items_of("ltop", path)
    assert len(samples_of(items, "target_io")) == 4
    (problem,) = [item for item in items if problems_of([item])]
    assert problem.line == 4
    assert reason in problem.reason


def test_damaged_gzip_keeps_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "record.gz"
    path.write_bytes(gzip.compress(RECORDING.encode() * 50)[:-30])
    items = items_of("ltop", path)
    assert any("cannot be read to its end" in problem for problem in problems_of(items))


def test_empty_and_strange_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "record.log"
    path.write_bytes(b"")
    with pytest.raises(InputError, match="empty file"):
        items_of("ltop", path)
    path.write_text("nothing of the kind\n")
    with pytest.raises(InputError, match="no metric string"):
        items_of("ltop", path)


def test_a_window_cuts_counters_and_rows_alike(tmp_path: Path) -> None:
    path = tmp_path / "record.log"
    path.write_text(RECORDING)
    late = ReadOptions(since=datetime.fromtimestamp(1_300_000_005, UTC))
    items = items_of("ltop", path, late)
    assert {snapshot for _, snapshot, _ in samples_of(items, "target_io")} == {1_300_000_005_000_000}
    assert {row["time"] for row in rows_of(items, "target_capacity")} == {1_300_000_005_000_000}
    early = items_of("ltop", path, ReadOptions(until=late.since))
    assert len(samples_of(early, "target_io")) == 2


def test_crlf_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "record.log"
    path.write_bytes(RECORDING.replace("\n", "\r\n").encode())
    assert recognise(path).name == "ltop"
    assert problems_of(items_of("ltop", path)) == []


# --- the real recording: 557 lines polled every two seconds from servers that report every five ---


def test_the_recording_of_tycho(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "ltop-record" / "tycho-hypemount.log.gz"
    assert recognise(path).name == "ltop"
    items = items_of("ltop", path)
    assert problems_of(items) == []
    targets = {target for target, _, _ in samples_of(items, "target_io")}
    assert len({target for target in targets if target.startswith("lc1-OST")}) == 96  # 32 servers with three each
    assert (
        len({target for target in targets if target.startswith("lc2-OST")}) == 8
    )  # version 1: one OST of a server at a time
    metadata = samples_of(items, "metadata_ops")
    assert [counters["statfs"] for _, _, counters in metadata] == [897552] * len(metadata)
    assert (metadata[0][2]["getattr"], metadata[0][2]["llog_init"]) == (16519, 96)
    tally = ingest(tmp_path / "store", "ltop", [path], ReadOptions())
    assert tally.refused == 0
    assert sum(row[0] for row in stored(tmp_path / "store", "lc1", "target_io", "write_bytes")) == 0  # an idle morning


def test_strings_that_lmt_itself_prints(shared_data: Path) -> None:
    """`lmtmetric` on captured trees of five Lustre versions: ours reads what it writes."""
    result = {}
    for path in sorted((shared_data / "lustre-server-proc").glob("lmt-*/outputs/t10.exp")):
        for text in path.read_text().splitlines():
            name, _, value = text.partition(": ")
            if name in ("ost", "mdt"):
                report = parse_metric(f"lmt_{name}", value)
                assert report is not None
                result |= {(path.parent.parent.name, reading.target): reading for reading in report.readings}
    assert result["lmt-2.10.8", "lquake-OST0000"].counters == {
        "read_bytes": 2092334829568, "write_bytes": 2798370021441, "unsplit_ops": 13060328,
    }  # fmt: skip
    assert result["lmt-2.10.8", "lquake-MDT0000"].counters["getattr"] == 47436738
    assert result["lmt-1.8.3", "lc1-MDT0000"].counters["quotactl"] == 21385


def test_the_server_of_a_target_is_said_once_a_day_and_when_it_is_another(tmp_path: Path) -> None:
    path = tmp_path / "record.log"
    moved = line(1_300_000_011, 1_300_000_010, oss(ost(1200, 10, 9), host="oss2"), node="oss2")
    path.write_text(RECORDING + moved)
    rows = rows_of(items_of("ltop", path), "target_servers")
    assert [(row["target"], row["host"], row["time"]) for row in rows] == [
        ("lake-OST0001", "oss1", 1_300_000_000_000_000),
        ("lake-OST0002", "oss1", 1_300_000_000_000_000),
        ("lake-OST0001", "oss2", 1_300_000_010_000_000),
    ]
