"""What is true of a simulated application run, and must be read back from its Darshan log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from iolens.simulator.darshan_accesses import by_rank, divided
from iolens.simulator.darshan_runs import SimulatedRun, Strategy
from iolens.units import MIB


@dataclass(frozen=True, slots=True)
class RunTruth:
    """What must be read back from a run's log: POSIX and STDIO together, as `runs` has it."""

    strategy: Strategy
    read_bytes: int
    write_bytes: int
    reads: int
    writes: int
    opens: int
    files: int
    read_s: float
    write_s: float
    metadata_s: float
    slowest_rank_s: float
    mib_per_s: float | None
    io_ranks: int
    osts: int
    bytes_by_ost: Mapping[int, int] = field(default_factory=dict)
    """Of files on one OST each; files striped over several are divided evenly."""


def truth_of(run: SimulatedRun) -> RunTruth:
    """By what its ranks do; files that all ranks share count with their slowest rank."""
    everything = [*run.uses, *([run.printed] if run.printed is not None else [])]
    own = everything[len(run.uses) :] if run.is_reduced else everything
    slowest = max(by_rank(own, lambda use: use.io_s).values(), default=0.0)
    if run.is_reduced:
        slowest += sum(max(use.io_s for use in uses) for uses in run.uses_by_file.values())
    moved = by_rank(everything, lambda use: use.read_bytes + use.write_bytes)
    total = sum(use.read_bytes + use.write_bytes for use in everything)
    by_ost: dict[int, int] = defaultdict(int)
    for work in run.files:
        for ost, part in zip(work.osts, divided(work.moved_bytes, len(work.osts)), strict=True):
            by_ost[ost] += part
    return RunTruth(
        strategy=run.strategy,
        read_bytes=sum(use.read_bytes for use in everything),
        write_bytes=sum(use.write_bytes for use in everything),
        reads=sum(part.count for use in everything for part in use.reads),
        writes=sum(part.count for use in everything for part in use.writes),
        opens=sum(use.opens for use in everything),
        files=len({use.path for use in everything}),
        read_s=sum(use.read_s for use in everything),
        write_s=sum(use.write_s for use in everything),
        metadata_s=sum(use.metadata_s for use in everything),
        slowest_rank_s=slowest,
        mib_per_s=total / MIB / slowest if slowest else None,
        io_ranks=sum(amount > 0 for amount in moved.values()),
        osts=len(by_ost),
        bytes_by_ost=dict(by_ost),
    )
