"""Layout of the fixed-size records of Darshan's modules, with the counters that the library itself names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.sources.darshan.library import MODULES, counter_names

_PREFIXES: Final = {
    "POSIX": "posix", "STDIO": "stdio", "MPI-IO": "mpiio", "H5F": "h5f", "H5D": "h5d", "PNETCDF_FILE": "pnetcdf_file",
    "PNETCDF_VAR": "pnetcdf_var", "DFS": "dfs", "DAOS": "daos",
}  # fmt: skip
_BELONGS_TO_A_FILE: Final = ("H5D", "PNETCDF_VAR")
_STORED: Final = {"POSIX": (4, 704), "STDIO": (2, 248), "MPI-IO": (3, 560)}  # version, and bytes of its record
_TRAILING_BYTES: Final = {"DFS": 32, "DAOS": 48}  # identifiers of pool, container and object

RECORDED: Final = tuple(_PREFIXES)
"""Modules with fixed-size records that are read."""


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """One module's record: identifier and rank, then whole numbers, then times."""

    module: str
    number: int
    prefix: str
    counters: dict[str, int]
    times: dict[str, int]
    dtype: np.dtype[np.void]

    def is_stored(self, version: int) -> bool:
        """Whether records of this version of the module lie in a log as they do in memory, in the same byte order."""
        return _STORED.get(self.module) == (version, self.dtype.itemsize)

    def counter(self, records: NDArray[np.void], name: str) -> NDArray[np.int64] | None:
        """A counter of every record by its name without the module's prefix; None where the module has none such."""
        place = self.counters.get(name)
        return None if place is None else records["counters"][:, place]

    def time(self, records: NDArray[np.void], name: str) -> NDArray[np.float64] | None:
        """A time of every record, seconds, by its name without prefix and `F_`; None where there is none such."""
        place = self.times.get(name)
        return None if place is None else records["times"][:, place]


@cache
def layout_of(module: str) -> RecordLayout:
    """The layout of a module's records."""
    prefix = _PREFIXES[module]
    upper = f"{prefix.upper()}_"
    counters = [name.removeprefix(upper) for name in counter_names(prefix)]
    times = [name.removeprefix(f"{upper}F_") for name in counter_names(f"{prefix}_f")]
    fields: list[tuple[str, object] | tuple[str, object, tuple[int]]] = [("id", "u8"), ("rank", "i8")]
    if module in _BELONGS_TO_A_FILE:
        fields.append(("file_id", "u8"))
    fields += [("counters", "i8", (len(counters),)), ("times", "f8", (len(times),))]
    if module in _TRAILING_BYTES:
        fields.append(("identifiers", f"V{_TRAILING_BYTES[module]}"))
    return RecordLayout(
        module,
        MODULES.index(module),
        prefix,
        {name: place for place, name in enumerate(counters)},
        {name: place for place, name in enumerate(times)},
        np.dtype(fields),
    )
