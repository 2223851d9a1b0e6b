"""The files of a running Lustre server, under any root: `/`, or a copy of its /proc and /sys. One root is one sample.

Where a file is differs by version; a target found at two paths is read once. Needs only the standard library, for
the sampler on a server imports it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from iolens.errors import InputError
from iolens.records import Capture, Item, Problem
from iolens.sources.devices.block_devices import stated_host
from iolens.sources.lustre.capacity import FACTS, LOCK_LEAVES, LOCK_PATHS, STAT, device_files
from iolens.sources.lustre.parameters import (
    DEVICE,
    JOB_STATS,
    MDT,
    MOUNTED_DEVICE,
    NAMESPACES,
    NODEMAP,
    NODEMAP_STATS,
    NOT_TARGETS,
    OSD,
    SERVER,
    SERVICE_FOLDERS,
    SERVICE_STATS,
    LeftOut,
    Parameter,
    ParameterText,
    parameter_named,
    parameter_of,
    pattern_of,
)
from iolens.sources.lustre.server import ServerSample
from iolens.sources.lustre.stats import SERVICE_MARK
from iolens.sources.reading.bounded_input import parameter_bytes
from iolens.sources.reading.captures import read_each
from iolens.sources.reading.limited_reads import READ_LIMIT_S, Read, bytes_within
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.served_targets import with_servers
from iolens.sources.reading.ticks import Ticker, grid_of
from iolens.units import epoch_us

if TYPE_CHECKING:  # loaded where a server is read: `job begin` reads clients, through this module
    from iolens.sources.lustre.server import GivenNames, ServerReader


class TargetFolder(NamedTuple):
    """A directory with one folder per target, and the Lustre versions that have it."""

    directory: str
    versions: str

    @property
    def family(self) -> str:
        """obdfilter, osd-ldiskfs, mdt, …"""
        return self.directory.rpartition("/")[2]


PROC_OBDFILTER: Final = TargetFolder(
    "proc/fs/lustre/obdfilter", "1.8 to 2.14: stats, job_stats, recovery; brw_stats to 2.10"
)
SYS_OBDFILTER: Final = TargetFolder("sys/fs/lustre/obdfilter", "2.12 on: kbytes*, files*, num_exports")
DEBUG_OBDFILTER: Final = TargetFolder("sys/kernel/debug/lustre/obdfilter", "2.15 on: stats where /proc has gone")
DEBUG_OSD_LDISKFS: Final = TargetFolder(
    "sys/kernel/debug/lustre/osd-ldiskfs", "2.15 on: brw_stats; 2.17 on: io_latency_stats"
)
DEBUG_OSD_ZFS: Final = TargetFolder("sys/kernel/debug/lustre/osd-zfs", "2.15 on: brw_stats; 2.17 on: io_latency_stats")
PROC_OSD_LDISKFS: Final = TargetFolder(
    "proc/fs/lustre/osd-ldiskfs", "2.0 on: mntdev, kbytes*, files* of an MDT; 2.11 on: brw_stats"
)
PROC_OSD_ZFS: Final = TargetFolder("proc/fs/lustre/osd-zfs", "2.0.50 on: kbytes*, files*; 2.10 on: brw_stats")
SYS_OSD_LDISKFS: Final = TargetFolder("sys/fs/lustre/osd-ldiskfs", "2.13 on: mntdev, kbytes*, files*")
SYS_OSD_ZFS: Final = TargetFolder("sys/fs/lustre/osd-zfs", "2.13 on: kbytes*, files*")
PROC_MDT: Final = TargetFolder("proc/fs/lustre/mdt", "2.0 on: md_stats, job_stats, recovery_status")
SYS_MDT: Final = TargetFolder("sys/fs/lustre/mdt", "2.12 on: num_exports")
DEBUG_MDT: Final = TargetFolder("sys/kernel/debug/lustre/mdt", "2.15 on: md_stats where /proc has gone")
PROC_MDS: Final = TargetFolder("proc/fs/lustre/mds", "1.8: stats, kbytes*, files*, recovery_status")
PLACES: Final = (
    PROC_OBDFILTER, SYS_OBDFILTER, DEBUG_OBDFILTER, DEBUG_OSD_LDISKFS, DEBUG_OSD_ZFS, PROC_OSD_LDISKFS, PROC_OSD_ZFS,
    SYS_OSD_LDISKFS, SYS_OSD_ZFS, PROC_MDT, SYS_MDT, DEBUG_MDT, PROC_MDS,
)  # fmt: skip
BASES: Final = ("proc/fs/lustre", "sys/fs/lustre", "sys/kernel/debug/lustre")
LNET: Final = ("proc/sys/lnet", "sys/kernel/debug/lnet")
VERSION_FILES: Final = ("proc/fs/lustre/version", "sys/fs/lustre/version")  # to 2.7; 2.8 on

_LOOKED_FOR: Final = "a root with proc/fs/lustre, sys/fs/lustre or sys/kernel/debug/lustre of a Lustre server"


class LustreProc:
    """The /proc and /sys files of a Lustre server."""

    name = "lustre-proc"
    whole_directories = True
    summary = "/proc and /sys of a Lustre server, live or copied: one directory is one sample"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether there is a file of some target below `path`."""
        return path.is_dir() and any(True for _ in _target_files(path))

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per root, the earliest first."""
        from iolens.sources.lustre.server import GivenNames

        trees, refused = read_each(paths, _read_server)
        yield from refused
        for tree, tick in in_order(trees, options):
            yield Capture(
                str(tree.root), tree.identity(options), partial(tree.all_items, GivenNames(options.filesystem), tick)
            )


SOURCE: Final = LustreProc()


def in_order(trees: Sequence[LustreTree], options: ReadOptions) -> Iterator[tuple[LustreTree, int | None]]:
    """Trees with their ticks, the earliest first; those that tell no time last."""
    at_us = epoch_us(options.at) if options.at is not None else None
    timed = sorted(trees, key=lambda tree: (tree.time_us(at_us) is None, tree.time_us(at_us) or 0))
    series: dict[str, list[int]] = {}
    for tree in timed:
        series.setdefault(tree.sample.series, []).extend(filter(None, [tree.time_us(at_us)]))
    ticker = Ticker(grid_of(series, options.interval_s))
    for tree in timed:
        time_us = tree.time_us(at_us)
        yield tree, None if time_us is None else ticker.tick(time_us, tree.sample.series)


def read_tree(
    root: Path, time_us: int | None, filesystem: str | None = None, skip: frozenset[str] = frozenset()
) -> Iterator[Item]:
    """One sample of the server under `root`, of the tick `time_us` (None: its newest snapshot time).

    A server that has no target just now (they are on its partner) gives nothing. Files named in `skip` (`job_stats`)
    are not opened. Thousands of jobs on every target are a lot of text: those files are read last, one at a time.
    """
    from iolens.sources.lustre.server import GivenNames, ServerReader

    tree = _read_root(root, skip | {JOB_STATS}, live_bytes)
    reader = ServerReader(GivenNames(filesystem), stated_host(root))
    if not tree.sample.has_target:
        yield from tree.problems
    else:
        yield from tree.items(reader, time_us)
    if JOB_STATS not in skip:
        yield from _job_items(root, reader, time_us, tree)


def _job_items(root: Path, reader: ServerReader, time_us: int | None, tree: LustreTree) -> Iterator[Item]:
    """The job_stats of each target, held one at a time."""
    done: set[Parameter] = set()
    for parameter, path in _target_files(root):
        if parameter.leaf != JOB_STATS or parameter in done:
            continue
        try:
            reading = ParameterText(parameter, live_bytes(path), str(path))
        except OSError as error:
            yield Problem(str(path), None, f"cannot be read: {error.strerror}")
            continue
        done.add(parameter)
        alone = ServerSample(readings={parameter: reading})
        tick = time_us if time_us is not None else tree.time_us(None) or alone.snapshot_us(None)
        if tick is not None:
            snapshot = tree.sample.snapshot_us(tick)
            yield from reader.items([reading], tick, tick if snapshot is None else snapshot)


class SampleReader(Protocol):
    """Turns the texts of one sample into items."""

    def items(self, readings: Iterable[ParameterText], time_us: int, snapshot_us: int) -> Iterator[Item]:
        """`time_us` is the sample's tick, `snapshot_us` stands in for untimed texts."""


@dataclass(frozen=True, slots=True)
class LustreTree:
    """All texts of one root, as they were when read."""

    root: Path
    sample: ServerSample
    problems: tuple[Problem, ...]

    def time_us(self, at_us: int | None) -> int | None:
        """When it was taken: as reported, else the newest time any of its files gives."""
        if at_us is not None:
            return at_us
        return max(self.sample.times, default=None) or self.sample.snapshot_us(None)

    def all_items(self, naming: GivenNames, tick_us: int | None) -> Iterator[Item]:
        """Everything of a saved tree, and what of it is left out."""
        from iolens.sources.lustre.server import ServerReader

        left_out = LeftOut(str(self.root))
        for name in _other_names(self.root, self.sample):
            left_out.add(name)
        host = stated_host(self.root)
        yield from with_servers(self.items(ServerReader(naming, host, left_out), tick_us), host)
        yield from left_out.notes()

    def items(self, reader: SampleReader, tick_us: int | None) -> Iterator[Item]:
        """Samples, rows and problems."""
        yield from self.problems
        time_us = tick_us if tick_us is not None else self.time_us(None)
        if time_us is None:
            yield Problem(str(self.root), None, "no file here tells the time: supply it with --at")
            return
        snapshot = self.sample.snapshot_us(time_us)
        stamp = time_us if snapshot is None else snapshot
        yield from reader.items(self.sample.readings.values(), time_us, stamp)

    def identity(self, options: ReadOptions, node: str = "") -> str:
        """Hash of every file's relative path and content, of what the user had to supply, and of what a client is."""
        import hashlib

        from iolens.sources.lustre.server import needs_filesystem

        digest = hashlib.sha256(node.encode())
        for reading in sorted(self.sample.readings.values(), key=lambda reading: reading.place):
            relative = Path(reading.place).relative_to(self.root).as_posix()
            digest.update(f"{relative}\0{len(reading.data)}\0".encode() + reading.data)
        if options.at is not None:
            digest.update(f"at={options.at.isoformat()}".encode())
        if options.filesystem and needs_filesystem(self.sample.readings.values()):
            digest.update(f"filesystem={options.filesystem}".encode())
        return "file/" + digest.hexdigest()


def _read_server(root: Path) -> LustreTree:
    """The tree of a server that has at least one target, or files of one that could not be read."""
    tree = _read_root(root)
    if not tree.sample.has_target and not tree.problems:
        raise InputError(str(root), "no file of a Lustre target", _LOOKED_FOR)
    return tree


def _read_root(root: Path, skip: frozenset[str] = frozenset(), read: Read = parameter_bytes) -> LustreTree:
    if not root.is_dir():
        raise InputError(str(root), "no such directory", _LOOKED_FOR)
    sample = ServerSample()
    problems: list[Problem] = []
    for parameter, path in _files(root, problems, skip):
        if parameter in sample.readings or parameter.leaf in skip:
            continue
        reading = read_parameter(parameter, path, problems, read)
        if reading is not None:
            sample.add(reading, reading.stamp_us)
    leaves = (STAT,) if skip.issuperset(LOCK_LEAVES) else (STAT, *FACTS)
    for reading in list(_device_readings(root, sample, leaves, problems, read)):
        sample.add(reading, None)
    if "md_stats" not in skip:
        for reading in _client_readings(root, sample, problems, read):
            sample.add(reading, reading.stamp_us)
    return LustreTree(root, sample, tuple(problems))


def live_bytes(path: Path) -> bytes:
    """A file of a running kernel: one that hangs costs its target a sample, never the sampler; raises OSError."""
    return bytes_within(READ_LIMIT_S, parameter_bytes, path)


def read_parameter(parameter: Parameter, path: Path, problems: list[Problem], read: Read) -> ParameterText | None:
    """The text of one file; one that cannot be read is a problem."""
    try:
        return ParameterText(parameter, read(path), str(path))
    except OSError as error:
        problems.append(Problem(str(path), None, f"cannot be read: {error.strerror}"))
        return None


def _files(root: Path, problems: list[Problem], skip: frozenset[str]) -> Iterator[tuple[Parameter, Path]]:
    yield from _target_files(root, problems)
    for name in VERSION_FILES:
        if (root / name).is_file():
            yield Parameter(SERVER, "", "version"), root / name
    if SERVICE_STATS not in skip:
        yield from _server_files(root, problems, SERVICE_FOLDERS, ("stats",))
        yield from _server_files(root, problems, (NODEMAP,), NODEMAP_STATS)  # 2.17 on
    if not skip.issuperset(LOCK_LEAVES):
        yield from _server_files(root, problems, (NAMESPACES,), LOCK_PATHS)


def _server_files(
    root: Path, problems: list[Problem], folders: Sequence[str], leaves: Sequence[str]
) -> Iterator[tuple[Parameter, Path]]:
    """Files of services and lock namespaces, wherever the version keeps them."""
    for base in BASES:
        for folder in folders:
            for name in names_in(root / base / folder, problems):
                for leaf in leaves:
                    parameter = parameter_named(f"{folder}/{name}/{leaf}".replace("/", "."))
                    if parameter is not None and (path := root / base / folder / name / leaf).is_file():
                        yield parameter, path


def _client_readings(root: Path, sample: ServerSample, problems: list[Problem], read: Read) -> Iterator[ParameterText]:
    """What each client did to an MDT, only where the MDT itself does not count it: there may be thousands of them."""
    for directory in (root / place.directory for place in PLACES if place.family == MDT):
        for target in names_in(directory, None):
            exports = directory / target / "exports"
            own = sample.readings.get(Parameter(MDT, target, "md_stats"))
            if own is None and (directory / target / "md_stats").exists():
                continue
            if own is None or b" samples [" not in own.data or f"\n{SERVICE_MARK} ".encode() in own.data:
                for client in names_in(exports, problems):
                    parameter = parameter_named(f"mdt.{target}.exports.{client}.stats")
                    if parameter is not None and (path := exports / client / "stats").is_file():
                        yield _client_reading(parameter, path, problems, read)


def _device_readings(
    root: Path, sample: ServerSample, leaves: Sequence[str], problems: list[Problem], read: Read
) -> Iterator[ParameterText]:
    """What the kernel tells of the block device behind each target."""
    for (family, target, leaf), mounted in sample.readings.items():
        if (family, leaf) == (OSD, MOUNTED_DEVICE):
            for name, path in device_files(root, mounted.data, leaves, read).items():
                reading = read_parameter(Parameter(DEVICE, target, name), path, problems, read)
                if reading is not None:
                    yield reading


def _client_reading(parameter: Parameter, path: Path, problems: list[Problem], read: Read) -> ParameterText:
    """One that cannot be read is empty: without it the sum over clients is not known."""
    return read_parameter(parameter, path, problems, read) or ParameterText(parameter, b"", str(path))


def _other_names(root: Path, sample: ServerSample) -> Iterator[str]:
    """Patterns of the parameters below a root that were not read."""
    for base in BASES:
        for name in parameters_below(root / base):
            parameter = parameter_named(name)
            if parameter is None or parameter not in sample.readings:
                yield pattern_of(name)
    for base in LNET:
        yield from (f"lnet.{name}" for name in parameters_below(root / base))


def parameters_below(directory: Path) -> Iterator[str]:
    """Dotted names of the files below a directory; of many clients, which all have the same files, one is looked at."""
    for folder, subfolders, files in os.walk(directory):
        above = "" if folder == str(directory) else os.path.relpath(folder, directory).replace("/", ".") + "."
        yield from (above + name for name in sorted(files))
        subfolders.sort()
        if folder.endswith("/exports"):
            del subfolders[1:]
        if "target_obds" in subfolders:  # the devices of osc and mdc once more
            subfolders.remove("target_obds")
            yield f"{above}target_obds"


def _target_files(root: Path, problems: list[Problem] | None = None) -> Iterator[tuple[Parameter, Path]]:
    for place in PLACES:
        directory = root / place.directory
        for target in names_in(directory, problems):
            if target in NOT_TARGETS:
                continue
            for leaf in names_in(directory / target, problems):
                if (parameter := parameter_of(place.family, target, leaf)) is not None:
                    yield parameter, directory / target / leaf


def names_in(directory: Path, problems: list[Problem] | None) -> list[str]:
    """Names in a directory; one that is not there has none, one that may not be read is a problem."""
    try:
        return sorted(os.listdir(directory))  # noqa: PTH208 - called for every target every few seconds
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        if problems is not None:
            problems.append(Problem(str(directory), None, f"cannot be read: {error.strerror}"))
        return []
