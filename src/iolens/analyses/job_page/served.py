"""What servers know of a job: on which targets job_stats name it, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from iolens.analyses.attribution.job_ids import JobIdForm, JobIdParts, guessed_parts
from iolens.store.selection import StoreSelection

PartsOf = Callable[[str], JobIdParts]


@dataclass(frozen=True, slots=True)
class ServedJob:
    """Targets that served a job, and from when to when, in microseconds since 1970."""

    targets: Sequence[str]
    start_us: int
    end_us: int


def parts_by(form: str | None) -> PartsOf:
    """How ids of job_stats are taken apart: by the file system's `jobid_name`, else by what they look like."""
    return JobIdForm(form).parts if form else guessed_parts


def served_job(
    selection: StoreSelection, job_id: str, parts_of: PartsOf, ran_us: tuple[int, int] | None = None
) -> ServedJob | None:
    """By intervals that meet `ran_us`, the time of the job; None: job_stats of the selection do not name it then."""
    if not selection.holds("job_io"):
        return None
    ids = [text for text in served_ids(selection) if text == job_id or parts_of(text).job_id == job_id]
    if not ids:
        return None
    own = selection.frame("job_io").filter(nw.col("job_id").is_in(ids))
    if ran_us is not None:
        own = own.filter((nw.col("epoch_us") > ran_us[0]) & (nw.col("start_us") < ran_us[1]))
    by_target = own.group_by("target")
    rows = _rows(by_target.agg(nw.col("start_us").min().alias("first_us"), nw.col("epoch_us").max().alias("last_us")))
    if not rows:
        return None
    first_us, last_us = min(row["first_us"] for row in rows), max(row["last_us"] for row in rows)
    return ServedJob(sorted(row["target"] for row in rows), int(first_us), int(last_us))


def served_ids(selection: StoreSelection) -> list[str]:
    """Every id of job_stats."""
    return [row["job_id"] for row in _rows(selection.frame("job_io").select("job_id").unique())]


def _rows(frame: nw.LazyFrame[Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.collect(backend="pyarrow").to_native().to_pylist()
    return rows
