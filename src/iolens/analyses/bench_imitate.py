"""How near runs of IOR come to the job they imitate (SPEC N5): bytes, operations, sizes, files and MiB/s.

A ratio of 1 is as much as in the record; where only a share of the job's bytes is moved, of that share.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from statistics import median
from typing import Any, Final

from iolens.models.ior_parameters import Imitation, IorParameters, RecordedWork
from iolens.units import MIB

PLANNED: Final = "planned"  # by the parameters, before anything is run
_RUN_NUMBER: Final = re.compile(r"/run=(\d+)/\d+/\d+$")  # at the end of the run_id of a study's row
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Nearness:
    """One quantity of the record beside that of the imitation; `run` None: of all runs of IOR together.

    `asked` is what is on record, or that share of it which the imitation was to do.
    """

    run: int | None
    place: str  # where it was measured, or `planned`
    quantity: str  # bytes, operations, bytes_per_operation, files, mib_per_s
    asked: float
    imitated: float
    ratio: float
    share_pct: float = 100.0  # of the record


@dataclass(frozen=True, slots=True)
class ImitationResult:
    """The runs of IOR that imitate a job, and how near they come."""

    job: str  # as it was named: a log, a run or a job
    imitation: Imitation
    commands: Sequence[Sequence[str]]  # of each run of IOR, as one would type them
    measured: Sequence[IorParameters]  # the runs as they were made, smaller than the job's; none were: empty
    nearness: Sequence[Nearness]

    @property
    def words(self) -> Sequence[str]:
        """What the ratios say, and of what."""
        return (*nearness_words(self.nearness), *_shares(self.imitation, self.measured))


def imitation_result(
    job: str,
    imitation: Imitation,
    commands: Sequence[Sequence[str]],
    measured: Sequence[IorParameters] = (),
    rows: Rows = (),
) -> ImitationResult:
    """The result; `rows` of a study of the kind `imitate`, whose runs of IOR were `measured`."""
    lines = [
        line
        for number, run in enumerate(imitation.runs, 1)
        for line in imitation_distance(run.recorded, run.parameters.work, run=number)
    ]
    lines += measured_distances(imitation, measured, rows)
    return ImitationResult(job, imitation, commands, measured if rows else (), lines)


def imitation_distance(
    recorded: RecordedWork, imitated: RecordedWork, share: float = 1.0, *, run: int | None = 1, place: str = PLANNED
) -> list[Nearness]:
    """What was done beside what was recorded, of which only a `share` was to be imitated; without what is not known."""
    pairs: dict[str, tuple[float | None, float | None, float]] = {
        "bytes": (recorded.moved_bytes, imitated.moved_bytes, share),
        "operations": (recorded.operations, imitated.operations, share),
        "bytes_per_operation": (recorded.mean_access_bytes, imitated.mean_access_bytes, 1.0),
        "files": (recorded.files, imitated.files, 1.0) if share == 1.0 else (None, None, 1.0),
    }
    return [
        Nearness(run, place, quantity, first * part, second, second / (first * part), 100.0 * share)
        for quantity, (first, second, part) in pairs.items()
        if first and second is not None
    ]


def measured_distances(imitation: Imitation, measured: Sequence[IorParameters], rows: Rows) -> list[Nearness]:
    """By place: each run of IOR by its rows, and the MiB/s of all."""
    lines: list[Nearness] = []
    for place, at_place in _by(rows, "place").items():
        by_run = _by_run(at_place)
        for number, (run, smaller) in enumerate(zip(imitation.runs, measured, strict=False), 1):
            if number in by_run:
                share = smaller.moved_bytes / run.parameters.moved_bytes
                work = _work(by_run[number], smaller.files)
                lines += imitation_distance(run.recorded, work, share, run=number, place=str(place))
        rate = _mib_per_s(at_place, runs=len(imitation.runs))
        if rate is not None and imitation.mib_per_s:
            ratio = rate / imitation.mib_per_s
            lines.append(Nearness(None, str(place), "mib_per_s", imitation.mib_per_s, rate, ratio))
    return lines


def _by(rows: Iterable[Mapping[str, Any]], column: str) -> dict[Any, list[Mapping[str, Any]]]:
    parts: defaultdict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        parts[row.get(column)].append(row)
    return dict(parts)


def _by_run(rows: Rows) -> dict[int, list[Mapping[str, Any]]]:
    parts: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if (number := _RUN_NUMBER.search(str(row.get("run_id")))) is not None:
            parts[int(number[1])].append(row)
    return dict(parts)


def _work(rows: Rows, files: int) -> RecordedWork:
    """Of one repetition of the study: the median over all."""
    moved = {
        direction: _median_sum([row for row in rows if row.get("direction") == direction], "bytes")
        for direction in ("read", "write")
    }
    return RecordedWork(moved["read"], moved["write"], _median_sum(rows, "operations") or None, files)


def _median_sum(rows: Rows, column: str) -> int:
    sums = [sum(row.get(column) or 0 for row in part) for part in _by(rows, "iteration").values()]
    return round(median(sums)) if sums else 0


def _mib_per_s(rows: Rows, runs: int) -> float | None:
    """Bytes by seconds of all runs of IOR, one after another; the median over repetitions that are whole."""
    rates = []
    for part in _by(rows, "iteration").values():
        seconds = sum(row.get("duration_s") or 0.0 for row in part)
        if seconds and len(_by_run(part)) == runs:
            rates.append(sum(row.get("bytes") or 0 for row in part) / MIB / seconds)
    return median(rates) if rates else None


def nearness_words(lines: Sequence[Nearness]) -> Iterable[str]:
    """For each place the ratios of the run of IOR that is farthest from its record, and MiB/s."""
    for place in dict.fromkeys(line.place for line in lines):
        mine = [line for line in lines if line.place == place]
        amounts = [line for line in mine if line.quantity in AMOUNTS]
        subject = "by its parameters IOR does" if place == PLANNED else f"on {place} IOR did"
        if amounts:
            farthest = max(amounts, key=_farness)
            ratios = ", ".join(
                f"{_ratio(line)} of the {AMOUNTS[line.quantity]}" for line in amounts if line.run == farthest.run
            )
            part = f", of the {farthest.share_pct:.3g} % that it was to do," if farthest.share_pct != 100.0 else ""
            which = f" in run {farthest.run}, the farthest off" if len({line.run for line in amounts}) > 1 else ""
            yield f"{subject}{part} {ratios}{which}"
        for line in mine:
            if line.quantity == "mib_per_s":
                rates = f"{line.imitated:,.0f} MiB/s, {_ratio(line)} of the job's {line.asked:,.0f} MiB/s"
                yield f"{subject} {rates}"


AMOUNTS: Final = {
    "bytes": "bytes",
    "operations": "operations",
    "bytes_per_operation": "bytes per operation",
    "files": "files",
}


def _shares(imitation: Imitation, measured: Sequence[IorParameters]) -> Iterable[str]:
    for number, (run, smaller) in enumerate(zip(imitation.runs, measured, strict=False), 1):
        whole = run.parameters
        if smaller.moved_bytes != whole.moved_bytes:
            share = 100 * smaller.moved_bytes / whole.moved_bytes
            yield (
                f"run {number} was made with {smaller.tasks:,} of {whole.tasks:,} tasks and {share:.3g} % of the bytes:"
                " its amounts are compared with that share"
            )


def _farness(line: Nearness) -> float:
    return max(line.ratio, 1 / line.ratio) if line.ratio else float("inf")


def _ratio(line: Nearness) -> str:
    """`100 %`, `99.7 %`: never 100 for what is only near to it."""
    percent = 100 * line.ratio
    shown = f"{percent:.4g}"
    if shown == "100" and not isclose(percent, 100):
        shown = f"just {'under' if percent < 100 else 'over'} 100"
    return f"{shown} %"
