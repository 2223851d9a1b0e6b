"""Which job a run belongs to, and the runs of a window with their jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iolens.analyses.runs.measures import with_rate
from iolens.arrays import Booleans, Integers
from iolens.store.selection import StoreSelection
from iolens.units import epoch_us

# Which job a run belongs to, where its job id alone does not say ------------------------------------------------------
# Several records of one id, or no such id.
#
# A scheduler that queues a job again, and clusters that count alike, give one id to several jobs: the one nearest in
# time counts. A run whose id no job has (tasks of arrays are recorded as 123_4, while a run knows its number only) is
# matched by owner and time, if that leaves no choice.

SLACK_US: Final = 3_600_000_000  # how far the clocks of a run and of the scheduler may be apart, for one job id
CLOSE_US: Final = 60_000_000  # and where the id does not help: a run lies within its job
BY_ID, BY_USER, NOT_JOINED = "id", "user_executable_time", "none"
MOST_PAIRS: Final = 4_000_000  # of runs and jobs that are looked at together
_NAMES: Final = ("job_id", "cluster", "start_us", "user", "project", "nodes", "cores")
_SECOND_BITS: Final = 34  # seconds since 1970 until the year 2500


def matched_by_id(runs: pa.Table, jobs: pa.Table) -> pa.Table:
    """For runs whose id has several records: the nearest that overlaps the run.

    Of several the owner's own comes first, then the smallest distance of starts, then a record of the end.
    """
    code_of_run, code_of_job = _codes(runs.column("job_id"), jobs.column("job_id"))
    order = np.argsort(code_of_job, kind="stable")
    of_run, place = _pairs(np.searchsorted(code_of_job[order], code_of_run, "left"),
                           np.searchsorted(code_of_job[order], code_of_run, "right"))  # fmt: skip
    of_job = order[place]
    starts, ends = (_numbers(runs, name)[of_run] for name in ("start_us", "epoch_us"))
    job_starts, job_ends = (_numbers(jobs, name)[of_job] for name in ("start_us", "epoch_us"))
    overlaps = (job_starts <= ends + SLACK_US) & (job_ends >= starts - SLACK_US)
    of_run, of_job = of_run[overlaps], of_job[overlaps]
    owner, job_owner = _codes(runs.column("user"), jobs.column("user"))
    cluster, _ = _codes(jobs.column("cluster"), jobs.column("cluster"))
    ended, loaded = _finality(jobs)
    ranks = (
        job_starts[overlaps],
        cluster[of_job],
        -loaded[of_job],
        -ended[of_job],
        np.abs(job_starts[overlaps] - starts[overlaps]),
        owner[of_run] != job_owner[of_job],
        of_run,
    )
    by_rank = np.lexsort(ranks)
    of_run, of_job = of_run[by_rank], of_job[by_rank]
    is_first = np.append(True, of_run[1:] != of_run[:-1])[: of_run.size]
    return _matches(runs, jobs, of_run[is_first], of_job[is_first], BY_ID)


def matched_by_user(runs: pa.Table, jobs: pa.Table) -> pa.Table:
    """For runs without a job id that helps: the owner's job around the run whose name is the executable.

    Without such a name, the only job of the owner that ran then on at least as many cores as the run has processes.
    """
    jobs = _latest_records(jobs)
    codes, job_codes = _codes(runs.column("user"), jobs.column("user"))
    executable, job_name = _codes(runs.column("executable"), jobs.column("name"))
    kept: list[tuple[Integers, Integers]] = []
    for of_run, of_job in _pairs_in_time(runs, jobs, codes, job_codes):
        named = (executable[of_run] == job_name[of_job]) & (executable[of_run] >= 0)
        with_name = np.zeros(len(runs), dtype=bool)
        with_name[of_run[named]] = True
        cores, processes = _numbers(jobs, "cores")[of_job], _numbers(runs, "processes")[of_run]
        fits = ~with_name[of_run] & (cores >= processes) & (processes > 0)
        kept += [_only(of_run, of_job, choice) for choice in (named, fits)]
    pairs = [np.concatenate([part[side] for part in kept]) if kept else np.zeros(0, np.int64) for side in (0, 1)]
    return _matches(runs, jobs, pairs[0], pairs[1], BY_USER)


def _only(of_run: Integers, of_job: Integers, choice: Booleans) -> tuple[Integers, Integers]:
    """Pairs of runs that have one job to choose."""
    chosen, jobs = of_run[choice], of_job[choice]
    numbers, counts = np.unique(chosen, return_counts=True)
    is_only = np.isin(chosen, numbers[counts == 1])
    return chosen[is_only], jobs[is_only]


def _pairs_in_time(
    runs: pa.Table, jobs: pa.Table, codes: Integers, job_codes: Integers
) -> Iterator[tuple[Integers, Integers]]:
    """Runs and the jobs of their owner that ran around them; all pairs of a run come together."""
    starts, ends = (_numbers(runs, name) for name in ("start_us", "epoch_us"))
    job_starts, job_ends = (_numbers(jobs, name) for name in ("start_us", "epoch_us"))
    keys = (job_codes << _SECOND_BITS) + job_starts // 1_000_000
    order = np.argsort(keys, kind="stable")
    longest = np.zeros(max(int(codes.max(initial=-1)), int(job_codes.max(initial=-1))) + 1, dtype=np.int64)
    np.maximum.at(longest, job_codes[job_codes >= 0], (job_ends - job_starts)[job_codes >= 0])
    known = np.flatnonzero(codes >= 0)
    base = codes[known] << _SECOND_BITS
    earliest = base + np.maximum(starts[known] - longest[codes[known]] - CLOSE_US, 0) // 1_000_000
    latest = base + (starts[known] + CLOSE_US) // 1_000_000
    low, high = np.searchsorted(keys[order], earliest, "left"), np.searchsorted(keys[order], latest, "right")
    for part in _portions(high - low):
        of_run, place = _pairs(low[part], high[part])
        run, job = known[part][of_run], order[place]
        within = (job_starts[job] - CLOSE_US <= starts[run]) & (ends[run] <= job_ends[job] + CLOSE_US)
        yield run[within], job[within]


def _portions(counts: Integers) -> Iterator[slice]:
    """Runs in stretches of at most `MOST_PAIRS` pairs, or of one run."""
    ends = np.cumsum(counts)
    first = 0
    while first < counts.size:
        before = ends[first - 1] if first else 0
        last = max(int(np.searchsorted(ends, before + MOST_PAIRS, "right")), first + 1)
        yield slice(first, last)
        first = last


def _pairs(low: Integers, high: Integers) -> tuple[Integers, Integers]:
    """Every place from `low` up to `high`, with the number of the pair of ends it is of."""
    counts = high - low
    owner = np.repeat(np.arange(counts.size), counts)
    place = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts - low, counts)
    return owner, place


def _finality(jobs: pa.Table) -> tuple[Integers, Integers]:
    """Which record of a job counts: whether it had ended, and when it was loaded; −1: not known."""
    ended = np.asarray(pc.fill_null(pc.cast(jobs.column("ended"), pa.int64()), -1))
    return ended, np.asarray(pc.fill_null(jobs.column("loaded_us"), -1))


def _latest_records(jobs: pa.Table) -> pa.Table:
    """Of several records of one job the one of its end, of these the one loaded last, else the latest."""
    cluster, identity = (_codes(jobs.column(name), jobs.column(name))[0] for name in ("cluster", "job_id"))
    ended, loaded = _finality(jobs)
    starts, ends = (_numbers(jobs, name) for name in ("start_us", "epoch_us"))
    order = np.lexsort((-ends, -loaded, -ended, starts, identity, cluster))
    key = np.stack([cluster, identity, starts])[:, order]
    is_first = np.append(True, (key[:, 1:] != key[:, :-1]).any(axis=0))[: order.size]
    return jobs.take(pa.array(np.sort(order[is_first])))


def _codes(left: Any, right: Any) -> tuple[Integers, Integers]:
    """The texts of two columns as numbers; NULL is −1 on the left and −2 on the right, so that it equals nothing."""
    both = pa.chunked_array([*left.cast(pa.string()).chunks, *right.cast(pa.string()).chunks], pa.string())
    index = both.combine_chunks().dictionary_encode().indices
    numbers = np.asarray(pc.fill_null(index, -1)).astype(np.int64)
    first, second = numbers[: len(left)].copy(), numbers[len(left) :].copy()
    second[second < 0] = -2
    return first, second


def _numbers(table: pa.Table, name: str) -> Integers:
    """A column of whole numbers; NULL is −1."""
    return np.asarray(pc.fill_null(table.column(name), -1)).astype(np.int64)


def _matches(runs: pa.Table, jobs: pa.Table, of_run: Integers, of_job: Integers, joined_by: str) -> pa.Table:
    columns = {f"matched_{name}": jobs.column(name).take(pa.array(of_job)) for name in _NAMES}
    run_ids = runs.column("run_id").take(pa.array(of_run))
    return pa.table({"run_id": run_ids, **columns, "joined_by": pa.repeat(joined_by, of_run.size)})


# Runs of a window with their jobs -------------------------------------------------------------------------------------
# By job id and time, else by user, executable and time (SPEC D3).
#
# The engine joins runs with jobs whose id has one record. What that leaves (ids with several records, ids of nobody) is
# matched in `matching.py` by a few narrow columns, and joined in as well. A run counts once, however many records
# match.

Frame = nw.LazyFrame[Any]

JOB_COLUMNS: Final[dict[str, type[nw.String] | type[nw.Int64]]] = {
    "job_id": nw.String, "cluster": nw.String, "start_us": nw.Int64, "user": nw.String, "project": nw.String,
    "nodes": nw.Int64, "cores": nw.Int64,
}  # fmt: skip
"""Of the job of a run; in the joined frame they are called `matched_job_id` and so on."""
_RUN_COLUMNS: Final = ("run_id", "job_id", "user", "executable", "processes", "start_us", "epoch_us")
_MOST_USERS: Final = 1000  # named in a question; beyond, all jobs are asked for


def joined_runs(selection: StoreSelection) -> Frame:
    """Runs of the selection as a lazy frame: all their columns, their rates, and what the scheduler knows of them.

    `project`, `user` and `nodes` are those of the job, else the run's own; NULL: not known. `cores` is the job's, and
    `matched_job_id`, `matched_cluster` and `matched_start_us` name it. `joined_by`: id, user_executable_time or none.
    """
    runs = with_rate(selection.frame("runs"))
    jobs = _jobs_around(selection)
    if jobs is None:
        nothing = [nw.lit(None).cast(kind).alias(f"matched_{name}") for name, kind in JOB_COLUMNS.items()]
        return _completed(runs.with_columns(*nothing, nw.lit(NOT_JOINED).alias("joined_by")))
    repeated = _repeated_ids(jobs)
    once = jobs.join(selection.beside(repeated), on="job_id", how="anti") if len(repeated) else jobs
    by_id = _by_single_id(runs, once)
    rest = _matched_one_by_one(selection, by_id, jobs, repeated)
    return _completed(by_id if rest is None else _with(by_id, selection.beside(rest)))


def _jobs_around(selection: StoreSelection) -> Frame | None:
    """Every record of a job that may be that of one of the runs; None: there is none."""
    snapshot = selection.snapshot("runs")
    first, last = snapshot.extreme("start", "min"), snapshot.extreme("time", "max")
    if first is None or last is None:
        return None
    jobs = selection.records_between("jobs", epoch_us(first) - SLACK_US, epoch_us(last) + SLACK_US)
    return jobs if jobs.select("job_id").head(1).collect(backend="pyarrow").shape[0] else None


def _repeated_ids(jobs: Frame) -> pa.Table:
    counts = jobs.group_by("job_id").agg(nw.len().alias("records")).filter(nw.col("records") > 1)
    return _table(counts.select("job_id"))


def _by_single_id(runs: Frame, jobs: Frame) -> Frame:
    """Runs with the one record of their job id, where that job overlaps the run."""
    named = jobs.select(
        nw.col("job_id").alias("_id"),
        nw.col("epoch_us").alias("_end_us"),
        *(nw.col(name).alias(f"matched_{name}") for name in JOB_COLUMNS),
    )
    both = runs.join(named, left_on="job_id", right_on="_id", how="left")
    begins = nw.col("matched_start_us") <= nw.col("epoch_us") + SLACK_US
    overlaps = begins & (nw.col("_end_us") >= nw.col("start_us") - SLACK_US)
    return both.with_columns(
        *(nw.when(overlaps).then(nw.col(f"matched_{name}")).alias(f"matched_{name}") for name in JOB_COLUMNS),
        nw.when(overlaps).then(nw.lit(BY_ID)).otherwise(nw.lit(NOT_JOINED)).alias("joined_by"),
    )


def _matched_one_by_one(selection: StoreSelection, by_id: Frame, jobs: Frame, repeated: pa.Table) -> pa.Table | None:
    """Jobs of the runs that a single id did not settle, by `run_id`."""
    left = _table(by_id.filter(nw.col("joined_by") == NOT_JOINED).select(*_RUN_COLUMNS))
    if not len(left):
        return None
    parts = []
    if len(repeated):
        of_ids = jobs.join(selection.beside(repeated), on="job_id", how="semi")
        parts.append(matched_by_id(left, _records(of_ids)))
        left = left.filter(pc.invert(pc.is_in(left.column("run_id"), parts[0].column("run_id"))))
    users = pc.unique(left.column("user").drop_null())
    if len(users):
        of_users = jobs if len(users) > _MOST_USERS else jobs.filter(nw.col("user").is_in(users.to_pylist()))
        parts.append(matched_by_user(left, _records(of_users)))
    matched = pa.concat_tables(parts) if parts else None
    return matched if matched is not None and len(matched) else None


def _records(jobs: Frame) -> pa.Table:
    return _table(jobs.select(*JOB_COLUMNS, "epoch_us", "name", "ended", "loaded_us"))


def _with(by_id: Frame, matched: Frame) -> Frame:
    names = (*(f"matched_{name}" for name in JOB_COLUMNS), "joined_by")
    later = matched.rename({"run_id": "_run_id", **{name: f"_{name}" for name in names}})
    both = by_id.join(later, left_on="run_id", right_on="_run_id", how="left")
    return both.with_columns(
        *(nw.coalesce(f"_{name}", name).alias(name) for name in names),
    )


def _completed(frame: Frame) -> Frame:
    """With what is known of the project, the owner and the nodes, by the job or by the run itself."""
    own = ("project", "user", "nodes")
    return frame.with_columns(
        *(nw.coalesce(f"matched_{name}", name).alias(name) for name in own), nw.col("matched_cores").alias("cores")
    )


def _table(frame: Frame) -> pa.Table:
    table: pa.Table = frame.collect(backend="pyarrow").to_native()
    return table
