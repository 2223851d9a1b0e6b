"""From a Darshan log, or the sums of a job's nodes, to the IOR runs that imitate it (SPEC N5)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from iolens.benchmarks.imitation.file_groups import (
    DIRECTIONS,
    PAST,
    FileGroup,
    FilePart,
    RecordedFile,
    files_in_words,
    recorded_files,
)
from iolens.benchmarks.imitation.group_parameters import group_parameters
from iolens.benchmarks.ior_sweep import IorCommand
from iolens.errors import UsageError
from iolens.models.ior_parameters import (
    ImitatedFiles,
    Imitation,
    IorParameters,
    NotImitated,
    ParameterEvidence,
    RecordedWork,
)
from iolens.run_tables import rate_of
from iolens.units import MIB, format_bytes

# The commands of IOR for parameters: what is only read is written first -----------------------------------------------

SHOWN_FILE: Final = Path("DIR/data")  # where a reader puts his own directory


def ior_commands(parameters: IorParameters, file: Path = SHOWN_FILE) -> list[IorCommand]:
    """One command, or two: files that were there before the job are written, and kept, before they are read."""
    command = IorCommand(
        file=file,
        api=parameters.api,
        tasks=parameters.tasks,
        transfer_bytes=parameters.transfer_bytes,
        block_bytes=parameters.block_bytes,
        segments=parameters.segments,
        file_per_process=parameters.file_per_process,
        collective=parameters.collective,
        random=parameters.random,
        fsync=parameters.fsync,
        reorder=parameters.reorder,
        write=parameters.write,
        read=parameters.read,
        keep=not parameters.write and parameters.repetitions > 1,  # IOR removes what it has read, before the next
        repetitions=parameters.repetitions,
    )
    if parameters.write:
        return [command]
    before = replace(command, write=True, read=False, random=False, fsync=True, keep=True, repetitions=1)
    return [before, command]


# From the sums that a job's nodes counted to IOR runs -----------------------------------------------------------------
# Coarse, for they know neither files nor accesses.
#
# An RPC may hold several small accesses, or be a part of a large one: the transfer size is the RPC's, not the
# program's.

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


# From the file records of a Darshan log to the IOR runs that imitate it (SPEC N5) -------------------------------------
# Files that were used alike become one IOR run. Offsets tell blocks and segments: of a task that writes a block from
# beginning to end every access but the first is consecutive. What the log does not tell is said, and has IOR's default.

MOST_RUNS: Final = 4  # IOR runs that imitate one job
LEAST_SHARE: Final = 0.01  # of the bytes: files with fewer are named, not imitated
ALIKE: Final = 0.01  # a file that is read as much as it is written, to this, is imitated by one run that does both

Row = Mapping[str, Any]


def imitation_of_run(run: Row, files: Iterable[Row]) -> Imitation:
    """From a row of `runs` and its rows of `run_files`; refused where no bytes of files are on record."""
    used = [file for file in recorded_files(files) if file.moved_bytes]
    total = sum(file.moved_bytes for file in used)
    if not total:
        modules = run.get("modules") or "none"
        raise UsageError(f"nothing to imitate: no bytes of files are on record (Darshan's modules: {modules})")
    tasks = run.get("processes") or max(len(file.ranks) for file in used)
    groups = sorted(_groups(used, max(tasks, 1)), key=lambda group: -group.moved_bytes)
    chosen = [groups[0], *(group for group in groups[1:MOST_RUNS] if group.moved_bytes >= LEAST_SHARE * total)]
    return Imitation(
        record="darshan",
        runs=tuple(_imitated_run(group, run, total) for group in chosen),
        not_imitated=tuple(_left_out(groups[len(chosen) :], total)),
        notes=tuple(_notes(run)),
        mib_per_s=rate_of(run).mib_per_s,
    )


def _groups(files: Sequence[RecordedFile], tasks: int) -> list[FileGroup]:
    """Files used through the same interface, in the same directions, by as many tasks, in accesses of like size."""
    alike: defaultdict[tuple[object, ...], list[FilePart]] = defaultdict(list)
    for file in files:
        for part in _parts(file, tasks):
            alike[part.kind].append(part)
    return [FileGroup(parts, tasks) for parts in alike.values()]


def _parts(file: RecordedFile, tasks: int) -> list[FilePart]:
    """What was written and what was read; together where both are as much, in as many calls."""
    directions = tuple(direction for direction in DIRECTIONS if file.bytes_of(direction))
    calls = (file.counts.operations(direction) for direction in DIRECTIONS)
    if len(directions) == 1 or (_are_alike(file.write_bytes, file.read_bytes) and _are_alike(*calls)):
        return [FilePart(file, directions, tasks)]
    return [FilePart(file, (direction,), tasks) for direction in directions]


def _are_alike(first: int, second: int) -> bool:
    return abs(first - second) <= ALIKE * max(first, second)


def _imitated_run(group: FileGroup, run: Row, total: int) -> ImitatedFiles:
    parameters, evidence = group_parameters(group, run)
    share_pct = 100 * group.moved_bytes / total
    what = files_in_words(group.files, group.use)
    return ImitatedFiles(what, parameters, tuple(evidence), group.recorded, share_pct, group.example)


def _left_out(groups: Sequence[FileGroup], total: int) -> Iterable[NotImitated]:
    """Groups of the same words put together: they differ only in the size of accesses."""
    moved: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for group in groups:
        moved[group.use] += group.moved_bytes
        files[group.use] += group.files
    for use, size in moved.most_common():
        yield NotImitated(files_in_words(files[use], use), size, 100 * size / total)


def _notes(run: Row) -> Iterable[str]:
    if run.get("partial") or run.get("incomplete_modules"):
        yield f"the log is not complete ({run.get('incomplete_modules') or 'some module'}): files may be missing"
    if rate_of(run).overlap:
        yield "shared files were in use at the same time: the MiB/s of the job are higher than stated"
