"""h5lmt day files: what LMT sites archived of their database, as rates per OST and step of one day, in HDF5.

A column belongs to the interval that ends at its step; the first one repeats the end of the day before and is left out.
Zero was every number's initial value, so a zero counts only where the file shows that something was loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.errors import InputError
from iolens.records import Item, Problem
from iolens.schema import SIZE_BINS, size_column
from iolens.sources.lmt.days import METADATA_COLUMN, SAMPLED_OPERATIONS, UNUSED_OPERATIONS
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
    names_of,
    numbers_of,
    opened,
    reading_rows,
    text_of,
    times_of,
    whole_numbers,
)
from iolens.sources.reading.options import ReadOptions

STEPS: Final = "FSStepsGroup/FSStepsDataSet"
MISSING: Final = "FSMissingGroup/FSMissingDataSet"
READ, WRITE = "OSTReadGroup/OSTBulkReadDataSet", "OSTWriteGroup/OSTBulkWriteDataSet"
READ_SIZES, WRITE_SIZES = "OSTReadGroup/OSTIosizeReadDataSet", "OSTWriteGroup/OSTIosizeWriteDataSet"
OSS_LOAD, MDS_LOAD, OPERATIONS = "OSSCPUGroup/OSSCPUDataSet", "MDSCPUGroup/MDSCPUDataSet", "MDSOpsGroup/MDSOpsDataSet"
DATASETS: Final = (STEPS, MISSING, READ, WRITE, READ_SIZES, WRITE_SIZES, OSS_LOAD, MDS_LOAD, OPERATIONS)
SETTINGS: Final = ("mds_host",)

Flags = NDArray[np.bool_]


class H5lmt(FileSource):
    """An h5lmt file."""

    name = "h5lmt"
    summary = "h5lmt day files: LMT's rates per OST and step in HDF5"

    def recognises(self, path: Path, head: bytes) -> bool:
        """An HDF5 file with h5lmt's steps."""
        return holds_any(path, head, (STEPS,))

    def open(self, path: Path, options: ReadOptions) -> DayFile:
        """The file, if it can be read."""
        for key, value in options.settings.items():
            if key not in SETTINGS or not isinstance(value, str):
                raise InputError(str(path), f"sources.h5lmt.{key} = {value!r}", f"one of {', '.join(SETTINGS)}, a text")
        with opened(path) as file:
            if STEPS not in file:
                raise InputError(str(path), f"no data set {STEPS}", "an h5lmt file")
            steps_us = _steps_us(file, path)
            filesystem = options.filesystem or _filesystem(file, path)
        if filesystem is None:
            raise InputError(str(path), "nothing here tells the file system", "--filesystem NAME")
        mds_host = options.settings.get("mds_host")
        identity = identity_of(path, filesystem=options.filesystem, mds_host=mds_host)
        return DayFile(path, filesystem, mds_host, int(steps_us[0]), identity)

    def begin(self, file: DayFile) -> float:
        """The earliest day comes first."""
        return file.begin_us


SOURCE: Final = H5lmt()


def _steps_us(file: Any, path: Path) -> NDArray[np.int64]:
    steps = times_of(file[STEPS])
    if len(steps) < 2:
        raise InputError(str(path), f"{STEPS} has {len(steps)} values", "two steps or more")
    steps_us: NDArray[np.int64] = np.rint(steps * 1e6).astype(np.int64)
    return steps_us


def _filesystem(file: Any, path: Path) -> str | None:
    """Its own word for it, else what the names of the OSTs or the file say."""
    if "fs" in file[STEPS].attrs:
        return text_of(attribute_of(file[STEPS], "fs"))
    named = [
        name
        for text in (READ, WRITE)
        if text in file and "OSTNames" in file[text].attrs
        for name in names_of(file[text], "OSTNames")
    ]
    return filesystem_of(named, path)


@dataclass(frozen=True, slots=True)
class DayFile:
    """One file, and what the user said about it."""

    path: Path
    filesystem: str
    mds_host: str | None
    begin_us: int
    identity: str

    def items(self) -> Iterator[Item]:
        """Everything in the file."""
        with opened(self.path) as file:
            grids = _Grids(file, str(self.path), _steps_us(file, self.path))
            yield from grids.strangers()
            loaded = grids.loaded()
            flagged = grids.flagged()
            yield from self._bytes(grids, loaded, flagged)
            yield from self._sizes(grids, loaded, flagged)
            yield from self._operations(grids, loaded)
            yield from self._load(grids, loaded, flagged)

    def _bytes(self, grids: _Grids, loaded: Flags, flagged: Flags) -> Iterator[Item]:
        names = grids.names((READ, WRITE), "OSTNames")
        common = {"filesystem": self.filesystem, "target_kind": "ost"}
        for block in blocks(len(names), len(grids.steps)):
            rates = {
                "read_bytes": grids.rates(READ, names[block], "OSTNames"),
                "write_bytes": grids.rates(WRITE, names[block], "OSTNames"),
            }
            is_idle = np.logical_and.reduce([np.nan_to_num(grid) == 0 for grid in rates.values()])
            unknown = ~loaded[1:, None] | (is_idle & _of_targets(flagged, len(names))[1:, block])
            counts = {}
            for column, grid in rates.items():
                moved = np.where(unknown, np.nan, grid * grids.steps.duration_s[:, None])
                counts[column], problems = whole_numbers(moved, grids.place, column)
                yield from problems
            for number, name in enumerate(names[block]):
                columns = {column: grid[:, number] for column, grid in counts.items()}
                yield from interval_rows("target_io", grids.steps, name, common, columns)

    def _sizes(self, grids: _Grids, loaded: Flags, flagged: Flags) -> Iterator[Item]:
        """I/Os per second by size, in files of sites that kept brw_stats; sizes without a bin are not known."""
        names = grids.names((READ_SIZES, WRITE_SIZES), "OSTNames")
        if not names or not grids.has_values(READ_SIZES, WRITE_SIZES):
            return
        common = {"filesystem": self.filesystem, "target_kind": "ost"}
        for number, name in enumerate(names):
            counts: dict[str, NDArray[np.float64]] = {}
            for direction, dataset in (("read", READ_SIZES), ("write", WRITE_SIZES)):
                counts |= grids.sizes(dataset, direction, name)
            is_idle = np.logical_and.reduce([np.nan_to_num(column) == 0 for column in counts.values()])
            unknown = ~loaded[1:] | (is_idle & _of_targets(flagged, len(names))[1:, number])
            for column, values in counts.items():
                counts[column], problems = whole_numbers(np.where(unknown, np.nan, values), grids.place, column)
                yield from problems
            yield from interval_rows("target_sizes", grids.steps, name, common, counts)

    def _operations(self, grids: _Grids, loaded: Flags) -> Iterator[Item]:
        """The one MDS of the file, which it does not name: taken for the first MDT."""
        names = grids.names((OPERATIONS,), "OpNames")
        rates = grids.rates(OPERATIONS, names, "OpNames")
        mds_load = grids.mds_load()
        is_silent = (np.nan_to_num(rates) == 0).all(axis=1) & (np.nan_to_num(mds_load[1:]) == 0)
        moved = np.where((~loaded[1:] | is_silent)[:, None], np.nan, rates * grids.steps.duration_s[:, None])
        counted, problems = whole_numbers(moved, grids.place, OPERATIONS)
        yield from problems
        counts: dict[str, NDArray[np.float64]] = {}
        for number, name in enumerate(names):
            column, values = METADATA_COLUMN.get(name), counted[:, number]
            if column is not None and (name in SAMPLED_OPERATIONS or np.nan_to_num(values).any()):
                counts[column] = counts[column] + values if column in counts else values
            elif column is None and name not in UNUSED_OPERATIONS and np.nan_to_num(values).any():
                yield Problem(grids.place, None, f"operation {name!r} is of no known version of Lustre")
        if counts:
            target, common = f"{self.filesystem}-MDT0000", {"filesystem": self.filesystem}
            yield from interval_rows("metadata_ops", grids.steps, target, common, counts)

    def _load(self, grids: _Grids, loaded: Flags, flagged: Flags) -> Iterator[Item]:
        names = grids.names((OSS_LOAD,), "OSSNames")
        load = grids.times(OSS_LOAD, names, "OSSNames")
        unknown = ~loaded[:, None] | (_of_targets(flagged, len(names)) & (np.nan_to_num(load) == 0))
        load = np.where(unknown, np.nan, load)
        columns = {name: load[:, number] for number, name in enumerate(names)}
        if self.mds_host is not None:
            mds_load = grids.mds_load()
            columns[self.mds_host] = np.where(loaded & (mds_load != 0), mds_load, np.nan)
        for host, column in columns.items():
            common = {"filesystem": self.filesystem, "host": host}
            yield from reading_rows("host_load", grids.steps_us, common, {"cpu_pct": column}, whole=False)


def _of_targets(flagged: Flags, targets: int) -> Flags:
    """Flags are by OSS; OSTs stand in the order of their OSSs, the same number on each.

    Where that cannot be, every step that has a flag is doubtful for all.
    """
    servers = flagged.shape[1]
    if servers and targets % servers == 0:
        return np.repeat(flagged, targets // servers, axis=1)
    doubtful: Flags = np.any(flagged, axis=1, keepdims=True)
    return np.repeat(doubtful, targets, axis=1)


class _Grids:
    """The data sets of an open file as grids: one row per step, one column per name."""

    def __init__(self, file: Any, place: str, steps_us: NDArray[np.int64]) -> None:
        self.file, self.place, self.steps_us = file, place, steps_us
        self.steps = Steps(steps_us[:-1], steps_us[1:])

    def strangers(self) -> Iterator[Problem]:
        """Data sets that no h5lmt has, and columns after the last step."""
        for name, dataset in datasets_of(self.file).items():
            if name not in DATASETS:
                yield Problem(self.place, None, f"data set {name} is not of h5lmt: left out")
            elif name != STEPS and np.any(numbers_of(dataset)[..., len(self.steps_us) :]):
                yield Problem(self.place, None, f"{name} has values after the last step: left out")

    def loaded(self) -> Flags:
        """Whether anything at all was put into the file at each step."""
        loaded = np.zeros(len(self.steps_us), bool)
        for name in (READ, WRITE, OSS_LOAD, MDS_LOAD, OPERATIONS):
            if name not in self.file:
                continue
            dataset = self._numbers(name)
            rows = dataset.shape[0] if dataset.ndim == 2 else 1
            for block in blocks(rows, len(self.steps_us)):
                part = self._cut(np.atleast_2d(dataset[...] if dataset.ndim == 1 else dataset[block, :]))
                loaded |= (np.nan_to_num(part) != 0).any(axis=0)
        return loaded

    def flagged(self) -> Flags:
        """Steps × OSSs that the file calls missing."""
        if MISSING not in self.file:
            return np.zeros((len(self.steps_us), 0), bool)
        flags: Flags = np.nan_to_num(self._cut(np.atleast_2d(self._numbers(MISSING)[...]))).T != 0
        return flags

    def names(self, datasets: Sequence[str], attribute: str) -> list[str]:
        """The names of the first of these data sets that is there."""
        for name in datasets:
            if name in self.file:
                return names_of(self.file[name], attribute)
        return []

    def has_values(self, *datasets: str) -> bool:
        """Whether something was ever loaded into one of these."""
        return any(name in self.file and bool(np.any(self._numbers(name)[...])) for name in datasets)

    def rates(self, dataset: str, names: Sequence[str], attribute: str) -> Grid:
        """Intervals × names, per second."""
        return self.times(dataset, names, attribute)[1:]

    def times(self, dataset: str, names: Sequence[str], attribute: str) -> Grid:
        """Steps × names; NaN for what the data set does not have."""
        grid = np.full((len(self.steps_us), len(names)), np.nan)
        if dataset not in self.file:
            return grid
        place_of = {name: row for row, name in enumerate(names_of(self.file[dataset], attribute))}
        rows = [(number, place_of[name]) for number, name in enumerate(names) if name in place_of]
        if rows:
            first, last = min(row for _, row in rows), max(row for _, row in rows)
            part = self._cut(self._numbers(dataset, 2)[first : last + 1, :])
            for number, row in rows:
                if row - first < len(part):
                    grid[:, number] = part[row - first]
        return grid

    def mds_load(self) -> NDArray[np.float64]:
        """The MDS's processor load at each step; NaN where the file has none."""
        if MDS_LOAD not in self.file:
            return np.full(len(self.steps_us), np.nan)
        values: NDArray[np.float64] = self._cut(np.atleast_2d(self._numbers(MDS_LOAD)[...]))[0]
        return values

    def sizes(self, dataset: str, direction: str, name: str) -> dict[str, NDArray[np.float64]]:
        """I/Os by size and interval of one OST; bins other than ours are counted as outside."""
        if dataset not in self.file or name not in (named := names_of(self.file[dataset], "OSTNames")):
            return {}
        result = self._numbers(dataset, 3)
        if "bins" not in result.attrs:
            raise InputError(self.place, f"{dataset} does not tell its bins", "attribute bins, OST × bin × step")
        counts: dict[str, NDArray[np.float64]] = {}
        rates = self._cut(result[named.index(name), :, :])[:, 1:]
        for size, rate in zip(np.atleast_1d(attribute_of(result, "bins")).tolist(), rates, strict=False):
            column = size_column(direction, int(size)) if size in SIZE_BINS else f"{direction}_ios_outside"
            counts[column] = counts.get(column, np.zeros(len(self.steps))) + rate * self.steps.duration_s
        return counts

    def _numbers(self, name: str, dimensions: int | None = None) -> Any:
        return numbers_of(self.file[name], dimensions)

    def _cut(self, part: NDArray[Any]) -> Grid:
        """Exactly as many columns as there are steps; what is not there is NaN."""
        if part.ndim != 2 or part.dtype.kind not in "fiu":
            raise InputError(self.place, f"numbers of shape {part.shape} and type {part.dtype}", "names × steps")
        grid = np.full((part.shape[0], len(self.steps_us)), np.nan)
        width = min(part.shape[1], len(self.steps_us))
        grid[:, :width] = part[:, :width]
        return grid
