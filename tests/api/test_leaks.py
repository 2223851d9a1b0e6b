"""The search of a copy: it comes upon a name in values, statistics, logs and names of files, and upon nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iolens.api.anonymize.leaks import Leak, NameSearch
from iolens.api.anonymize.pseudonyms import Treatment

ANN = {"ann": Treatment.USER}


def leaks(folder: Path, names: dict[str, Treatment]) -> list[Leak]:
    search = NameSearch(names)
    search.search(folder)
    return search.leaks


@pytest.mark.parametrize(
    ("text", "is_there"),
    [("ann", True), ("/home/ann/x", True), ("a_ann_b", True), ("channel", False), ("ann2", False), ("an n", False)],
)
def test_a_name_counts_by_itself(text: str, is_there: bool) -> None:
    assert list(NameSearch(ANN).names_in(text)) == (["ann"] if is_there else [])


def test_a_number_counts_where_a_value_begins_with_it() -> None:
    search = NameSearch({"4400017": Treatment.JOB})
    texts = ("4400017", "4400017_5.batch", "44000170", "1.4400017")
    assert [list(search.names_in(text, Treatment.JOB)) for text in texts] == [["4400017"], ["4400017"], [], []]
    assert [name for text in texts for name in search.names_in(text)] == []


def test_the_year_of_a_day_is_no_job(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    stats = json.dumps({"minValues": {"time": "2026-01-06T00:00:00Z", "job_id": "0123"}, "numRecords": "2026"})
    (tmp_path / "jobs" / "0.json").write_text(
        json.dumps({"add": {"partitionValues": {"date": "2026-01-06"}, "stats": stats}})
    )
    assert leaks(tmp_path, {"2026": Treatment.JOB}) == []
    (leak,) = leaks(tmp_path, {"0123": Treatment.JOB})
    assert leak.name == "0123"


@pytest.mark.parametrize("name", ["😀👨✓", "a|b`c`*d*", "漢字です", "../../etc/passwd\\..\\x", "f" * 64])
def test_names_of_all_kinds_are_searched_for(name: str) -> None:
    assert list(NameSearch({name: Treatment.USER}).names_in(f"x {name} y")) == [name]


def test_identities_and_days_of_a_store_are_no_names() -> None:
    search = NameSearch({"1234": Treatment.JOB, "abcd": Treatment.USER, "2026-01-06": Treatment.PATH})
    assert list(search.names_in("jobs/date=2026-01-06/part-1234abcd-abcd-1234-abcd-1234abcd1234-" + "ab" * 32)) == []
    assert search.ordinary == ["2026-01-06"]


def test_a_name_that_is_a_word_of_iolens_is_listed() -> None:
    search = NameSearch({"write": Treatment.USER, "jobs": Treatment.PROJECT, "ann": Treatment.USER})
    assert sorted(search.ordinary) == ["jobs", "write"]
    assert list(search.names_in("write of ann")) == ["ann"]


def test_every_place_of_a_file_is_searched(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    (folder / "_delta_log").mkdir(parents=True)
    rows = pa.table({"user": ["ann"], "nodes": [1]}).replace_schema_metadata({"made by": "ann"})
    pq.write_table(rows, folder / "a.parquet", compression="zstd")
    entry = {"add": {"path": "x", "stats": json.dumps({"minValues": {"user": "ann"}})}}
    (folder / "_delta_log" / "0.json").write_text(json.dumps(entry))
    (folder / "of ann.txt").write_text("nothing")
    (folder / "plain.txt").write_text("by ann")
    assert {leak.place for leak in leaks(tmp_path, ANN)} == {
        "footer of jobs/a.parquet", "jobs/a.parquet, column user", "jobs/_delta_log/0.json", "name of jobs/of ann.txt",
        "jobs/plain.txt",
    }  # fmt: skip


def test_a_directory_called_by_a_word_of_a_kept_column_is_listed_and_a_user_is_a_leak(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    pq.write_table(pa.table({"modules": ["XYZMODULE"]}), tmp_path / "runs" / "a.parquet")
    search = NameSearch({"XYZMODULE": Treatment.PATH})
    search.search(tmp_path)
    assert (search.leaks, {leak.name for leak in search.remaining}) == ([], {"XYZMODULE"})
    assert leaks(tmp_path, {"XYZMODULE": Treatment.USER})
