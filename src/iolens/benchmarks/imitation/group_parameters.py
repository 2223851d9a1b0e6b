"""The parameters of IOR for a group of files, each with the counters that say so."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, Final

from iolens.benchmarks.imitation.file_groups import OWN, PAST, FileGroup, begins_of
from iolens.benchmarks.ior_sweep import WORD_BYTES
from iolens.models.ior_parameters import IorParameters, ParameterEvidence
from iolens.units import GIB, KIB, MIB, format_bytes

RANDOM_BELOW: Final = 0.75  # of accesses go to a higher offset than the one before: fewer are random, which has half
LEAST_ACCESSES: Final = 8  # of a task, before their order is judged
SAME: Final = 0.01  # a ratio this near to a whole number is one
IOR_APIS: Final = {"MPI-IO": "MPIIO"}  # others are imitated with POSIX
_SIZE: Final = re.compile(r"(\d+)([kmgt]?)i?b?", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": KIB, "m": MIB, "g": GIB, "t": KIB * GIB}

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BlockShape:
    """How a task's bytes lie in its file."""

    transfer_bytes: int
    block_bytes: int
    segments: int
    words: str
    is_known: bool

    @property
    def shown(self) -> str:
        """`4 × 64 MiB`: segments and blocks."""
        return f"{self.segments:,} × {format_bytes(self.block_bytes)}"


def group_parameters(group: FileGroup, run: Row) -> tuple[IorParameters, list[ParameterEvidence]]:
    """The run of IOR that imitates the group, and why."""
    tasks = group.participants
    passes, passes_words = _passes(group, tasks)
    repetitions = max(round(group.files / (tasks if group.first.sharing == OWN else 1)), 1) * passes
    task_bytes = group.bytes_of(group.main_direction) / (tasks * repetitions)
    transfer, transfer_words, is_measured = _transfer(group)
    is_random, random_evidence = _random(group, tasks * repetitions)
    shape = _shape(group, run, transfer, task_bytes, tasks * repetitions, is_random)
    parameters = IorParameters(
        api=IOR_APIS.get(group.first.file.module, "POSIX"),
        tasks=tasks,
        transfer_bytes=shape.transfer_bytes,
        block_bytes=shape.block_bytes,
        segments=shape.segments,
        file_per_process=group.first.sharing == OWN and tasks > 1,
        write="write" in group.directions,
        read="read" in group.directions,
        collective=group.first.is_collective,
        random=is_random,
        fsync="write" in group.directions and _fsyncs(group) >= tasks * repetitions,
        reorder=group.is_read_by_others,
        repetitions=repetitions,
        nodes=run.get("nodes") if tasks == run.get("processes") else None,
    )
    evidence = [
        _api(group),
        _tasks(group, tasks),
        _file_per_process(group, parameters),
        _directions(group),
        _transfer_evidence(transfer, shape.transfer_bytes, transfer_words, is_measured),
        ParameterEvidence("block_bytes", shape.shown, shape.words, shape.is_known),
        *_repetitions(group, repetitions, tasks, passes_words),
        *_collective(group),
        random_evidence,
        *_fsync(group, parameters),
        *_reorder(group, parameters),
    ]
    return parameters, evidence


def _api(group: FileGroup) -> ParameterEvidence:
    file = group.first.file
    api = IOR_APIS.get(file.module, "POSIX")
    if file.library:
        words = f"{file.library} over {file.module}: IOR imitates what it asked of {file.module}"
    elif file.module not in (*IOR_APIS, "POSIX"):
        words = f"{file.module}, which IOR has not: imitated with POSIX"
    else:
        words = f"the calls are those of {file.module}"
    return ParameterEvidence("api", api, words, is_known=file.library is None and file.module in (*IOR_APIS, "POSIX"))


def _tasks(group: FileGroup, tasks: int) -> ParameterEvidence:
    moved = "moved bytes of these files"
    words = f"all {tasks:,} ranks {moved}" if tasks == group.tasks else f"{tasks:,} of {group.tasks:,} ranks {moved}"
    if tasks == 1:
        words = "the run has one rank" if group.tasks == 1 else f"one of {group.tasks:,} ranks {moved}"
    return ParameterEvidence("tasks", f"{tasks:,}", words)


def _file_per_process(group: FileGroup, parameters: IorParameters) -> ParameterEvidence:
    tasks = _count(parameters.tasks, "task")
    if parameters.tasks == 1:
        words = "one task: it has its file for itself either way"
    elif parameters.file_per_process:
        words = f"{_count(group.files, 'file')} of {tasks}, each written, or read, by a single one"
    else:
        words = f"{tasks} moved bytes of each file"
    return ParameterEvidence("file_per_process", _yes(parameters.file_per_process), words)


def _directions(group: FileGroup) -> ParameterEvidence:
    moved = {direction: format_bytes(group.bytes_of(direction)) for direction in group.directions}
    words = " and ".join(f"{size} {PAST[direction]}" for direction, size in moved.items())
    return ParameterEvidence("direction", " and ".join(group.directions), words)


def _transfer(group: FileGroup) -> tuple[int, str, bool]:
    """The size by which most bytes were moved, of the four that each record keeps; else the mean, and False."""
    sizes, count = group.sizes, group.total("reads") + group.total("writes")
    mean = max(round(group.moved_bytes / max(group.operations, 1)), 1)
    if not sizes:
        return mean, f"the log has no sizes of these calls: the mean of {group.operations:,}", False
    size = max(sizes, key=lambda size: size * sizes[size])
    share = min(100 * sizes[size] / max(count, 1), 100.0)
    words = f"{_percent(share)} of {_accesses(group)} had that size"
    if share < 50:
        words += f", by which most bytes were moved; the mean is {format_bytes(mean)}"
    return size, words, True


def _transfer_evidence(measured: int, transfer: int, words: str, is_known: bool) -> ParameterEvidence:
    if transfer != measured:
        is_rounded = abs(transfer - measured) < WORD_BYTES
        why = f"IOR moves multiples of {WORD_BYTES} bytes" if is_rounded else "a task moved less in all"
        words, is_known = f"{measured:,} bytes: {words}; {why}", False
    return ParameterEvidence("transfer_bytes", format_bytes(transfer), words, is_known)


def _accesses(group: FileGroup) -> str:
    """Darshan's sizes are of reads and writes together, whatever direction is imitated."""
    counts = {"writes": group.total("writes"), "reads": group.total("reads")}
    return " and ".join(f"{count:,} {name}" for name, count in counts.items() if count)


def _passes(group: FileGroup, tasks: int) -> tuple[int, str]:
    """How often each file was written, or read, from beginning to end: only where it was opened as often."""
    direction = group.main_direction
    extents = [part.file.posix.extent(direction) if part.file.posix else 0 for part in group.parts]
    if not all(extents):
        return 1, ""
    ratio = group.bytes_of(direction) / sum(extents)
    passes = round(ratio)
    users = 1 if group.first.sharing == OWN else tasks
    opens = group.total("opens") / (group.files * users)
    if passes < 2 or abs(ratio - passes) > SAME * ratio or opens < passes:
        return 1, ""
    return passes, f"{PAST[direction]} {passes:,} times from beginning to end, with {_count(opens, 'open')} each"


def _random(group: FileGroup, task_files: int) -> tuple[bool, ParameterEvidence]:
    direction, offsets = group.main_direction, group.offsets()
    if offsets is None:
        words = "offsets of these calls are not on record: taken as sequential"
        return False, ParameterEvidence("random", "no", words, is_known=False)
    operations = sum(counts.operations(direction) for counts in offsets)
    upward = sum(counts.sums[f"sequential_{direction}s"] for counts in offsets)
    followers = max(operations - task_files, 1)  # the first access of a task follows none
    share = min(upward / followers, 1.0)
    if operations < LEAST_ACCESSES * task_files:
        words = f"{_count(operations / task_files, direction)} per task and file: too few to tell an order"
        return False, ParameterEvidence("random", "no", words, is_known=False)
    words = f"{_percent(100 * share)} of {direction}s went to a higher offset than the one before"
    is_random = share < RANDOM_BELOW and not group.first.is_collective
    if share < RANDOM_BELOW and not is_random:
        words += "; IOR has no collective calls in random order"
    return is_random, ParameterEvidence("random", _yes(is_random), words, is_known=is_random or share >= RANDOM_BELOW)


def _shape(
    group: FileGroup, run: Row, transfer: int, task_bytes: float, task_files: int, is_random: bool
) -> BlockShape:
    """Blocks and segments: of a shared file by the accesses that do not follow the one before."""
    one_piece = _fitted(transfer, task_bytes, 1, f"each task moved {format_bytes(task_bytes)} of a file")
    offsets = group.offsets()
    if is_random:
        return replace(one_piece, words=f"{one_piece.words}; in random order there are no blocks to tell apart")
    if offsets is None:
        known = _of_aggregator(group, one_piece, task_bytes) or _as_commanded(run, one_piece)
        words = f"{one_piece.words}; where its blocks lie is not on record"
        return known or replace(one_piece, words=words, is_known=False)
    if group.participants == 1 or group.first.sharing == OWN:
        return _as_commanded(run, one_piece) or _of_own_file(group, one_piece, task_files)
    return _of_shared_file(group, transfer, task_bytes, task_files)


def _of_own_file(group: FileGroup, one_piece: BlockShape, task_files: int) -> BlockShape:
    """Segments of one task follow each other: they are as one block. Gaps are not imitated."""
    direction = group.main_direction
    pieces = sum(begins_of(counts, direction) for counts in group.offsets() or ()) / task_files
    if pieces < 1 + SAME:
        return replace(one_piece, words=f"{one_piece.words}, every {direction} where the one before ended")
    words = f"{one_piece.words} in {_count(pieces, 'piece')} that do not follow each other: IOR has them in a row"
    return replace(one_piece, words=words, is_known=False)


def _of_shared_file(group: FileGroup, transfer: int, task_bytes: float, task_files: int) -> BlockShape:
    direction = group.main_direction
    pieces = sum(begins_of(counts, direction) for counts in group.offsets() or ()) / task_files
    words = f"each task moved {format_bytes(task_bytes)} in {_count(pieces, 'piece')}"
    shape = _fitted(transfer, task_bytes, max(pieces, 1.0), words)
    strides = sum((counts.strides for counts in group.offsets() or ()), start=Counter[int]())
    if shape.segments > 1 and strides:
        gap, count = strides.most_common(1)[0]
        neighbours = gap / shape.block_bytes
        words = f"{words}; {count:,} times with a gap of {format_bytes(gap)}"
        if neighbours == group.participants - 1:
            words += f", the blocks of {_count(neighbours, 'other task')}"
    if _is_read_by_all(group, task_bytes):
        words += "; every task read the same bytes, where tasks of IOR read bytes of their own"
        shape = replace(shape, is_known=False)
    return replace(shape, words=words)


def _of_aggregator(group: FileGroup, one_piece: BlockShape, task_bytes: float) -> BlockShape | None:
    """Blocks as a rank met them that moved the transfers of all tasks, call by call: at equal gaps, or without any."""
    tasks, transfer = group.participants, one_piece.transfer_bytes
    records = [part.file.posix for part in group.parts if part.file.posix is not None and part.file.is_aggregated]
    if len(records) < group.files or not records:
        return None
    operations = sum(counts.operations(direction) for counts in records for direction in group.directions)
    sizes = {size for counts in records for size in counts.sizes}
    if operations * tasks == group.operations and sizes == {tasks * transfer}:
        words = f"each task moved {format_bytes(task_bytes)}; transfers of all {tasks:,} lay side by side"
        return _fitted(transfer, task_bytes, task_bytes / transfer, words)
    strides = sum((counts.strides for counts in records), start=Counter[int]())
    gap, count = strides.most_common(1)[0] if strides else (0, 0)
    if operations != group.operations or count * tasks != operations * (tasks - 1):
        return None
    words = f"each task moved {format_bytes(task_bytes)}; transfers of two tasks were {format_bytes(gap)} apart"
    return _fitted(transfer, task_bytes, task_bytes / (gap + transfer), words)


def _is_read_by_all(group: FileGroup, task_bytes: float) -> bool:
    extents = [part.file.posix.extent("read") for part in group.parts if part.file.posix]
    mean = sum(extents) / max(len(extents), 1)
    return group.directions == ("read",) and group.participants > 1 and abs(task_bytes - mean) <= SAME * mean


def _fitted(transfer: int, task_bytes: float, pieces: float, words: str) -> BlockShape:
    """Whole transfers in a block, and as many blocks as come nearest to the bytes of a task."""
    transfer = max(round(min(transfer, task_bytes) / WORD_BYTES), 1) * WORD_BYTES
    block = max(round(task_bytes / pieces / transfer), 1) * transfer
    segments = max(round(task_bytes / block), 1)
    is_exact = block * segments == task_bytes and segments == pieces
    return BlockShape(transfer, block, segments, words, is_exact)


def _as_commanded(run: Row, one_piece: BlockShape) -> BlockShape | None:
    """Segments of a task that follow each other leave no trace in the counters; the command line of an IOR does."""
    options = ior_options(str(run.get("command") or ""))
    block, segments = options.get("-b", 0), options.get("-s", 1)
    if not block or block * segments != one_piece.block_bytes or block % one_piece.transfer_bytes:
        return None
    words = f"{one_piece.words}; -b and -s are of the recorded command line"
    return BlockShape(one_piece.transfer_bytes, block, segments, words, is_known=True)


def ior_options(command: str) -> dict[str, int]:
    """`-b`, `-s` and `-t` of a command line of IOR, in bytes; nothing of other programs."""
    try:
        program, *words = shlex.split(command)
    except ValueError:
        return {}
    if not PurePosixPath(program).name.lower().startswith("ior"):
        return {}
    pairs = dict(pairwise(words))
    sizes = {name: _SIZE.fullmatch(pairs[name]) for name in ("-b", "-s", "-t") if name in pairs}
    return {name: int(size[1]) * _UNITS[size[2].lower()] for name, size in sizes.items() if size is not None}


def _repetitions(group: FileGroup, repetitions: int, tasks: int, passes: str) -> Iterator[ParameterEvidence]:
    if repetitions == 1:
        return
    per_task = group.files / (tasks if group.first.sharing == OWN else 1)
    whose = " per task" if group.first.sharing == OWN else ""
    files = f"{_count(per_task, 'such file')}{whose}" if per_task > 1 else ""
    words = ", each ".join(item for item in (files, passes) if item)
    yield ParameterEvidence("repetitions", f"{repetitions:,}", words, is_known=per_task == round(per_task))


def _collective(group: FileGroup) -> Iterator[ParameterEvidence]:
    if group.first.file.module != "MPI-IO":
        return
    counts = {
        kind: sum(group.total(f"{kind}_{direction}s") for direction in group.directions)
        for kind in ("collective", "independent")
    }
    share = 100 * counts["collective"] / max(sum(counts.values()), 1)
    words = f"{_percent(share)} of {sum(counts.values()):,} MPI-IO calls were collective"
    yield ParameterEvidence("collective", _yes(group.first.is_collective), words)


def _fsync(group: FileGroup, parameters: IorParameters) -> Iterator[ParameterEvidence]:
    syncs = _fsyncs(group)
    if not parameters.write or "syncs" not in group.first.file.counts.sums or group.first.file.module == "STDIO":
        return
    words = f"{_count(syncs, 'fsync')} for {_count(group.total('writes'), 'write')}"
    is_known = syncs <= parameters.tasks * parameters.repetitions
    if not is_known:
        words += "; IOR does one per task and file"
    yield ParameterEvidence("fsync", _yes(parameters.fsync), words, is_known)


def _fsyncs(group: FileGroup) -> int:
    """Of STDIO only flushes to the kernel are counted, which are none."""
    return 0 if group.first.file.module == "STDIO" else group.total("syncs")


def _reorder(group: FileGroup, parameters: IorParameters) -> Iterator[ParameterEvidence]:
    if parameters.reorder:
        yield ParameterEvidence("reorder", "yes", "files were read by another rank than wrote them")
    elif parameters.write and parameters.read and not parameters.file_per_process and parameters.tasks > 1:
        words = "of a shared file the log does not tell who read what: each task reads what it wrote"
        yield ParameterEvidence("reorder", "no", words, is_known=False)


def _count(number: float, what: str) -> str:
    """`4 pieces`, `1 piece`, `2.37 pieces`."""
    shown = f"{number:,.0f}" if number == round(number) or number >= 100 else f"{number:.3g}"
    return f"{shown} {what}{'' if shown == '1' else 's'}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _percent(share: float) -> str:
    return f"{share:.0f} %" if share in (0.0, 100.0) or 1 <= share <= 99 else f"{share:.3g} %"
