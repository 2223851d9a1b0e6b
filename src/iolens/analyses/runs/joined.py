"""Runs of a window with their jobs: by job id and time, else by user, executable and time (SPEC D3).

The engine joins runs with jobs whose id has one record. What that leaves (ids with several records, ids of nobody) is
matched in `matching.py` by a few narrow columns, and joined in as well. A run counts once, however many records match.
"""

from __future__ import annotations

from typing import Any, Final

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc

from iolens.analyses.runs.matching import BY_ID, NOT_JOINED, SLACK_US, matched_by_id, matched_by_user
from iolens.analyses.runs.rate import with_rate
from iolens.store.selection import StoreSelection
from iolens.units import epoch_us

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
