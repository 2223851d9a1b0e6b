"""A job that is seen again: its ended record replaces the running one, in whatever order they come, exactly once."""

from __future__ import annotations

import csv
import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from iolens.errors import StoreError
from iolens.records import Row
from iolens.schema import TABLES
from iolens.store.maintenance import compact_store, export_table, verify_store
from iolens.store.placing import files_between
from iolens.store.store import Store
from iolens.store.tables import Tables, data_files
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


def days_of(tables: Tables) -> list[str]:
    """Folders of the days that the table is cut into."""
    handle = tables.load("jobs")
    assert handle is not None
    assert handle.metadata().partition_columns == ["date"]
    return sorted({path.partition("/")[0] for path in data_files(handle)})


@pytest.fixture
def older_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store whose `jobs` iolens 0.1 made: one directory, no column `ended`."""
    older = dataclasses.replace(
        TABLES["jobs"],
        columns=tuple(column for column in TABLES["jobs"].columns if column.name not in ("date", "ended")),
        newest_by=None,
    )
    rows = [job("1", T0 - 3 * DAY, T0 - 2 * DAY, ended=True), job("2", T0, T0 + 60, ended=True)]
    with monkeypatch.context() as patch:
        patch.setitem(TABLES, "jobs", older)
        plain = [Row("jobs", {name: row.values[name] for name in row.values if name != "ended"}) for row in rows]
        for number, row in enumerate(plain):
            store.ingest([capture([row], f"old-{number}")], "simulated")
    handle = store.tables.load("jobs")
    assert handle is not None
    assert (handle.metadata().partition_columns, len(data_files(handle))) == ([], 2)
    return Store(store.url)


def test_a_store_of_0_1_is_read_without_writing_to_it(older_store: Store, tmp_path: Path) -> None:
    assert [row["job_id"] for row in older_store.jobs()] == ["1", "2"]
    assert [row["job_id"] for row in older_store.jobs(at(0))] == ["2"]
    midnight = datetime.fromtimestamp(T0 // DAY * DAY, UTC)
    for since, until, expected in ((None, None, ["1", "2"]), (midnight, midnight + timedelta(days=1), ["2"])):
        frame = older_store.select("scratch", since=since, until=until).frame("jobs").select("job_id")
        assert sorted(frame.collect(backend="pyarrow").to_native().column("job_id").to_pylist()) == expected
    assert export_table(older_store, "jobs", tmp_path / "jobs.csv") == 2
    assert verify_store(older_store).faults == []
    handle = older_store.tables.load("jobs")
    assert handle is not None
    assert handle.metadata().partition_columns == []


def test_a_store_of_0_1_is_cut_by_day_with_the_first_ingest(older_store: Store) -> None:
    repeated = older_store.ingest([capture([job("2", T0, T0 + 60, ended=None)], "again")], "slurm")
    assert (repeated.rows["jobs"], repeated.repeated) == (0, 1)
    added = older_store.ingest([capture([job("3", T0 + DAY, T0 + DAY + 5, ended=True)], "new")], "slurm")
    assert added.rows["jobs"] == 1
    days = [datetime.fromtimestamp(T0 + shift * DAY, UTC).date() for shift in (-3, 0, 1)]
    assert days_of(older_store.tables) == [f"date={day}" for day in days]
    assert [row["job_id"] for row in older_store.jobs()] == ["1", "2", "3"]
    assert [row["date"] for row in older_store.jobs()] == days
    result = verify_store(older_store)
    assert (result.faults, result.unrecorded) == ([], 0)
    again = older_store.ingest([capture([job("1", T0 - 3 * DAY, T0, ended=None)], "old-0")], "simulated")
    assert again.already_present == 1


def test_a_store_of_0_1_is_cut_by_day_when_it_is_compacted(older_store: Store) -> None:
    compact_store(older_store)
    assert len(days_of(older_store.tables)) == 2
    assert [row["job_id"] for row in older_store.jobs()] == ["1", "2"]
    assert verify_store(older_store).faults == []


def test_a_migration_cut_off_after_the_books_were_written_is_done_again(
    older_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError("the power went")

    with monkeypatch.context() as patch:
        patch.setattr("iolens.store.delta_log.DeltaLog.add_entry", fails)
        with pytest.raises(StoreError, match="the power went"):
            older_store.ingest([capture([ENDED], "new")], "slurm")
    assert [row["job_id"] for row in older_store.jobs()] == ["1", "2"]
    assert verify_store(older_store).faults == []
    older_store.ingest([capture([ENDED], "new")], "slurm")
    assert [row["job_id"] for row in older_store.jobs()] == ["1", "2", "7"]
    assert verify_store(older_store).faults == []


def test_jobs_of_a_window_open_only_the_days_that_can_have_them(store: Store) -> None:
    for number in range(6):
        begin = T0 + number * DAY
        store.ingest([capture([job(str(number), begin, begin + 9, ended=True)], f"file-{number}")], "slurm")
    assert len(days_of(store.tables)) == 6
    handle = store.tables.load("jobs")
    assert handle is not None
    assert len(files_between(handle, (T0 + 2 * DAY) * 1_000_000, (T0 + 3 * DAY) * 1_000_000)) == 2
    assert [row["job_id"] for row in store.jobs(at(2 * DAY), at(3 * DAY))] == ["2"]


# What samples of a job's nodes tell of it


def sampled(start_s: int, end_s: int, job_id: str = "7", node: str = "n[1-2]", **more: object) -> Row:
    about = {"source": "job-files", "cluster": "frost", "user": "alice", "node_list": node, "nodes": 2, **more}
    return job(job_id, T0 + start_s, T0 + end_s, ended=None, **{"filesystem": None, **about})


RECORD = job("7", T0, T0 + 3600, ended=True, state="COMPLETED", user="bob")


def users(store: Store) -> list[tuple[object, object]]:
    return [(row["job_id"], row["user"]) for row in store.jobs()]


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
@pytest.mark.parametrize("more", [{}, {"cluster": None}, {"user": None}])
def test_the_record_of_a_scheduler_counts_whenever_it_comes(
    store: Store, order: list[int], more: dict[str, object]
) -> None:
    rows = [sampled(2, 3605, **more), RECORD]
    for number in order:
        store.ingest([capture([rows[number]], f"capture-{number}")], "job-files" if number == 0 else "slurm")
    assert users(store) == [("7", "bob")]
    assert [row["user"] for row in store.jobs(job_id="7")] == ["bob"]


def test_a_job_without_a_record_is_known_by_its_samples(store: Store) -> None:
    store.ingest([capture([sampled(2, 3605)], "a")], "job-files")
    assert users(store) == [("7", "alice")]
    store.ingest([capture([job("7", T0 + 9000, T0 + 9600, ended=True, user="bob")], "b")], "slurm")  # ran again
    assert users(store) == [("7", "alice"), ("7", "bob")]
    other = job("7", T0, T0 + 3600, ended=True, user="carol", cluster="steppe")
    store.ingest([capture([other], "c")], "slurm")
    assert sorted(users(store)) == [("7", "alice"), ("7", "bob"), ("7", "carol")]


def test_the_record_counts_at_the_edge_of_a_window_too(store: Store) -> None:
    """The record begins outside of a window in which the samples begin, or ends before it."""
    store.ingest([capture([sampled(-3, 3605)], "a"), capture([RECORD], "b")], "test")
    assert [row["user"] for row in store.jobs(at(-10), at(0))] == []
    assert [row["user"] for row in store.jobs(at(3602), at(4000))] == []
    assert [row["user"] for row in store.jobs(at(10), at(20))] == ["bob"]


def test_nodes_that_came_each_by_itself_are_one_job(store: Store) -> None:
    """Nobody said which nodes the job had, so each brought a row; then it ran again."""
    rows = [sampled(start, end, node=node, nodes=1) for start, end, node in
            [(1, 100, "a"), (0, 99, "b"), (3, 300, "a"), (1000, 1100, "a")]]  # fmt: skip
    for number, row in enumerate(rows):
        store.ingest([capture([row], f"capture-{number}")], "job-files")
    first, second = store.jobs()
    assert (first["start"], first["time"], first["duration_s"]) == (T0 * 10**6, (T0 + 300) * 10**6, 300)
    assert (first["node_list"], first["nodes"]) == ("b,a", 2)
    assert (second["start"], second["nodes"]) == ((T0 + 1000) * 10**6, 1)
