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
        columns=tuple(column for column in TABLES["jobs"].columns if column.name not in ("date", "ended", "loaded_us")),
        newest_by=None,
        loaded_by=None,
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


HOUR = 3600


def shifted(row: Row, by_s: int, **more: object) -> Row:
    """The same record, read with another zone."""
    values = dict(row.values)
    times = {name: int(str(values[name])) + by_s * 1_000_000 for name in ("time", "start", "submit") if name in values}
    return Row("jobs", {**values, **times, **more})


WAITED = job("7", T0, T0 + HOUR, True, submit=(T0 - 100) * 10**6, duration_s=3600.0, user="ann", node_list="n[1-2]",
             state="COMPLETED", nodes=2)  # fmt: skip
UNTIMED = job("8", T0, T0 + 60, True, duration_s=60.0, user="ann")  # without submission


def starts(store: Store) -> list[int]:
    """In hours since T0, by all readers of the table; they agree."""
    rows = store.jobs()
    frame = store.select("scratch").frame("jobs").select("start_us").collect(backend="pyarrow").to_native()
    assert sorted(frame.column(0).to_pylist()) == [row["start"] for row in rows]
    return [(int(str(row["start"])) // 10**6 - T0) // HOUR for row in rows]


@pytest.mark.parametrize("shift", [-2, 1, 14])
@pytest.mark.parametrize("record", [WAITED, UNTIMED])
def test_a_record_loaded_again_with_another_zone_replaces_the_first(store: Store, record: Row, shift: int) -> None:
    wrong, right = shifted(record, shift * HOUR), record
    store.ingest([capture([wrong], "wrong")], "slurm")
    assert store.ingest([capture([right], "right")], "slurm").rows["jobs"] == 1
    assert starts(store) == [0]
    assert [row["start"] for row in store.jobs(at(0), at(60))] == [T0 * 10**6]
    assert store.jobs(at(shift * HOUR + 9), at(shift * HOUR + 60)) == []
    compact_store(store)
    assert starts(store) == [0]


def test_clocks_that_were_changed_between_submission_and_start(store: Store) -> None:
    """In summer Berlin is two hours ahead of UTC, in winter one."""
    wrong = shifted(WAITED, -HOUR, submit=(T0 - 100 - 2 * HOUR) * 10**6)
    for name, row in (("wrong", wrong), ("right", WAITED)):
        store.ingest([capture([row], name)], "slurm")
    assert starts(store) == [0]


def test_a_job_seen_running_with_the_wrong_zone_is_the_same_job(store: Store) -> None:
    running = {"ended": False, "state": "RUNNING", "duration_s": 1800.0, "time": (T0 - HOUR + 1800 + HOUR) * 10**6}
    store.ingest([capture([shifted(WAITED, -HOUR // 2, **running)], "wrong")], "slurm")
    store.ingest([capture([WAITED], "right")], "slurm")
    assert [(row["start"], row["ended"]) for row in store.jobs()] == [(T0 * 10**6, True)]


@pytest.mark.parametrize("later", [{"ended": False, "state": "RUNNING"}, {"duration_s": 9000.0}])
@pytest.mark.parametrize("hours", [1, 2, -1])
def test_a_job_seen_running_long_before_or_twice_is_the_same_job(
    store: Store, later: dict[str, object], hours: int
) -> None:
    """The two do not overlap: it was seen running for an hour, and zones are an hour or two apart."""
    running = {"ended": False, "state": "RUNNING"}
    store.ingest([capture([shifted(WAITED, -hours * HOUR, **running)], "wrong")], "slurm")
    store.ingest([capture([shifted(WAITED, 0, **later)], "right")], "slurm")
    assert [row["start"] for row in store.jobs()] == [T0 * 10**6]


def test_a_requeued_job_that_was_seen_running_is_two_runs(store: Store) -> None:
    store.ingest([capture([shifted(WAITED, 0, ended=False, state="RUNNING")], "a")], "slurm")
    again = shifted(WAITED, 2 * HOUR, submit=(T0 + HOUR) * 10**6 + 7)
    store.ingest([capture([again], "b")], "slurm")
    assert starts(store) == [0, 2]


@pytest.mark.parametrize(
    "other",
    [
        shifted(WAITED, 7 * HOUR + 13),  # no shift of zones
        shifted(WAITED, 30 * HOUR),
        shifted(WAITED, 2 * HOUR, submit=(T0 + HOUR) * 10**6 + 7),  # submitted again
        shifted(WAITED, 2 * HOUR, duration_s=3599.0, time=(T0 + 3 * HOUR - 1) * 10**6),
        shifted(WAITED, 2 * HOUR, node_list="n[3-4]"),
        shifted(WAITED, 2 * HOUR, cluster="steppe"),
        shifted(WAITED, 2 * HOUR, job_id="7_1"),
    ],
)
def test_another_run_another_cluster_and_another_task_stay(store: Store, other: Row) -> None:
    for name, row in (("a", WAITED), ("b", other)):
        store.ingest([capture([row], name)], "slurm")
    assert len(starts(store)) == 2


def test_records_of_one_ingest_have_one_zone(store: Store) -> None:
    """A job that is requeued every hour, in two files of one call."""
    store.ingest([capture([WAITED, shifted(WAITED, HOUR)], "a"), capture([shifted(WAITED, 2 * HOUR)], "b")], "slurm")
    assert starts(store) == [0, 1, 2]


def test_of_records_that_an_older_iolens_loaded_twice_one_counts(older_store: Store) -> None:
    rows = [dict(row) for row in older_store.jobs(job_id="2")]
    assert rows[0]["loaded_us"] is None
    for number, shift in enumerate((0, HOUR)):
        row = shifted(UNTIMED, shift, loaded_us=None)
        older_store.ingest([capture([row], f"{number}")], "slurm")
    assert [row["start"] for row in older_store.jobs(job_id="8")] == [(T0 + HOUR) * 10**6]


def test_a_later_record_of_the_same_run_replaces_what_it_knows_better(store: Store, tmp_path: Path) -> None:
    more = shifted(WAITED, 0, nodes=6, node_list="n[1-6]")
    for number, (row, added) in enumerate([(WAITED, 1), (more, 1), (more, 0), (shifted(more, 0, user=None), 0)]):
        assert store.ingest([capture([row], f"file-{number}")], "slurm").rows["jobs"] == added
    assert states(store, tmp_path) == ["COMPLETED"]
    assert [(row["nodes"], row["user"]) for row in store.jobs()] == [(6, "ann")]
    assert store.ingest([capture([WAITED], "again")], "slurm").rows["jobs"] == 1
    assert [row["nodes"] for row in store.jobs()] == [2]
