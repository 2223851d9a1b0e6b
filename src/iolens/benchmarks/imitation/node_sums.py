"""From the sums that a job's nodes counted to IOR runs: coarse, for they know neither files nor accesses.

An RPC may hold several small accesses, or be a part of a large one: the transfer size is the RPC's, not the program's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from iolens.benchmarks.imitation.file_groups import PAST
from iolens.benchmarks.imitation.recorded_files import DIRECTIONS
from iolens.errors import UsageError
from iolens.models.ior_parameters import ImitatedFiles, Imitation, IorParameters, ParameterEvidence, RecordedWork
from iolens.units import MIB, format_bytes

DEFAULT_TRANSFER: Final = MIB
COARSE: Final = (
    "coarse: counters of the job's nodes know neither files nor single accesses; a Darshan log of the job tells more"
)


@dataclass(frozen=True, slots=True)
class NodeSums:
    """What the nodes of a job did to one file system; None is not known. `rpcs` by direction and size, bytes."""

    filesystem: str
    tasks: int | None
    nodes: int | None
    read_bytes: int | None
    write_bytes: int | None
    opens: int | None
    rpcs: Mapping[str, Mapping[int, int]]
    duration_s: float | None = None
    other_filesystems: tuple[str, ...] = ()

    def bytes_of(self, direction: str) -> int:
        """Of one direction; 0 where it is not known."""
        return (self.write_bytes if direction == "write" else self.read_bytes) or 0


def imitation_of_sums(sums: NodeSums) -> Imitation:
    """One IOR run for what was written, one for what was read."""
    directions = sorted(
        (direction for direction in DIRECTIONS if sums.bytes_of(direction)), key=sums.bytes_of, reverse=True
    )
    if not directions:
        raise UsageError(f"nothing to imitate: the job moved no bytes of {sums.filesystem}")
    total = sum(sums.bytes_of(direction) for direction in directions)
    notes = [COARSE]
    if sums.other_filesystems:
        notes.append(f"only {sums.filesystem} is imitated, not {', '.join(sums.other_filesystems)}")
    runs = tuple(_imitated(sums, direction, total) for direction in directions)
    return Imitation("client_counters", runs, (), tuple(notes))


def _imitated(sums: NodeSums, direction: str, total: int) -> ImitatedFiles:
    moved = sums.bytes_of(direction)
    tasks, tasks_evidence = _tasks(sums)
    transfer, transfer_evidence = _transfer(sums, direction)
    transfer = min(transfer, max(moved // tasks, 1))
    block = max(round(moved / tasks / transfer), 1) * transfer
    own, own_evidence = _file_per_process(sums, tasks)
    parameters = IorParameters(
        api="POSIX", tasks=tasks, transfer_bytes=transfer, block_bytes=block, segments=1, file_per_process=own,
        write=direction == "write", read=direction == "read", nodes=sums.nodes,
    )  # fmt: skip
    evidence = (
        ParameterEvidence("api", "POSIX", "the interface is not on record", is_known=False),
        tasks_evidence,
        own_evidence,
        ParameterEvidence("direction", direction, f"{format_bytes(moved)} {PAST[direction]}"),
        transfer_evidence,
        ParameterEvidence("block_bytes", f"1 × {format_bytes(block)}", f"equal parts of {format_bytes(moved)}", False),
    )
    recorded = RecordedWork(
        moved if direction == "read" else 0,
        moved if direction == "write" else 0,
        sum(sums.rpcs.get(direction, {}).values()) or None,
        None,
    )
    what = f"all that was {PAST[direction]} on {sums.filesystem}"
    return ImitatedFiles(what, parameters, evidence, recorded, 100 * moved / total)


def _tasks(sums: NodeSums) -> tuple[int, ParameterEvidence]:
    if sums.tasks:
        return sums.tasks, ParameterEvidence("tasks", f"{sums.tasks:,}", "processes of the job, by the scheduler")
    count = sums.nodes or 1
    words = "the job's processes are not on record: one for each node" if sums.nodes else "not on record"
    return count, ParameterEvidence("tasks", f"{count:,}", words, is_known=False)


def _transfer(sums: NodeSums, direction: str) -> tuple[int, ParameterEvidence]:
    """The size of RPCs that moved most bytes, each counted with the upper end of its bin."""
    counts = {size: count for size, count in sums.rpcs.get(direction, {}).items() if count}
    if not counts:
        words = "RPC sizes are not on record"
        return DEFAULT_TRANSFER, ParameterEvidence("transfer_bytes", format_bytes(DEFAULT_TRANSFER), words, False)
    size = max(counts, key=lambda size: size * counts[size])
    share = 100 * counts[size] / sum(counts.values())
    words = f"{share:.0f} % of {sum(counts.values()):,} {direction} RPCs had that size, and most of the bytes"
    return size, ParameterEvidence("transfer_bytes", format_bytes(size), words, is_known=False)


def _file_per_process(sums: NodeSums, tasks: int) -> tuple[bool, ParameterEvidence]:
    if sums.opens is None or tasks == 1:
        words = "one task" if tasks == 1 else "opens are not on record: taken as one shared file"
        return False, ParameterEvidence("file_per_process", "no", words, is_known=False)
    own = sums.opens >= tasks
    words = f"{sums.opens:,} opens by {tasks:,} tasks, {'at least' if own else 'fewer than'} one each"
    if own:
        words += "; opens of one shared file by all would look the same"
    return own, ParameterEvidence("file_per_process", "yes" if own else "no", words, is_known=False)
