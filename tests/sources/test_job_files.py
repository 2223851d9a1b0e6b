"""Samples at the begin and the end of jobs: what a node's file holds, and what damage and accidents leave of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from iolens.errors import InputError
from iolens.records import Note, Problem
from iolens.sources.job_files import SOURCE, read_job_file
from iolens.sources.job_samples import BEGIN, END, JobSample
from iolens.sources.lustre.lustre_client_proc import read_tree
from iolens.sources.reading.options import ReadOptions
from iolens.store.store import Store
from tests.sources.lustre.client_trees import T0, enzo_node, tree_2_15
from tests.sources.stored import ingest, stored

S = 1_000_000


def sample(point: str, root: Path, time_s: int, **more: object) -> JobSample:
    about = JobSample(point, "4711", "r1i0n0", time_s * S, uptime_us=(time_s - T0 + 9000) * S, boot_id="first")
    return replace(about, items=tuple(read_tree(root, time_s * S)), **more)  # type: ignore[arg-type]


def written(folder: Path, *samples: JobSample) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "r1i0n0.job"
    path.write_bytes(b"".join(item.encoded() for item in samples))
    return path


def both(tmp_path: Path) -> tuple[JobSample, JobSample]:
    before, after = (enzo_node(tmp_path / str(ended), 0, ended) for ended in (False, True))
    return sample(BEGIN, before, T0), sample(END, after, T0 + 600)


def moved(path: Path) -> dict[str, int]:
    rows = [row.values for row in read_job_file(path).rows if row.table == "client_io"]
    return {name: sum(int(str(row[name])) for row in rows) for name in ("read_bytes", "write_bytes")}


def test_a_sample_comes_back_as_it_was(tmp_path: Path) -> None:
    begin, end = both(tmp_path)
    node_job = read_job_file(written(tmp_path / "job", begin, end))
    assert (node_job.begin, node_job.end) == (begin, end)
    assert node_job.seconds == 600
    assert moved(node_job.path) == {"read_bytes": 54 * 10**9 // 4, "write_bytes": 56 * 10**9 // 4}


def test_ingested_rows_carry_the_job(tmp_path: Path) -> None:
    path = written(tmp_path / "job", *both(tmp_path))
    assert ingest(tmp_path / "store", SOURCE.name, [path], ReadOptions()).refused == 0
    rows = stored(tmp_path / "store", "nbp1", "client_io", "node", "job_id", "read_bytes", "duration_s")
    assert rows == [("r1i0n0", "4711", 54 * 10**9 // 4, 600.0)]
    assert ingest(tmp_path / "store", SOURCE.name, [path], ReadOptions()).already_present == 1


def on_node(sample: JobSample, node: str, at_s: int) -> JobSample:
    about = {"user": "alice", "name": "enzo", "cluster": "frost", "processes": 64}
    return replace(sample, node=node, time_us=sample.time_us + at_s * S, job_nodes=("n1", "n2", "n3"), **about)  # type: ignore[arg-type]


def test_one_node_brings_what_is_known_of_the_job(tmp_path: Path) -> None:
    """The first that has ended; where nobody says which nodes there are, each does, and readers make one of them."""
    folder = tmp_path / "job"
    folder.mkdir()
    begin, end = both(tmp_path)
    for number, node in enumerate(("n3", "n2.site")):
        samples = [on_node(sample, node, number) for sample in (begin, end)]
        (folder / f"{node}.job").write_bytes(b"".join(sample.encoded() for sample in samples))
    (folder / "n1.job").write_bytes(on_node(begin, "n1", 0).encoded())
    ingest(tmp_path / "store", SOURCE.name, sorted(folder.iterdir()), ReadOptions())
    (job,) = Store(tmp_path / "store").jobs()
    assert {name: job[name] for name in ("source", "job_id", "cluster", "user", "name", "nodes", "node_list")} == {
        "source": "job-files", "job_id": "4711", "cluster": "frost", "user": "alice", "name": "enzo", "nodes": 3,
        "node_list": "n[1-3]",
    }  # fmt: skip
    assert (job["start"], job["time"], job["duration_s"]) == ((T0 + 1) * S, (T0 + 601) * S, 600.0)
    assert (job["ended"], job["processes"]) == (None, 64)


def test_a_file_cut_at_any_byte_gives_a_whole_sample_or_none(tmp_path: Path) -> None:
    begin, end = both(tmp_path)
    whole = begin.encoded() + end.encoded()
    path = written(tmp_path / "job", begin)
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        if length < len(begin.encoded()) - 1:  # the last byte is only the end of the line
            with pytest.raises(InputError):
                read_job_file(path)
            continue
        node_job = read_job_file(path)
        assert node_job.begin == begin
        assert node_job.end is None
        assert node_job.rows == []


def test_a_begin_after_a_torn_write_counts(tmp_path: Path) -> None:
    begin, end = both(tmp_path)
    path = written(tmp_path / "job")
    path.write_bytes(begin.encoded()[:300] + b"\n" + begin.encoded() + end.encoded())
    node_job = read_job_file(path)
    assert node_job.end == end
    assert [str(problem) for problem in node_job.problems] != []
    assert moved(path)["read_bytes"] == 54 * 10**9 // 4


def test_a_requeued_job_counts_from_its_last_begin(tmp_path: Path) -> None:
    begin, end = both(tmp_path)
    first = replace(begin, time_us=begin.time_us - 3600 * S)
    node_job = read_job_file(written(tmp_path / "job", first, begin, end))
    assert node_job.seconds == 600
    assert [problem.reason for problem in node_job.problems if isinstance(problem, Note)] == [
        "began twice: the earlier begin has no end and is left out"
    ]


def test_a_clock_set_during_the_job_does_not_change_how_long_it_took(tmp_path: Path) -> None:
    begin, end = both(tmp_path)
    shifted = replace(end, time_us=end.time_us - 7200 * S)  # set back by two hours; the time since boot goes on
    assert read_job_file(written(tmp_path / "job", begin, shifted)).seconds == 600


def test_after_a_reboot_only_what_came_after_it_is_known(tmp_path: Path) -> None:
    before = tree_2_15(tmp_path / "before", T0, opens=1000, start=T0 - 500)
    after = tree_2_15(tmp_path / "after", T0 + 600, opens=30, start=T0 + 300)
    begin = sample(BEGIN, before, T0)
    end = sample(END, after, T0 + 600, boot_id="second", uptime_us=300 * S)
    node_job = read_job_file(written(tmp_path / "job", begin, end))
    assert node_job.rebooted
    opens = [row.values["count"] for row in node_job.rows if row.values.get("operation") == "open"]
    assert opens == [30]
    assert node_job.restarted == {"lake"}


def test_a_file_system_that_was_unmounted_is_named(tmp_path: Path) -> None:
    begin, end = both(tmp_path)
    node_job = read_job_file(written(tmp_path / "job", begin, replace(end, items=())))
    assert node_job.unmounted == {"nbp1"}
    assert node_job.rows == []


def test_an_end_alone_is_a_problem_and_no_row(tmp_path: Path) -> None:
    _, end = both(tmp_path)
    path = written(tmp_path / "job", end)
    items = [item for capture in SOURCE.captures([path], ReadOptions()) for item in capture.items()]
    assert [str(item) for item in items if isinstance(item, Problem)] == [
        f"{path}: no sample at the begin of the job: what it moved is not known"
    ]
    assert len(items) == 1
