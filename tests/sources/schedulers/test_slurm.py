"""`sacct` as text and JSON: any columns, steps, arrays, odd states, separators in names, local times."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.errors import InputError
from iolens.records import Note, Problem
from iolens.sources import recognise
from iolens.sources.reading.options import ReadOptions
from iolens.sources.schedulers.sacct_text import DEFAULT_COLUMNS
from tests.sources.stored import items_of, rows_of

UTC_TIMES = ReadOptions(timezone="UTC")
HEADER = "JobIDRaw|JobID|JobName|User|Account|NNodes|AllocCPUS|NodeList|Submit|Start|End|ElapsedRaw|State|ExitCode"
JOB = (
    "71|71|wave|ann|m1|2|128|nid[0001-0002]|2024-03-11T03:00:00|2024-03-11T04:00:00|2024-03-11T05:00:00|3600|"
    "COMPLETED|0:0"
)
RUNNING = "72|72|wave|ann|m1|1|64|nid0003|2024-03-11T03:00:00|2024-03-11T04:30:00|Unknown|1800|RUNNING|0:0"
PENDING = "73|70_[5-9%2]|wave|ann|m1|1|0|None assigned|2024-03-11T03:00:00|Unknown|Unknown|0|PENDING|0:0"
STEPS = (
    "71.batch|71.batch|batch||m1|1|64|nid0001|2024-03-11T04:00:00|2024-03-11T04:00:00|2024-03-11T05:00:00|3600|COMPLETED|0:0\n"
    "71.0|71.0|wave||m1|2|128|nid[0001-0002]|2024-03-11T04:01:00|2024-03-11T04:01:00|2024-03-11T04:59:00|3480|COMPLETED|0:0"
)
TEXT = "\n".join((HEADER, JOB, STEPS, RUNNING, PENDING)) + "\n"
BARE = "\n".join((
    "71|71|frost|ann|m1|regular|COMPLETED|2024-03-11T03:00:00|2024-03-11T04:00:00|2024-03-11T05:00:00|3600|2|128|nid[1-2]|a|b",
    "72|72|frost|ann|m1|regular|RUNNING|2024-03-11T03:00:00|2024-03-11T04:00:00|Unknown|60|2|128|nid[1-2]|wave",
))  # fmt: skip


def document(new: bool) -> dict[str, Any]:
    """One ended, one running and one pending job as Slurm 22.05 writes them, or 24.11."""

    def counted(value: int) -> object:
        return {"set": True, "infinite": False, "number": value} if new else value

    def job(job_id: int, state: str, end: int, **more: object) -> dict[str, Any]:
        return {
            "account": "m1", "allocation_nodes": 2, "array": {"job_id": 0, "task_id": counted(0)},
            "association": {"account": "m1", "cluster": "frost", "user": "ann"}, "cluster": "frost", "job_id": job_id,
            "name": "a|b", "nodes": "nid[0001-0002]", "priority": counted(7),
            "state": {"current": [state] if new else state, "reason": "None"},
            "steps": [{"step": {"id": f"{job_id}.batch"}}],
            "time": {"elapsed": 60, "start": 1_700_000_000, "end": end, "submission": 1_699_999_000},
            "tres": {"allocated": [{"type": "cpu", "count": 128}, {"type": "node", "count": 2}]},
            "user": "ann" if new else None, **more,
        }  # fmt: skip

    never = {"nodes": "None assigned", "allocation_nodes": 0}
    waiting = job(3, "PENDING", 0, time={"elapsed": 0, "start": 0, "end": 0, "submission": 1_699_999_000}, **never)
    jobs = [job(1, "COMPLETED", 1_700_000_060), job(2, "RUNNING", 0), waiting]
    meta = {"plugin": {"type": "openapi/dbv0.0.38", "name": "Slurm OpenAPI DB"}, "Slurm": {"release": "22.05.8"}}
    return {"jobs": jobs, "meta": meta, "errors": []} if new else {"meta": meta, "errors": [], "jobs": jobs}


def read(
    folder: Path, text: str, options: ReadOptions = UTC_TIMES
) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """Rows, problems and notes of a text that is recognised as what it is, also when packed."""
    path, packed = folder / "sacct.txt", folder / "sacct.gz"
    path.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    assert recognise(path).name == recognise(packed).name == "slurm"
    items = items_of("slurm", path, options)
    rows = rows_of(items, "jobs")
    assert rows == rows_of(items_of("slurm", packed, options), "jobs")
    notes = [item.reason for item in items if isinstance(item, Note)]
    return rows, [item.reason for item in items if isinstance(item, Problem) and not isinstance(item, Note)], notes


def us(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1e6)


def test_a_job_is_a_row_its_steps_are_not_and_one_that_never_started_has_none(tmp_path: Path) -> None:
    (ended, running), problems, notes = read(tmp_path, TEXT)
    assert problems == []
    assert notes == [
        "1 job never started: no row",
        "2 steps inside of jobs: only jobs have rows",
    ]
    assert {name: value for name, value in ended.items() if value is not None} == {
        "time": us("2024-03-11T05:00:00"), "start": us("2024-03-11T04:00:00"), "submit": us("2024-03-11T03:00:00"),
        "job_id": "71", "duration_s": 3600.0, "ended": True, "nodes": 2, "cores": 128, "user": "ann", "project": "m1",
        "name": "wave", "state": "COMPLETED", "node_list": "nid[0001-0002]",
    }  # fmt: skip
    assert (running["ended"], running["state"], running["time"]) == (False, "RUNNING", us("2024-03-11T05:00:00"))


def test_columns_in_any_order_and_a_separator_at_the_end(tmp_path: Path) -> None:
    order = [13, 3, 11, 10, 9, 0, 2, 7, 12, 5, 1]

    def turned(line: str) -> str:
        cells = line.split("|")
        return "|".join(cells[place] for place in order) + "|"

    expected, _, _ = read(tmp_path, TEXT)
    rows, problems, _ = read(tmp_path, "\n".join(map(turned, TEXT.splitlines())))
    assert problems == []
    for name in ("job_id", "time", "start", "user", "name", "nodes", "node_list", "ended", "duration_s"):
        assert [row[name] for row in rows] == [row[name] for row in expected]


def test_without_a_header_the_default_columns_or_those_of_the_configuration(tmp_path: Path) -> None:
    rows, problems, _ = read(tmp_path, BARE)
    assert problems == []
    assert [(row["job_id"], row["name"], row["cluster"], row["cores"]) for row in rows] == [
        ("71", "a|b", "frost", 128),
        ("72", "wave", "frost", 128),
    ]
    own = ReadOptions(timezone="UTC", settings={"columns": HEADER.split("|"), "cluster": "snow"})
    rows, problems, _ = read(tmp_path, TEXT.removeprefix(HEADER + "\n"), own)
    assert (problems, [row["job_id"] for row in rows], rows[0]["cluster"]) == ([], ["71", "72"], "snow")
    with pytest.raises(InputError, match=rf"sacct.txt:1: no header, and 14 columns; .*{','.join(DEFAULT_COLUMNS)}"):
        read(tmp_path, TEXT.removeprefix(HEADER + "\n"))


def test_the_raw_id_of_an_array_task_and_a_note_where_there_is_none(tmp_path: Path) -> None:
    array = JOB.replace("71|71|", "80|70_4|", 1)
    rows, _, notes = read(tmp_path, f"{HEADER}\n{array}\n")
    assert ([row["job_id"] for row in rows], notes) == (["80"], [])
    plain = "\n".join(line.partition("|")[2] for line in f"{HEADER}\n{array}".splitlines())
    rows, _, notes = read(tmp_path, plain)
    assert [row["job_id"] for row in rows] == ["70_4"]
    assert notes == ["1 job of arrays: add JobIDRaw, the id that job_stats shows"]


def component(raw: int, number: int, nodes: int, node_list: str, times: str = "04:00 05:00") -> str:
    """One component of job 90, and its batch step."""
    start, end = (f"2024-03-11T{time}:00" for time in times.split())
    rest = f"|wave|ann|m1|{nodes}|{64 * nodes}|{node_list}|2024-03-11T03:00:00|{start}|{end}|3600|COMPLETED|0:0"
    return f"{raw}|90+{number}{rest}\n{raw}.batch|90+{number}.batch{rest}"


HETEROGENEOUS = [component(90, 0, 1, "nid0009"), component(91, 1, 4, "gpu[1-4]"), component(92, 2, 2, "big[7-8]")]


@pytest.mark.parametrize("has_raw", [True, False])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_a_heterogeneous_job_has_the_nodes_of_all_its_components(
    tmp_path: Path, has_raw: bool, order: tuple[int, ...]
) -> None:
    lines = "\n".join([HEADER, *(HETEROGENEOUS[number] for number in order), JOB]).splitlines()
    rows, problems, notes = read(tmp_path, "\n".join(line if has_raw else line.partition("|")[2] for line in lines))
    job = next(row for row in rows if row["job_id"] == "90")
    assert (len(rows), problems, len(notes)) == (2, [], 1)  # the steps
    assert (job["nodes"], job["cores"], job["node_list"]) == (7, 7 * 64, "nid0009,gpu[1-4],big[7-8]")
    assert (job["user"], job["duration_s"], job["ended"]) == ("ann", 3600.0, True)


def test_a_node_of_two_components_counts_once_and_a_requeued_run_is_another(tmp_path: Path) -> None:
    first = [component(90, 0, 2, "n[1-2]"), component(91, 1, 2, "n[2-3]", "04:00 05:30")]
    again = [component(90, 0, 1, "n8", "06:00 07:00"), component(91, 1, 1, "n9", "06:00 07:00")]
    rows, _, _ = read(tmp_path, "\n".join([HEADER, first[0], again[0], first[1], again[1]]))
    assert [(row["nodes"], row["node_list"], row["duration_s"]) for row in rows] == [
        (3, "n[1-3]", 5400.0), (2, "n8,n9", 3600.0),
    ]  # fmt: skip


def test_a_component_alone_is_its_job_and_a_note_says_so(tmp_path: Path) -> None:
    rows, _, notes = read(tmp_path, f"{HEADER}\n{HETEROGENEOUS[1]}\n")
    assert [(row["job_id"], row["nodes"]) for row in rows] == [("90", 4)]
    assert "1 heterogeneous job without the first component: what it had is not counted" in notes


@pytest.mark.parametrize("new", [False, True])
def test_a_heterogeneous_job_in_json(tmp_path: Path, new: bool) -> None:
    content = document(new)
    first, second = (json.loads(json.dumps(content["jobs"][0])) for _ in range(2))
    second |= {"job_id": 2, "nodes": "gpu[1-4]", "allocation_nodes": 4}
    for number, job in enumerate((first, second)):
        offset = {"set": True, "infinite": False, "number": number} if new else number
        job["het"] = {"job_id": 1, "job_offset": offset}
    single = content["jobs"][0] | {"job_id": 7, "het": {"job_id": 0, "job_offset": {"set": False, "number": 0}}}
    path = tmp_path / "sacct.json"
    path.write_text(json.dumps(content | {"jobs": [first, second, single]}))
    rows = rows_of(items_of("slurm", path, UTC_TIMES), "jobs")
    assert sorted((row["job_id"], row["nodes"], row["node_list"], row["cores"]) for row in rows) == [
        ("1", 6, "nid[0001-0002],gpu[1-4]", 256), ("7", 2, "nid[0001-0002]", 128),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "state", "ended"),
    [
        ("CANCELLED by 1001", "CANCELLED", True), ("CANCELLED+", "CANCELLED", True), ("NODE_FAIL", "NODE_FAIL", True),
        ("OUT_OF_MEMORY", "OUT_OF_MEMORY", True), ("COMPLETING", "COMPLETING", False), ("REQUEUED", "REQUEUED", True),
        ("SUSPENDED", "SUSPENDED", False),
    ],
)  # fmt: skip
def test_odd_states(tmp_path: Path, said: str, state: str, ended: bool) -> None:
    (row,), problems, _ = read(tmp_path, f"{HEADER}\n{JOB.replace('COMPLETED', said)}\n")
    assert (row["state"], row["ended"], problems) == (state, ended, [])


def test_a_separator_in_a_name_is_resolved_by_its_neighbours(tmp_path: Path) -> None:
    names = [JOB.replace("|wave|", f"|{name}|") for name in ("cam|se", "|", "a||b|c", "x|71")]
    rows, problems, _ = read(tmp_path, "\n".join([HEADER, *names]))
    assert problems == []
    assert [row["name"] for row in rows] == ["cam|se", "|", "a||b|c", "x|71"]
    assert {row["user"] for row in rows} == {"ann"}


def test_a_separator_that_two_columns_could_hold_is_said(tmp_path: Path) -> None:
    header, job = f"{HEADER}|Comment|WorkDir", f"{JOB}|slow|/home"
    rows, problems, _ = read(tmp_path, f"{header}\n{job}\n{job.replace('slow', 'very|slow')}\n")
    assert len(rows) == 1
    (problem,) = problems
    assert problem.startswith("a separator inside a text (jobname, comment, workdir) cannot be resolved: several")
    rows, problems, _ = read(tmp_path, f"{header}\n{job.replace('wave', 'cam|se')}\n")
    assert ([row["name"] for row in rows], problems) == (["cam|se"], [])


def test_a_job_that_only_its_steps_tell_of(tmp_path: Path) -> None:
    (row,), problems, notes = read(tmp_path, f"{HEADER}\n{STEPS}\n")
    assert problems == []
    assert (row["job_id"], row["start"], row["time"]) == ("71", us("2024-03-11T04:00:00"), us("2024-03-11T05:00:00"))
    assert (row["ended"], row["node_list"], "user" in row, "name" in row) == (None, "nid[0001-0002]", False, False)
    assert notes[1] == "1 job put together from steps, without a line of the job itself: no user"
    rows, _, _ = read(tmp_path, f"{HEADER}\n{STEPS}\n{JOB}\n")  # the job after its steps
    assert [(row["ended"], row["user"]) for row in rows] == [(True, "ann")]


def test_local_times_need_a_zone(tmp_path: Path) -> None:
    (row, _), _, _ = read(tmp_path, TEXT, ReadOptions(timezone="America/Los_Angeles"))
    assert row["start"] == us("2024-03-11T11:00:00")
    configured = ReadOptions(settings={"timezone": "America/Los_Angeles"})
    assert read(tmp_path, TEXT, configured)[0][0]["start"] == us("2024-03-11T11:00:00")
    with pytest.raises(InputError, match=r"times are local and name no zone; expected --timezone"):
        read(tmp_path, TEXT, ReadOptions())
    stamped = JOB.replace("2024-03-11T04:00:00", "1710129600").replace("2024-03-11T05:00:00", "2024-03-11T05:00:00Z")
    (row,), _, _ = read(tmp_path, f"{HEADER}\n{stamped.replace('2024-03-11T03:00:00', '')}\n", ReadOptions())
    assert (row["start"], row["time"]) == (us("2024-03-11T04:00:00"), us("2024-03-11T05:00:00"))


def test_an_hour_that_the_clocks_gave_twice_is_decided_by_the_elapsed_time(tmp_path: Path) -> None:
    zone = ReadOptions(timezone="America/Los_Angeles")
    twice = JOB.replace("03-11T04:00:00", "11-03T00:30:00").replace("03-11T05:00:00", "11-03T01:30:00")
    (row,), _, _ = read(tmp_path, f"{HEADER}\n{twice}\n", zone)
    assert row["time"] - row["start"] == 3600e6
    (row,), _, _ = read(tmp_path, f"{HEADER}\n{twice.replace('|3600|', '|7200|')}\n", zone)
    assert row["time"] - row["start"] == 7200e6
    skipped = JOB.replace("2024-03-11T04:00:00", "2024-03-10T02:30:00")
    rows, problems, _ = read(tmp_path, f"{HEADER}\n{skipped}\n{JOB}\n", zone)
    assert len(rows) == 1
    assert "was skipped by the clocks of America/Los_Angeles" in problems[0]


@pytest.mark.parametrize(
    ("elapsed", "seconds"), [("1-02:24:13", 95053), ("26:24:13", 95053), ("05:16", 316), ("00:00:02.123", 2)]
)
def test_elapsed_times_with_days(tmp_path: Path, elapsed: str, seconds: int) -> None:
    text = f"{HEADER}\n{RUNNING}\n".replace("ElapsedRaw", "Elapsed").replace("|1800|", f"|{elapsed}|")
    assert read(tmp_path, text)[0][0]["duration_s"] == seconds


def test_counts_in_powers_of_1024_and_resources_where_there_is_no_column(tmp_path: Path) -> None:
    (row,), _, _ = read(tmp_path, f"{HEADER}\n{JOB.replace('|2|128|', '|2K|128K|')}\n")
    assert (row["nodes"], row["cores"]) == (2048, 131072)
    text = f"{HEADER}\n{JOB}\n".replace("NNodes|AllocCPUS", "AllocTRES|ReqMem").replace(
        "|2|128|", "|cpu=8,mem=1.5G,node=3|4Gn|"
    )
    (row,), problems, _ = read(tmp_path, text)
    assert (row["nodes"], row["cores"], problems) == (3, 8, [])


def test_damage_costs_its_own_line_and_is_said_with_its_place(tmp_path: Path) -> None:
    bad = [JOB[:40], JOB.replace("3600", "-1"), "rubbish", JOB.replace("|2|", "|two|"), JOB.replace("71|71", "x|y")]
    rows, problems, _ = read(tmp_path, "\n".join([HEADER, *bad, RUNNING]))
    assert [row["job_id"] for row in rows] == ["71", "72"]
    assert rows[0]["nodes"] == 2  # by the node list
    assert problems == [
        "9 of 14 columns: not a line of sacct, or cut: line left out",
        "ElapsedRaw '-1' is not an elapsed time: line left out",
        "1 of 14 columns: not a line of sacct, or cut: line left out",
        "nnodes 'two' is not a count: not used",
        "'x' is not the id of a job: line left out",
    ]


def test_settings_that_are_not_known_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(TEXT)
    for settings, said in (
        ({"colums": []}, "unknown key sources.slurm.colums"),
        ({"columns": "JobID"}, "a list of texts"),
    ):
        with pytest.raises(InputError, match=said):
            items_of("slurm", path, ReadOptions(settings=settings))


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("indent", [None, 1])
def test_json_of_old_and_new_slurm(tmp_path: Path, new: bool, indent: int | None) -> None:
    rows, problems, notes = read(tmp_path, json.dumps(document(new), indent=indent), ReadOptions())
    assert problems == []
    assert notes == [
        "1 job never started: no row",
        "3 steps inside of jobs: only jobs have rows",
    ]
    ended, running = rows
    assert {name: value for name, value in ended.items() if value is not None} == {
        "time": 1_700_000_060_000_000, "start": 1_700_000_000_000_000, "submit": 1_699_999_000_000_000, "job_id": "1",
        "duration_s": 60.0, "ended": True, "nodes": 2, "cores": 128, "user": "ann", "project": "m1", "name": "a|b",
        "state": "COMPLETED", "node_list": "nid[0001-0002]", "cluster": "frost",
    }  # fmt: skip
    assert (running["job_id"], running["ended"], running["time"]) == ("2", False, 1_700_000_060_000_000)


def test_json_that_is_cut_keeps_the_jobs_before(tmp_path: Path) -> None:
    text = json.dumps(document(new=True), indent=1)
    rows, problems, _ = read(tmp_path, text[: text.index('"job_id": 2')], ReadOptions())
    assert [row["job_id"] for row in rows] == ["1"]
    assert len(problems) == 2
    assert "the file ends within it" in problems[0]
    assert "not closed: may be cut" in problems[1]


def test_real_and_synthetic_files(shared_data: Path) -> None:
    synthetic = items_of("slurm", shared_data / "slurm" / "SYNTHETIC_sacct_P_60jobs.txt", UTC_TIMES)
    rows = rows_of(synthetic, "jobs")
    assert not [item for item in synthetic if isinstance(item, Problem) and not isinstance(item, Note)]
    assert (len(rows), sum(row["name"] == "cam|se" for row in rows) > 0) == (57, True)
    apel = rows_of(items_of("slurm", shared_data / "slurm" / "sacct_P_apel.txt", UTC_TIMES), "jobs")
    assert [row["job_id"] for row in apel] == ["1000", "278952", "297720", "321439", "320816"]
    assert apel[1]["time"] - apel[1]["start"] == 95053e6
    columns = [
        "JobID", "JobName", "Partition", "Account", "AllocCPUS", "AllocTRES", "Elapsed", "CPUTimeRAW", "MaxRSS",
        "MaxVMSize", "AveCPU", "AveRSS", "State", "ExitCode", "Start", "End", "NodeList", "AveDiskRead", "MaxDiskRead",
    ]  # fmt: skip
    options = ReadOptions(timezone="UTC", settings={"columns": columns})
    (job,) = rows_of(items_of("slurm", shared_data / "slurm" / "sacct_noheader_datadog.txt", options), "jobs")
    assert (job["job_id"], job["node_list"], job["duration_s"], job["nodes"]) == ("56", "c1", 754.0, 1)
