"""The time metadata operations take of their server, T = Σ c_op·N_op, with c_op from mdtest rates (SPEC B5).

The same linear idea as for disk I/Os: a server that does at most R operations of a kind per second spends 1/R of a
second of its capacity on each. What mdtest does not measure is taken at the cheapest rate it did measure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from iolens.schema import SUMMED_OPERATIONS

# MDT operation → the mdtest phase that measures it, the better one first.
PHASES: Final[Mapping[str, tuple[str, ...]]] = {
    "getattr": ("file_stat", "directory_stat"),
    "unlink": ("file_removal",),
    "mkdir": ("directory_creation",),
    "rmdir": ("directory_removal",),
    "rename": ("file_rename", "directory_rename"),
    "open": ("file_read",),  # without data it opens and closes
}
CREATION: Final = "file_creation"  # a server counts an open and a mknod for each
STILL_RISING: Final = 1.1  # a rate this much above the one with fewer tasks has not found its limit

Basis = Literal["measured", "assumed", "in open"]


@dataclass(frozen=True, slots=True)
class BenchmarkRate:
    """One mdtest result: operations of one phase in some seconds, by some tasks."""

    phase: str
    operations: float
    duration_s: float
    tasks: int | None = None

    @property
    def s_per_op(self) -> float:
        """Seconds of the whole server per operation."""
        return self.duration_s / self.operations


@dataclass(frozen=True, slots=True)
class OperationCost:
    """Seconds of server time for one operation, and whether mdtest measured it."""

    operation: str
    s_per_op: float
    basis: Basis


@dataclass(frozen=True, slots=True)
class MetadataCalibration:
    """What operations cost; all that are not listed are assumed to cost `assumed_s_per_op`."""

    name: str
    assumed_s_per_op: float
    costs: list[OperationCost]

    def of(self, operation: str) -> OperationCost:
        """The cost of any operation."""
        listed = next((cost for cost in self.costs if cost.operation == operation), None)
        return listed or OperationCost(operation, self.assumed_s_per_op, "assumed")

    def seconds(self, counts: Mapping[str, float]) -> float:
        """Server time of a mix of operations."""
        return sum(count * self.of(operation).s_per_op for operation, count in counts.items())


def phase_name(text: str) -> str:
    """`File creation` and `file-creation` as `file_creation`."""
    return re.sub(r"[\W_]+", "_", text.strip().lower())


def metadata_calibration(name: str, rates: Iterable[BenchmarkRate]) -> MetadataCalibration:
    """Costs from the fastest result of each phase, which is the nearest to saturation.

    An open costs what mdtest's open-and-close does, a close nothing more; a mknod what a creation costs beyond its
    open, because servers count both for each created file. Raises ValueError when no phase can be used.
    """
    fastest = _fastest(rates)
    if not fastest:
        wanted = ", ".join((CREATION, *(phase for phases in PHASES.values() for phase in phases)))
        raise ValueError(f"no mdtest result that can be used; expected one of {wanted}")
    cheapest = min(fastest.values())
    costs = [
        OperationCost(operation, fastest[phase], "measured")
        for operation, phases in PHASES.items()
        for phase in [next((phase for phase in phases if phase in fastest), None)]
        if phase is not None
    ]
    costs.append(OperationCost("close", 0.0, "in open"))
    if CREATION in fastest:
        beyond_open = max(fastest[CREATION] - fastest.get("file_read", cheapest), 0.0)
        costs.append(OperationCost("mknod", beyond_open, "measured"))
    return MetadataCalibration(name, cheapest, sorted(costs, key=lambda cost: SUMMED_OPERATIONS.index(cost.operation)))


def _fastest(rates: Iterable[BenchmarkRate]) -> dict[str, float]:
    known = {CREATION, *(phase for phases in PHASES.values() for phase in phases)}
    fastest: dict[str, float] = {}
    for rate in rates:
        if rate.phase in known and rate.operations > 0 and rate.duration_s > 0:
            fastest[rate.phase] = min(rate.s_per_op, fastest.get(rate.phase, rate.s_per_op))
    return fastest


def unsaturated(rates: Sequence[BenchmarkRate]) -> list[str]:
    """Phases whose rate still rose with the last step in tasks: their costs are upper bounds."""
    return sorted(phase for phase in {rate.phase for rate in rates} if _still_rises(rates, phase))


def _still_rises(rates: Collection[BenchmarkRate], phase: str) -> bool:
    best: dict[int, float] = {}
    for rate in rates:
        if rate.phase == phase and rate.tasks is not None and rate.operations > 0 and rate.duration_s > 0:
            best[rate.tasks] = max(1.0 / rate.s_per_op, best.get(rate.tasks, 0.0))
    tasks = sorted(best)
    return len(tasks) > 1 and best[tasks[-1]] > STILL_RISING * max(best[task] for task in tasks[:-1])
