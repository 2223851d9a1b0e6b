"""A CSV file of jobs: what the configuration must say, formats of times, running jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iolens.errors import InputError
from iolens.sources.reading.options import ReadOptions
from tests.sources.stored import items_of, problems_of, rows_of

COLUMNS = {
    "job_id": "Job", "user": "Who", "name": "Name", "start": "Begin", "end": "Finish", "nodes": "Nodes",
    "node_list": "Hosts",
}  # fmt: skip
SETTINGS: dict[str, Any] = {"columns": COLUMNS, "time_format": "%d.%m.%Y %H:%M", "cluster": "frost"}
OPTIONS = ReadOptions(timezone="Europe/Zurich", settings=SETTINGS)
TEXT = (
    "Job,Who,Name,Begin,Finish,Nodes,Hosts,Queue\n"
    '71,ann,"wave, fast",11.03.2024 05:00,11.03.2024 06:00,2,"n[1-2]",long\n'
    "72,bob,still,11.03.2024 05:30,,1,n3,long\n"
)


def write(folder: Path, text: str = TEXT) -> Path:
    path = folder / "jobs.csv"
    path.write_text(text)
    return path


def test_columns_are_those_of_the_configuration(tmp_path: Path) -> None:
    items = items_of("jobs-csv", write(tmp_path), OPTIONS)
    assert problems_of(items) == []
    ended, running = rows_of(items, "jobs")
    assert {name: value for name, value in ended.items() if value is not None} == {
        "time": 1_710_133_200_000_000, "start": 1_710_129_600_000_000, "job_id": "71", "cluster": "frost",
        "duration_s": 3600.0, "ended": True, "nodes": 2, "user": "ann", "name": "wave, fast", "node_list": "n[1-2]",
    }  # fmt: skip
    assert (running["ended"], running["time"]) == (False, running["start"])


def test_times_since_1970_need_no_zone_and_a_duration_makes_an_end(tmp_path: Path) -> None:
    text = "id;t0;took\n5;1710129600;00:01:40\n6;1710129600.5;100.9\n"
    columns = {"job_id": "id", "start": "t0", "duration_s": "took"}
    options = ReadOptions(settings={"columns": columns, "time_format": "epoch", "delimiter": ";"})
    rows = rows_of(items_of("jobs-csv", write(tmp_path, text), options), "jobs")
    assert [(row["job_id"], row["time"] - row["start"], row["ended"]) for row in rows] == [
        ("5", 100_000_000, True),
        ("6", 100_000_000, True),
    ]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, r"nothing says which column is job_id and which is start; expected \[sources.jobs-csv.columns\]"),
        ({"columns": {"job_id": "Job"}}, "nothing says which column is start"),
        (
            {"columns": {**COLUMNS, "owner": "Who"}},
            "unknown key sources.jobs-csv.columns.owner; expected one of",
        ),
        ({"columns": {**COLUMNS, "user": "User"}}, "no column 'User', which sources.jobs-csv.columns.user names"),
        ({"columns": COLUMNS, "delimiter": "ab"}, "delimiter = 'ab'; expected one character"),
        ({"columns": "Job"}, "sources.jobs-csv.columns = 'Job'; expected a section"),
    ],
)
def test_a_mapping_that_is_missing_or_wrong_is_named(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        items_of("jobs-csv", write(tmp_path), ReadOptions(timezone="UTC", settings=settings))


def test_damage_costs_its_line(tmp_path: Path) -> None:
    begin = "11.03.2024 05:30"
    bad = ["73,ann,x,yesterday,,1,n3,long", "74,ann", f",ann,x,{begin},,1,n3,long", f"75,ann,x,{begin},,-1,n3,long"]
    items = items_of("jobs-csv", write(tmp_path, TEXT + "\n".join(bad)), OPTIONS)
    assert [row["job_id"] for row in rows_of(items, "jobs")] == ["71", "72"]
    assert problems_of(items) == [
        "Begin 'yesterday' is not a time by '%d.%m.%Y %H:%M': line left out",
        "2 of 8 columns: line left out",
        "a line without the id of its job: line left out",
        "Nodes '-1' is not a count: line left out",
    ]
