"""From the file records of a Darshan log to the IOR runs that imitate it (SPEC N5).

Files that were used alike become one IOR run. Offsets tell blocks and segments: of a task that writes a block from
beginning to end every access but the first is consecutive. What the log does not tell is said, and has IOR's default.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from iolens.benchmarks.imitation.file_groups import FileGroup, FilePart, files_in_words
from iolens.benchmarks.imitation.group_parameters import group_parameters
from iolens.benchmarks.imitation.recorded_files import DIRECTIONS, RecordedFile, recorded_files
from iolens.errors import UsageError
from iolens.models.ior_parameters import ImitatedFiles, Imitation, NotImitated
from iolens.run_tables import rate_of

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
        runs=tuple(_imitated(group, run, total) for group in chosen),
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


def _imitated(group: FileGroup, run: Row, total: int) -> ImitatedFiles:
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
