"""A job that is seen again: its ended record replaces the running one, in whatever order they come, exactly once."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from iolens.records import Row
from iolens.store.maintenance import compact_store, export_table, verify_store
from iolens.store.store import Store
from tests.store.samples import T0, capture, io_sample

DAY = 86_400


def job(job_id: str, start_s: int, end_s: int, ended: bool | None, **more: object) -> Row:
    values = {"time": end_s * 1_000_000, "start": start_s * 1_000_000, "ended": ended, "filesystem": "scratch"}
    return Row("jobs", {"cluster": "frost", "job_id": job_id, **values, **more})


RUNNING = job("7", T0, T0 + 60, ended=False, state="RUNNING")
LATER = job("7", T0, T0 + 90, ended=False, state="RUNNING")
ENDED = job("7", T0, T0 + 3600, ended=True, state="COMPLETED")
OF_STEPS = job("7", T0, T0 + 3000, ended=None)


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(T0 + seconds, UTC)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    store.ingest([capture([io_sample(0, 0, 0), io_sample(5, 100, 0)], "io")], "test")
    return store


def states(store: Store, folder: Path) -> list[object]:
    """The state of each job, by all readers of the table; they agree."""
    frame = store.select("scratch").frame("jobs").select("state").collect(backend="pyarrow").to_native()
    result = [row["state"] for row in store.jobs()]
    assert sorted(frame.column("state").to_pylist(), key=str) == sorted(result, key=str)
    assert export_table(store, "jobs", folder / "jobs.csv") == len(result)
    exported = [row["state"] for row in csv.DictReader((folder / "jobs.csv").open())]
    assert sorted(exported) == sorted(str(state or "") for state in result)
    return result


@pytest.mark.parametrize(
    "order",
    [
        [RUNNING, ENDED], [ENDED, RUNNING], [OF_STEPS, RUNNING, ENDED], [ENDED, OF_STEPS], [RUNNING, ENDED, LATER],
    ],
)  # fmt: skip
@pytest.mark.parametrize("together", [False, True])
def test_the_ended_record_counts_in_whatever_order_they_come(
    store: Store, tmp_path: Path, order: list[Row], together: bool
) -> None:
    for number, pieces in enumerate([order] if together else [[row] for row in order]):
        store.ingest([capture(pieces, f"sacct-{number}")], f"source-{number}")
    assert states(store, tmp_path) == ["COMPLETED"]
    compact_store(store)
    assert states(store, tmp_path) == ["COMPLETED"]
    assert verify_store(store).faults == []


def test_the_same_again_adds_nothing(store: Store, tmp_path: Path) -> None:
    assert store.ingest([capture([RUNNING], "a")], "slurm").rows["jobs"] == 1
    again = store.ingest([capture([LATER], "b")], "slurm")  # still running: the record there is says as much
    assert (again.rows["jobs"], again.repeated) == (0, 1)
    assert store.ingest([capture([ENDED], "c")], "slurm").rows["jobs"] == 1
    for name in ("c", "d"):
        assert store.ingest([capture([ENDED, RUNNING], name)], "slurm").rows["jobs"] == 0
    assert states(store, tmp_path) == ["COMPLETED"]


def test_a_job_that_was_requeued_is_another_row_and_so_is_one_of_another_cluster(store: Store, tmp_path: Path) -> None:
    requeued = job("7", T0 + 7200, T0 + 7300, ended=True, state="FAILED")
    other = job("7", T0, T0 + 50, ended=True, state="TIMEOUT", cluster=None)
    store.ingest([capture([RUNNING, other, ENDED, requeued], "a")], "slurm")
    assert sorted(map(str, states(store, tmp_path))) == ["COMPLETED", "FAILED", "TIMEOUT"]


def test_jobs_of_a_window_are_those_that_overlap_it(store: Store) -> None:
    long = job("1", T0 - 3 * DAY, T0 + 3 * DAY, ended=True)
    early, late = job("2", T0 - 2 * DAY, T0 - DAY, ended=True), job("3", T0 + 2 * DAY, T0 + 2 * DAY + 9, ended=True)
    for number, row in enumerate((long, early, late, ENDED)):
        store.ingest([capture([row], f"file-{number}")], "slurm")
    assert [row["job_id"] for row in store.jobs(at(0), at(60))] == ["1", "7"]
    assert [row["job_id"] for row in store.jobs(at(-2 * DAY), at(0))] == ["1", "2"]
    assert [row["job_id"] for row in store.jobs(until=at(-DAY), job_id="2")] == ["2"]
    assert [row["job_id"] for row in store.jobs(at(2 * DAY) + timedelta(seconds=9))] == ["1", "3"]
    assert Store(store.url + "-none").jobs() == []
