"""Time series in HDF5, as h5lmt and TOKIO keep them: how to open the files, and how grids of numbers become rows.

A grid has one row per step and one column per target or server. NaN stands for what is not known. Grids are read and
handed on in blocks, so that memory stays flat whatever a file holds.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Integers
from iolens.errors import InputError
from iolens.records import Problem, Rows
from iolens.sources.reading.bounded_input import regular_file
from iolens.sources.reading.captures import content_identity

MAGIC: Final = b"\x89HDF\r\n\x1a\n"
BLOCK_CELLS: Final = 1_000_000
LARGEST: Final = 2.0**63
DEEPEST: Final = 8
MOST_OBJECTS: Final = 100_000
MOST_CELLS: Final = 1 << 28  # of one data set: ten thousand targets over a day of five seconds each have 173 million
MOST_UNSTORED: Final = 1 << 20
SPARSEST: Final = 1000  # numbers per stored byte: what is all zeros deflates to a thousandth
LATEST_S: Final = 4_102_444_800.0  # the year 2100

_HEAP: Final = b"GCOL\x01"  # a collection of strings, and what each of its objects begins with: number and size
_HEAP_HEADER: Final = 16
_HEAP_OBJECT: Final = struct.Struct("<H6xQ")
_TARGET: Final = re.compile(r"(?P<filesystem>.+)-(?P<kind>OST|MDT)[0-9a-fA-F]{4,}")
_DATED: Final = re.compile(r"(?P<filesystem>.+)_\d{4}-\d{2}-\d{2}")

Grid = NDArray[np.float64]  # steps × columns


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The file, for reading; one that is damaged is refused by name."""
    import h5py

    _refuse_endless_heaps(path)
    try:
        with h5py.File(path, "r", locking=False) as file:  # archives lie on file systems without locks
            yield file
    except (OSError, RuntimeError, KeyError, MemoryError) as error:
        raise InputError(str(path), f"HDF5: {error}", "a whole HDF5 file") from error


def _refuse_endless_heaps(path: Path) -> None:
    """Refuse a file over which the HDF5 library would never come back: no signal or exception ends it.

    It walks through each collection of strings from object to object, and stays at free space of zero bytes.
    """
    try:
        with regular_file(path).mapped() as content:
            at = content.find(_HEAP)
            while at >= 0:
                if _is_endless(content, at):
                    raise InputError(str(path), f"HDF5: a damaged heap at byte {at}", "a whole HDF5 file")
                at = content.find(_HEAP, at + 1)
    except (OSError, ValueError) as error:  # of an empty file, there is no map
        raise InputError(str(path), f"HDF5: {error}", "a whole HDF5 file") from error


def _is_endless(content: mmap.mmap | bytes, at: int) -> bool:
    end = min(at + int.from_bytes(content[at + 8 : at + 16], "little"), len(content))
    place = at + _HEAP_HEADER
    while place + _HEAP_OBJECT.size <= end:
        number, size = _HEAP_OBJECT.unpack_from(content, place)
        if number == 0 and size == 0:
            return True
        place += size if number == 0 else _HEAP_OBJECT.size + -(-size // 8) * 8
    return False


def times_of(dataset: Any) -> NDArray[np.float64]:
    """The times of a series, seconds since 1970, which rise; one that is none is refused."""
    times: NDArray[np.float64] = numbers_of(dataset, 1)[...].astype(np.float64)
    if not ((times > 0) & (times < LATEST_S)).all() or (np.diff(times) <= 0).any():
        raise InputError(
            dataset.file.filename,
            f"the times in {dataset.name.strip('/')} do not rise",
            "seconds since 1970, one after the other",
        )
    return times


def holds_any(path: Path, head: bytes, names: Sequence[str]) -> bool:
    """Whether it is an HDF5 file that has one of these groups or data sets."""
    if not head.startswith(MAGIC):
        return False
    try:
        with opened(path) as file:
            return any(name in file for name in names)
    except InputError:
        return False


def datasets_of(file: Any) -> dict[str, Any]:
    """Every data set of a file by its path in it, down to a depth no series has."""
    import h5py

    by_name: dict[str, Any] = {}
    groups = [("", file)]
    for _ in range(DEEPEST):
        deeper = []
        for path, group in groups:
            for name, thing in group.items():
                if isinstance(thing, h5py.Group):
                    deeper.append((f"{path}{name}/", thing))
                elif isinstance(thing, h5py.Dataset):
                    by_name[f"{path}{name}"] = thing
                if len(by_name) + len(deeper) > MOST_OBJECTS:
                    raise InputError(file.filename, f"more than {MOST_OBJECTS} groups and data sets", "a time series")
        groups = deeper
    return by_name


def numbers_of(dataset: Any, dimensions: int | None = None) -> Any:
    """A data set of numbers that may be read: of so many dimensions, and not larger than its file can have filled.

    A file of a few bytes can declare a data set of any size, all of it the same value.
    """
    place, shape = dataset.file.filename, getattr(dataset, "shape", None)
    if shape is None or dataset.dtype.kind not in "iuf":
        raise InputError(place, f"{dataset.name} holds no numbers", "whole or decimal numbers")
    if dimensions is not None and len(shape) != dimensions:
        raise InputError(place, f"{dataset.name} has {len(shape)} dimensions", f"{dimensions}")
    if dataset.size > MOST_CELLS or dataset.size > SPARSEST * max(dataset.id.get_storage_size(), MOST_UNSTORED):
        raise InputError(place, f"{dataset.name} declares {dataset.size} numbers", "a series that a file can hold")
    return dataset


def identity_of(path: Path, **supplied: str | None) -> str:
    """The content's hash; what the user had to supply is part of it, for it changes the rows."""
    identity = content_identity(path)
    said = {name: value for name, value in sorted(supplied.items()) if value is not None}
    if not said:
        return identity
    return "file/" + hashlib.sha256(repr((identity, said)).encode()).hexdigest()


def text_of(value: object) -> str:
    """An attribute as text; HDF5 keeps bytes or characters."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def attribute_of(thing: Any, name: str, default: object = None) -> Any:
    """An attribute of a file, group or data set; one whose type is damaged is refused."""
    try:
        return thing.attrs.get(name, default)
    except (TypeError, ValueError) as error:
        raise InputError(thing.file.filename, f"HDF5: attribute {name}: {error}", "a whole HDF5 file") from error


def names_of(dataset: Any, attribute: str) -> list[str]:
    """A list of names kept in an attribute."""
    if attribute not in dataset.attrs:
        raise InputError(dataset.file.filename, f"{dataset.name} does not name its columns", f"attribute {attribute}")
    names = np.atleast_1d(attribute_of(dataset, attribute))
    if names.ndim != 1 or len(names) > MOST_OBJECTS:
        raise InputError(dataset.file.filename, f"{attribute} of {dataset.name} is no list of names")
    return [text_of(name) for name in names]


def kind_of(name: str) -> str | None:
    """`ost` or `mdt` where the name says so."""
    match = _TARGET.fullmatch(name)
    return match["kind"].lower() if match else None


def filesystem_of(targets: Sequence[str], path: Path) -> str | None:
    """The file system that the names of its targets, or else a file called NAME_YYYY-MM-DD, tell."""
    names = {match["filesystem"] for name in targets if (match := _TARGET.fullmatch(name))}
    if len(names) == 1:
        return names.pop()
    match = _DATED.fullmatch(path.stem)
    return match["filesystem"] if match and not names else None


@dataclass(frozen=True, slots=True)
class Steps:
    """The intervals of a grid."""

    start_us: Integers
    time_us: Integers

    @property
    def duration_s(self) -> NDArray[np.float64]:
        """Length of each, seconds."""
        return (self.time_us - self.start_us) / 1e6

    def __len__(self) -> int:
        return len(self.time_us)

    def __getitem__(self, part: slice) -> Steps:
        return Steps(self.start_us[part], self.time_us[part])


def blocks(steps: int, columns: int) -> Iterator[slice]:
    """Stretches of steps of at most `BLOCK_CELLS` numbers each."""
    length = max(1, BLOCK_CELLS // max(1, columns))
    for begin in range(0, steps, length):
        yield slice(begin, min(steps, begin + length))


def whole_numbers(grid: Grid, place: str, what: str) -> tuple[Grid, list[Problem]]:
    """Counts rounded to whole numbers; what cannot be a count becomes unknown, and is reported."""
    with np.errstate(invalid="ignore"):
        wrong = (grid < 0) | (np.abs(grid) >= LARGEST)
    if not wrong.any():
        return np.rint(grid), []
    reason = f"{what}: {int(wrong.sum())} values are negative or too large to be counts"
    return np.rint(np.where(wrong, np.nan, grid)), [Problem(place, None, reason)]


def as_integers(column: NDArray[np.float64]) -> np.ma.MaskedArray[tuple[int], np.dtype[np.int64]]:
    """Whole numbers from a column that may hold NaN."""
    unknown = np.isnan(column)
    return np.ma.MaskedArray(np.where(unknown, 0, column).astype(np.int64), unknown)


def interval_rows(
    table: str, steps: Steps, target: str, common: Mapping[str, str], counts: Mapping[str, NDArray[np.float64]]
) -> Iterator[Rows]:
    """Rows of one target; an interval of which nothing is known is left out."""
    known = ~np.logical_and.reduce([np.isnan(column) for column in counts.values()])
    if known.any():
        columns: dict[str, object] = {
            "time": steps.time_us[known],
            "start": steps.start_us[known],
            "duration_s": steps.duration_s[known],
            "target": target,
            **common,
            **{name: as_integers(column[known]) for name, column in counts.items()},
        }
        yield Rows(table, columns, int(known.sum()))


def reading_rows(
    table: str, time_us: Integers, common: Mapping[str, str], values: Mapping[str, NDArray[np.float64]], *, whole: bool
) -> Iterator[Rows]:
    """Rows of one target or server at times; `whole`: bytes or inodes rather than shares."""
    known = ~np.logical_and.reduce([np.isnan(column) for column in values.values()])
    if known.any():
        arrays = {name: as_integers(column[known]) if whole else column[known] for name, column in values.items()}
        yield Rows(table, {"time": time_us[known], **common, **arrays}, int(known.sum()))
