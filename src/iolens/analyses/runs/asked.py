"""Which runs a question is about, what all questions over many runs have in common, and classes of processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import narwhals as nw

from iolens.analyses.results import pct
from iolens.analyses.runs.matching import BY_ID, BY_USER, NOT_JOINED, joined_runs
from iolens.analyses.runs.measures import is_short, moved_bytes, with_measures
from iolens.run_tables import RateMethod
from iolens.store.selection import StoreSelection

# Which runs a question is about ---------------------------------------------------------------------------------------
# Project, owner, executable, and the least size of a run.

Frame = nw.LazyFrame[Any]

UNKNOWN: Final = "(unknown)"
"""What a project is called that neither the scheduler nor the log tells; in options too."""


@dataclass(frozen=True, slots=True)
class RunConditions:
    """An empty part is any. In names `*` and `?` stand for anything; a run has at least `min_processes` processes and
    moved at least `min_bytes`.
    """

    projects: Sequence[str] = ()
    users: Sequence[str] = ()
    executables: Sequence[str] = ()
    without_projects: Sequence[str] = ()
    min_processes: int = 0
    min_bytes: int = 0

    def kept(self, frame: Frame) -> Frame:
        """Those runs of a joined frame."""
        for column, names in (("project", self.projects), ("user", self.users), ("executable", self.executables)):
            if names:
                frame = frame.filter(_is_one_of(column, names))
        if self.without_projects:
            frame = frame.filter(~_is_one_of("project", self.without_projects))
        return frame.filter(self.is_large()) if self.min_processes or self.min_bytes else frame

    def is_large(self) -> nw.Expr:
        """Whether a run has at least so many processes and moved at least so many bytes; unknown is no."""
        processes = nw.coalesce("processes", nw.lit(-1)) >= self.min_processes
        return processes & (nw.coalesce(moved_bytes(), nw.lit(-1)) >= self.min_bytes)

    def of_any_size(self) -> RunConditions:
        """The same for runs of any size."""
        return replace(self, min_processes=0, min_bytes=0)


def _is_one_of(column: str, names: Sequence[str]) -> nw.Expr:
    text = nw.coalesce(column, nw.lit(UNKNOWN))
    condition = text.is_in(list(names))
    for name in names:
        if "*" in name or "?" in name:
            condition = condition | text.str.contains(_pattern(name))
    return condition


def _pattern(name: str) -> str:
    """A regular expression that all engines read alike: signs that may mean something stand in brackets."""
    wild = {"*": ".*", "?": ".", "^": r"\^", "\\": r"\\", "[": r"\[", "]": r"\]"}
    return f"^{''.join(wild.get(sign) or (sign if sign.isalnum() else f'[{sign}]') for sign in name)}$"


# What all questions over many runs have in common ---------------------------------------------------------------------
# Which runs, which window, and how answers are fetched.

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


# Runs by their number of processes, in classes of powers of two, and what they use: interfaces ------------------------
# Patterns (Fig. 3).
#
# A run counts in each interface or pattern of which it used a file, so that runs of a class add up to more than all.


@dataclass(frozen=True, slots=True)
class RunUse:
    """Runs of a class that use something, and the bytes of its files; shares are of the class."""

    name: str
    runs: int
    runs_pct: float | None
    read_bytes: int
    write_bytes: int
    read_pct: float | None
    write_pct: float | None


@dataclass(frozen=True, slots=True)
class ProcessClass:
    """Runs of `processes_from` to `processes_to` processes; None is the class of all of them."""

    processes_from: int | None
    processes_to: int | None
    runs: int
    runs_without_files: int
    read_bytes: int
    write_bytes: int
    uses: list[RunUse]


def classes_by_processes(runs: nw.LazyFrame[Any], names: Sequence[str]) -> tuple[list[ProcessClass], ProcessClass, int]:
    """Classes from small to large, all runs as one class, and how many have no number of processes.

    Each of `names` has the columns `NAME_files`, `NAME_read_bytes` and `NAME_write_bytes`.
    """
    kinds = ("read_bytes", "write_bytes")
    by_processes = runs.group_by("processes").agg(
        nw.len().alias("runs"),
        counted_where(nw.col("files") == 0, "runs_without_files"),
        *(counted_where(_uses(name), f"{name}_runs") for name in names),
        *(nw.col(f"{name}_{kind}").sum().cast(nw.Int64) for name in names for kind in kinds),
    )
    lines = lines_of(by_processes)
    unknown = sum(line["runs"] for line in lines if not line["processes"])
    classes: dict[int, list[Line]] = {}
    for line in lines:
        if line["processes"]:
            classes.setdefault((line["processes"] - 1).bit_length(), []).append(line)
    by_size = [_class(power, members, names) for power, members in sorted(classes.items())]
    return by_size, _class(None, lines, names), unknown


def _uses(name: str) -> nw.Expr:
    """Files of it, or bytes: a file of both POSIX and STDIO counts under one of them and has bytes of each."""
    files, read, written = (nw.coalesce(f"{name}_{what}", nw.lit(0)) for what in ("files", "read_bytes", "write_bytes"))
    return (files > 0) | (read > 0) | (written > 0)


def _class(power: int | None, members: Iterable[Line], names: Sequence[str]) -> ProcessClass:
    """Of 2^(power−1) + 1 to 2^power processes."""
    lines = list(members)
    totals = {name: sum(line[name] or 0 for line in lines) for name in (lines[0] if lines else ())}
    runs = totals.get("runs", 0)
    read, write = (sum(totals.get(f"{name}_{kind}", 0) for name in names) for kind in ("read_bytes", "write_bytes"))
    uses = []
    for name in names:
        count, moved_read, moved_write = (
            totals.get(f"{name}_{what}", 0) for what in ("runs", "read_bytes", "write_bytes")
        )
        shares = pct(moved_read, read), pct(moved_write, write)
        uses.append(RunUse(name, count, pct(count, runs), moved_read, moved_write, *shares))
    low, high = (None, None) if power is None else ((1 << power) // 2 + 1 if power else 1, 1 << power)
    return ProcessClass(low, high, runs, totals.get("runs_without_files", 0), read, write, uses)
