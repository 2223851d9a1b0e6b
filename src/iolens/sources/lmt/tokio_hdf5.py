"""TOKIO time series in HDF5: one group per kind of component, data sets of step × component, a time per step.

A step's time is its beginning. Amounts (`readbytes`, `opens`) are per step whatever their `units` say; rates are per
second. Minus zero is a sample that was not taken. See docs/lmt.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from iolens.errors import InputError
from iolens.records import Item, Problem
from iolens.schema import METADATA_OPERATIONS
from iolens.sources.reading.captures import FileSource
from iolens.sources.reading.hdf5_series import (
    Grid,
    Steps,
    attribute_of,
    blocks,
    datasets_of,
    filesystem_of,
    holds_any,
    identity_of,
    interval_rows,
    kind_of,
    names_of,
    numbers_of,
    opened,
    reading_rows,
    text_of,
    times_of,
    whole_numbers,
)
from iolens.sources.reading.options import ReadOptions
from iolens.units import KIB

TIMES: Final = "timestamps"
VERSIONS: Final = ("1", "None")
DATA_TARGETS, METADATA_TARGETS, FULLNESS = "datatargets", "mdtargets", "fullness"
SERVERS: Final = ("dataservers", "mdservers")
GROUPS: Final = (DATA_TARGETS, METADATA_TARGETS, FULLNESS, *SERVERS)

# Our column: the data set of amounts per step, and that of rates per second.
MOVED: Final = {
    "read_bytes": ("readbytes", "readrates"),
    "write_bytes": ("writebytes", "writerates"),
    "read_ops": ("readops", "readoprates"),
    "write_ops": ("writeops", "writeoprates"),
}
OPERATIONS: Final = {operation: (f"{operation}s", f"{operation}rates") for operation in METADATA_OPERATIONS}
CAPACITY: Final = {"bytes": ("bytes", "bytestotal"), "inodes": ("inodes", "inodestotal")}
CAPACITY_UNITS: Final = {"kib": KIB, "bytes": 1, "inodes": 1}
LOAD: Final = ("cpuload", "cpuuser", "cpusys", "memused", "memfree", "memtotal")
# Known, and of no table: which server a target is on, network traffic, kinds of memory.
UNUSED: Final = frozenset({
    *(f"failover/{name}" for name in (DATA_TARGETS, METADATA_TARGETS, TIMES)),
    *(f"{group}/{name}" for group in SERVERS for name in (
        "cpuidle", "memcached", "membuffered", "memslab", "memslab_unrecl", "netinbytes", "netoutbytes",
    )),
})  # fmt: skip
KIND_OF_SOURCE: Final = {"collectd_disk": "device", "mmperfmon": "lun"}


class TokioHdf5(FileSource):
    """A TOKIO time series file."""

    name = "tokio-hdf5"
    summary = "TOKIO time series in HDF5"

    def recognises(self, path: Path, head: bytes) -> bool:
        """An HDF5 file with one of TOKIO's groups and its times."""
        return holds_any(path, head, [f"{group}/{TIMES}" for group in GROUPS])

    def open(self, path: Path, options: ReadOptions) -> SeriesFile:
        """The file, if it can be read."""
        for key in options.settings:
            raise InputError(str(path), f"unknown key sources.tokio-hdf5.{key}", "no keys")
        with opened(path) as file:
            version = text_of(attribute_of(file, "version", "None"))
            if version not in VERSIONS:
                raise InputError(str(path), f"TOKIO schema version {version!r} is not known", "version 1")
            times = [file[f"{group}/{TIMES}"] for group in GROUPS if f"{group}/{TIMES}" in file]
            if not times:
                raise InputError(
                    str(path), "no group of a TOKIO time series", f"one of {', '.join(GROUPS)}, with {TIMES}"
                )
            begin_s = min((float(numbers_of(time, 1)[0]) for time in times if time.size), default=0.0)
            filesystem = options.filesystem or filesystem_of(_target_names(file), path)
        if filesystem is None:
            raise InputError(str(path), "nothing here tells the file system", "--filesystem NAME")
        return SeriesFile(path, filesystem, begin_s, identity_of(path, filesystem=options.filesystem))

    def begin(self, file: SeriesFile) -> float:
        """The earliest series comes first."""
        return file.begin_s


SOURCE: Final = TokioHdf5()


def _target_names(file: Any) -> list[str]:
    groups = [file[group] for group in (DATA_TARGETS, FULLNESS) if group in file]
    return [
        name
        for group in groups
        for item in (group.values() if hasattr(group, "values") else ())
        if item is not None and "columns" in item.attrs  # None: a link to nothing
        for name in names_of(item, "columns")
    ]


@dataclass(frozen=True, slots=True)
class SeriesFile:
    """One file, and its file system."""

    path: Path
    filesystem: str
    begin_s: float
    identity: str

    def items(self) -> Iterator[Item]:
        """Everything in the file."""
        with opened(self.path) as file:
            names = [name for name in GROUPS if name in file]
            yield from self._strangers(file, names)
            for name in names:
                try:
                    yield from self._group(_Hdf5Group(file[name], str(self.path)), name)
                except InputError as error:  # what is wrong with one group costs it alone
                    yield Problem(error.place, None, f"{error.problem}: the rest of {name} left out")

    def _group(self, group: _Hdf5Group, name: str) -> Iterator[Item]:
        if (reason := group.bad_times()) is not None:
            yield Problem(group.place, None, reason)
        elif name in (DATA_TARGETS, METADATA_TARGETS):
            yield from self._moved(group, name)
        elif name == FULLNESS:
            yield from self._fullness(group)
        else:
            yield from self._load(group)

    def _strangers(self, file: Any, groups: Sequence[str]) -> Iterator[Problem]:
        read = {f"{name}/{dataset}" for name in groups for dataset in (*_wanted(name), TIMES)}
        for name in datasets_of(file):
            if name not in read | UNUSED:
                yield Problem(str(self.path), None, f"data set {name} is of no known TOKIO series: left out")
        for group in groups:
            for name, thing in file[group].items() if hasattr(file[group], "items") else ():
                if thing is None:
                    yield Problem(str(self.path), None, f"data set {group}/{name} is a link to nothing: left out")

    def _moved(self, group: _Hdf5Group, name: str) -> Iterator[Item]:
        """Amounts per interval: bytes and requests, and on metadata targets operations."""
        yield from self._intervals(group, name, "target_io", MOVED)
        if name == METADATA_TARGETS:
            yield from self._intervals(group, name, "metadata_ops", OPERATIONS)

    def _intervals(
        self, group: _Hdf5Group, name: str, table: str, columns: Mapping[str, tuple[str, str]]
    ) -> Iterator[Item]:
        pairs = {column: pair for column, pair in columns.items() if any(name in group.datasets for name in pair)}
        targets = group.names(name for pair in pairs.values() for name in pair)
        for block in blocks(len(group.steps), len(targets)):
            counts = {}
            for column, (amounts, rates) in pairs.items():
                if amounts in group.datasets:
                    moved = group.grid(amounts, targets, block)
                else:
                    moved = group.grid(rates, targets, block) * group.steps[block].duration_s[:, None]
                counts[column], problems = whole_numbers(moved, group.place, f"{name}/{column}")
                yield from problems
            for number, target in enumerate(targets):
                common = {"filesystem": self.filesystem}
                if table == "target_io":
                    common["target_kind"] = group.kind(target, name)
                of_target = {column: grid[:, number] for column, grid in counts.items()}
                called = self._called(target, targets, name, group)
                yield from interval_rows(table, group.steps[block], called, common, of_target)

    def _called(self, target: str, targets: Sequence[str], name: str, group: _Hdf5Group) -> str:
        """LMT's series call a metadata target by its server: the only one of a file system is its first MDT."""
        if name == METADATA_TARGETS and group.source == "lmt" and len(targets) == 1 and kind_of(target) is None:
            return f"{self.filesystem}-MDT0000"
        return target

    def _fullness(self, group: _Hdf5Group) -> Iterator[Item]:
        targets = group.names(name for pair in CAPACITY.values() for name in pair)
        for block in blocks(len(group.steps), len(targets)):
            grids: dict[str, Grid] = {}
            for unit, (used, total) in CAPACITY.items():
                for column, dataset in ((f"used_{unit}", used), (f"total_{unit}", total)):
                    factor = group.factor(dataset)
                    if dataset in group.datasets and factor is None:
                        yield Problem(group.place, None, f"fullness/{dataset} is in no known unit: left out")
                    elif factor is not None:
                        grid = group.grid(dataset, targets, block) * factor
                        grids[column], problems = whole_numbers(grid, group.place, f"fullness/{dataset}")
                        yield from problems
                if f"used_{unit}" in grids and f"total_{unit}" in grids:
                    free = grids[f"total_{unit}"] - grids[f"used_{unit}"]
                    grids[f"free_{unit}"] = np.where(free < 0, np.nan, free)
            for number, target in enumerate(targets if grids else ()):
                common = {"filesystem": self.filesystem, "target": target, "target_kind": group.kind(target, FULLNESS)}
                values = {column: grid[:, number] for column, grid in grids.items()}
                yield from reading_rows("target_capacity", group.steps.start_us[block], common, values, whole=True)

    def _load(self, group: _Hdf5Group) -> Iterator[Item]:
        hosts = group.names(LOAD)
        for block in blocks(len(group.steps) if hosts else 0, len(hosts)):
            arrays = {name: group.grid(name, hosts, block) for name in LOAD if name in group.datasets}
            cpu, memory = _processor_pct(arrays), _memory_pct(arrays, group.unit("memused"))
            for number, host in enumerate(hosts):
                values = {"cpu_pct": cpu[:, number], "memory_pct": memory[:, number]}
                common = {"filesystem": self.filesystem, "host": host}
                yield from reading_rows("host_load", group.steps.start_us[block], common, values, whole=False)


def _wanted(name: str) -> set[str]:
    """The data sets that are read from a group of that name."""
    moved = {name for pair in MOVED.values() for name in pair}
    if name == DATA_TARGETS:
        return moved
    if name == METADATA_TARGETS:
        return moved | {name for pair in OPERATIONS.values() for name in pair}
    return {name for pair in CAPACITY.values() for name in pair} if name == FULLNESS else set(LOAD)


def _processor_pct(values: Mapping[str, Grid]) -> Grid:
    """Processor time used; where only its parts are there, their sum."""
    if "cpuload" in values:
        return values["cpuload"]
    if "cpuuser" in values and "cpusys" in values:
        return values["cpuuser"] + values["cpusys"]
    return np.full_like(next(iter(values.values())), np.nan)


def _memory_pct(values: Mapping[str, Grid], unit: str) -> Grid:
    if "memused" in values and unit == "%":
        return values["memused"]
    nothing = np.full_like(next(iter(values.values())), np.nan)
    if "memtotal" not in values:
        return nothing
    total = np.where(values["memtotal"] > 0, values["memtotal"], np.nan)
    used = values["memused"] if "memused" in values else total - values.get("memfree", nothing)
    return 100.0 * used / total


class _Hdf5Group:
    """One group: its data sets, and the steps they share."""

    def __init__(self, group: Any, place: str) -> None:
        self.place = place
        self.label = group.name.strip("/")
        if not hasattr(group, "items"):
            raise InputError(place, f"{self.label} is no group", "a TOKIO time series")
        self.datasets = {name: item for name, item in group.items() if name != TIMES and hasattr(item, "shape")}
        self.source = text_of(attribute_of(group, "source", ""))
        self.times = times_of(group[TIMES]) if TIMES in group else np.zeros(0)
        self.steps = self._steps()

    def bad_times(self) -> str | None:
        """What is wrong with the times, or None."""
        if len(self.times) < 2:
            return f"{self.label}/{TIMES} has {len(self.times)} times: the length of a step is not known"
        return None

    def names(self, datasets: Any) -> list[str]:
        """Names of the columns of these data sets, each once, in their order."""
        texts = [name for dataset in datasets if dataset in self.datasets for name in self._columns(dataset)]
        return list(dict.fromkeys(texts))

    def grid(self, dataset: str, names: Sequence[str], block: slice) -> Grid:
        """Steps × names; NaN where the sample was not taken, or the data set has no such column."""
        values = np.asarray(numbers_of(self.datasets[dataset], 2)[block, :], np.float64)
        values = np.where((values == 0) & np.signbit(values), np.nan, values)
        place_of = {name: number for number, name in enumerate(self._columns(dataset))}
        grid = np.full((block.stop - block.start, len(names)), np.nan)
        for number, name in enumerate(names):
            if place_of.get(name, values.shape[1]) < values.shape[1]:
                grid[: len(values), number] = values[:, place_of[name]]
        return grid

    def kind(self, target: str, name: str) -> str:
        """What a target is: by its name, else by the tool that measured it."""
        known = kind_of(target) or KIND_OF_SOURCE.get(self.source)
        return known or ("mdt" if name == METADATA_TARGETS else "device" if ":" in target else "lun")

    def unit(self, dataset: str) -> str:
        """The unit a data set states."""
        return text_of(attribute_of(self.datasets[dataset], "units", "")).lower() if dataset in self.datasets else ""

    def factor(self, dataset: str) -> int | None:
        """Bytes or inodes per unit of a data set of fullness."""
        return CAPACITY_UNITS.get(self.unit(dataset)) if dataset in self.datasets else None

    def _columns(self, dataset: str) -> list[str]:
        return names_of(self.datasets[dataset], "columns")

    def _steps(self) -> Steps:
        """Each step lasts until the next; the last as long as most."""
        lengths = np.diff(self.times)
        usual = float(np.median(lengths)) if len(lengths) else 0.0
        start_us = np.rint(self.times * 1e6).astype(np.int64)
        return Steps(start_us, np.append(start_us[1:], start_us[-1:] + round(usual * 1e6)))
