"""What all questions over many runs have in common: which runs, which window, and how answers are fetched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import narwhals as nw

from iolens.analyses.runs.joined import joined_runs
from iolens.analyses.runs.matching import BY_ID, BY_USER, NOT_JOINED
from iolens.analyses.runs.measures import with_measures
from iolens.analyses.runs.rate import is_short
from iolens.analyses.runs.run_conditions import RunConditions
from iolens.run_tables import RateMethod
from iolens.store.selection import StoreSelection

Frame = nw.LazyFrame[Any]
Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverRuns:
    """What every answer over many runs says: which file system was asked for (None: all), when, and how many runs."""

    filesystem: str | None
    window_start: datetime | None
    window_end: datetime | None
    runs: int


@dataclass(frozen=True, slots=True)
class JoinedRuns:
    """How runs were matched with the scheduler's records."""

    by_id: int
    by_user_executable_time: int
    without_job: int


def asked_runs(selection: StoreSelection, like: RunConditions, method: RateMethod = "layers") -> Frame:
    """Runs of the selection that are as `like` says, with their jobs and all measures; rates by the method."""
    return like.kept(with_measures(joined_runs(selection), method))


def lines_of(frame: Frame) -> list[dict[str, Any]]:
    """A small answer, line by line."""
    lines: list[dict[str, Any]] = frame.collect(backend="pyarrow").to_native().to_pylist()
    return lines


def window_of(selection: StoreSelection) -> dict[str, Any]:
    """The file system and the window that were asked for; an open end is that of the runs there are."""
    snapshot = selection.snapshot("runs")
    extent = snapshot.extreme("start", "min"), snapshot.extreme("time", "max")
    ends = [end if end is not None else None if known is None else known.astimezone(UTC)
            for end, known in zip(selection.window, extent, strict=True)]  # fmt: skip
    return {"filesystem": selection.filesystem or None, "window_start": ends[0], "window_end": ends[1]}


def sums(names: Iterable[str]) -> list[nw.Expr]:
    """Sums of whole numbers, and how many values they are of; `known_sum` reads them."""
    return [
        expression
        for name in names
        for expression in (nw.col(name).sum().cast(nw.Int64), nw.col(name).count().alias(f"{name}_known"))
    ]


def known_sum(line: Line, name: str) -> int | None:
    """A sum of `sums`; None where no value is known."""
    return int(line[name]) if line[f"{name}_known"] else None


def counted_where(condition: nw.Expr, name: str) -> nw.Expr:
    """How many rows fulfil a condition; one that is unknown does not."""
    return nw.coalesce(condition.cast(nw.Int64), nw.lit(0)).sum().cast(nw.Int64).alias(name)


def joined_counts() -> list[nw.Expr]:
    """How many runs were matched, and how; `joined_of` reads them."""
    return [counted_where(nw.col("joined_by") == kind, f"_{kind}") for kind in (BY_ID, BY_USER, NOT_JOINED)]


def joined_of(lines: Iterable[Line]) -> JoinedRuns:
    """The sum over lines of an answer."""
    counts = [(line[f"_{BY_ID}"], line[f"_{BY_USER}"], line[f"_{NOT_JOINED}"]) for line in lines]
    return JoinedRuns(*(sum(int(line[place]) for line in counts) for place in range(3)))


def rate_counts() -> list[nw.Expr]:
    """How many runs have a rate that says little, and how many none since an earlier iolens loaded them."""
    return [counted_where(is_short(), "runs_short"), counted_where(nw.col("is_rate_lost"), "runs_without_rate")]


def moved(line: Line) -> int:
    """Bytes read and written of a line of an answer, as far as known."""
    return (line["read_bytes"] or 0) + (line["write_bytes"] or 0)
