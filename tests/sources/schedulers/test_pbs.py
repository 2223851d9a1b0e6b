"""Accounting logs of PBS and Torque: starts and ends, hosts, quoted values, events that have no row."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.errors import InputError
from iolens.records import Note, Problem
from iolens.sources import recognise
from iolens.sources.reading.options import ReadOptions
from tests.sources.stored import items_of, rows_of

UTC_TIMES = ReadOptions(timezone="UTC")
STARTED = (
    "03/11/2024 04:00:00;S;71.frost;user=ann group=ph account=m1 project=_pbs_project_default jobname=wave queue=workq "
    "ctime=1710125000 qtime=1710126000 etime=1710126000 start=1710129600 exec_host=n1/0*8+n2/0*8 "
    "Resource_List.ncpus=16 Resource_List.nodect=2 Resource_List.walltime=02:00:00"
)
ENDED = STARTED.replace("04:00:00;S", "05:00:00;E", 1) + (
    " session=123 end=1710133200 Exit_status=0 resources_used.walltime=01:00:00 resources_used.mem=10kb"
)
TORQUE = (
    '03/11/2024 06:00:01;E;72[3].frost;user=bob jobname="two words = more" start=1710133200 exec_host=n3/0-7+n4/1,3 '
    "Exit_status=-11 resources_used.walltime=26:00:01"
)
TEXT = (
    "\n".join(
        (
            "03/11/2024 03:00:00;Q;71.frost;queue=workq",
            STARTED,
            ENDED,
            TORQUE,
            "03/11/2024 06:00:02;D;73.frost;requestor=bob@frost",
            "03/11/2024 06:00:03;A;74.frost;Job deleted",
        )
    )
    + "\n"
)


def read(
    folder: Path, text: str, options: ReadOptions = UTC_TIMES
) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    path = folder / "20240311"
    path.write_text(text)
    assert recognise(path).name == "pbs"
    items = items_of("pbs", path, options)
    notes = [item.reason for item in items if isinstance(item, Note)]
    problems = [item.reason for item in items if isinstance(item, Problem) and not isinstance(item, Note)]
    return rows_of(items, "jobs"), problems, notes


def us(hour: int, second: int = 0) -> int:
    return int(datetime(2024, 3, 11, hour, 0, second, tzinfo=UTC).timestamp() * 1e6)


def test_a_start_is_a_running_record_and_an_end_an_ended_one(tmp_path: Path) -> None:
    (started, ended, torque), problems, notes = read(tmp_path, TEXT)
    assert problems == []
    assert notes == [
        "2 records of other events (queued, deleted, …): no row",
        "1 job requeued or aborted: the log does not say the time of the start",
    ]
    assert (started["job_id"], started["cluster"], started["ended"], started["state"]) == (
        "71",
        "frost",
        False,
        "started",
    )
    assert started["time"] == started["start"] == us(4)
    assert {name: value for name, value in ended.items() if value is not None} == {
        "time": us(5), "start": us(4), "submit": us(3), "job_id": "71", "cluster": "frost", "duration_s": 3600.0,
        "ended": True, "nodes": 2, "cores": 16, "user": "ann", "project": "_pbs_project_default", "name": "wave",
        "state": "ended 0", "node_list": "n1,n2",
    }  # fmt: skip
    assert (torque["job_id"], torque["name"], torque["state"]) == ("72[3]", "two words = more", "ended -11")
    assert (torque["time"], torque["duration_s"], torque["cores"]) == (us(6, 1), 26 * 3600 + 1, 10)


def test_local_stamps_need_a_zone_and_damage_costs_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="times are local and name no zone"):
        read(tmp_path, TEXT, ReadOptions())
    bad = [ENDED.replace("start=1710129600 ", ""), "rubbish", ENDED.replace("start=17", "start=x"), ENDED[:20]]
    rows, problems, _ = read(tmp_path, "\n".join([STARTED, *bad, TORQUE]))
    assert [row["job_id"] for row in rows] == ["71", "72[3]"]
    assert problems == [
        "job '71.frost' has no start=: line left out",
        "not a record of an accounting log: 'rubbish': line left out",
        "start 'x10129600' is not a count: line left out",
        "not a record of an accounting log: '03/11/2024 05:00:00;': line left out",
    ]
    _, problems, _ = read(tmp_path, ENDED.replace("ncpus=16", "ncpus=many"))
    assert problems == ["Resource_List.ncpus 'many' is not a count: not used"]
