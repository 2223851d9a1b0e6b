"""Runs by their number of processes, in classes of powers of two, and what they use: interfaces, patterns (Fig. 3).

A run counts in each interface or pattern of which it used a file, so that runs of a class add up to more than all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from iolens.analyses.quotients import pct
from iolens.analyses.runs.asked import Line, counted_where, lines_of


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
