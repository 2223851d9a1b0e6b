"""fio's log of single requests (`write_lat_log` with `log_offset`): when, how long, read or written, how large.

The check of a made-up load: whether what was asked for is what the tested system got.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.errors import InputError

DIRECTIONS: Final = ("read", "write")  # fio's 0 and 1; 2 is a trim
COLUMNS: Final = 5  # ms, ns, direction, bytes, offset; later versions append a priority and more
LATENCIES: Final = "*_lat.*.log"  # beside `_clat` and `_slat`


@dataclass(frozen=True, slots=True, eq=False)
class RequestLog:
    """Requests of all logs, one after the other: latency [s], direction (0 read, 1 write) and size [bytes]."""

    latency_s: NDArray[np.float64]
    direction: NDArray[np.int64]
    size_bytes: NDArray[np.int64]

    def count(self, direction: str) -> int:
        """Requests of that direction."""
        return int((self.direction == DIRECTIONS.index(direction)).sum())

    @property
    def read_requests_pct(self) -> float | None:
        """None where there is no request."""
        return 100.0 * self.count("read") / len(self.direction) if len(self.direction) else None

    def size_shares(self, direction: str) -> dict[int, float]:
        """Share of the direction's requests by size."""
        sizes, counts = np.unique(self.size_bytes[self.direction == DIRECTIONS.index(direction)], return_counts=True)
        total = counts.sum()
        return {int(size): float(count / total) for size, count in zip(sizes, counts, strict=True)}

    def latency_percentile_s(self, direction: str, percent: float) -> float | None:
        """From issue to completion; None where there is no request."""
        mine = self.latency_s[self.direction == DIRECTIONS.index(direction)]
        return float(np.percentile(mine, percent)) if mine.size else None


def read_logs(paths: Iterable[Path]) -> RequestLog:
    """All requests of these logs; a line that is none is refused."""
    tables = [_read_log(path) for path in paths]
    whole = np.concatenate(tables) if tables else np.empty((0, COLUMNS), np.int64)
    moved = whole[whole[:, 2] < len(DIRECTIONS)]
    return RequestLog(moved[:, 1] / 1e9, moved[:, 2], moved[:, 3])


def largest_deviation_points(wanted: Mapping[int, float], got: Mapping[int, float]) -> float:
    """The size whose share differs most, in points of a hundred."""
    return max((100.0 * abs(wanted.get(size, 0.0) - got.get(size, 0.0)) for size in {*wanted, *got}), default=0.0)


def _read_log(path: Path) -> NDArray[np.int64]:
    rows = []
    for number, line in enumerate(path.read_text("ascii", "replace").splitlines(), 1):
        words = line.split(",")[:COLUMNS]
        try:
            row = [int(word) for word in words]
        except ValueError:
            row = []
        if len(row) != COLUMNS or min(row) < 0 or max(row) >= 1 << 63:
            raise InputError(
                str(path), repr(line[:80]), "milliseconds, nanoseconds, direction, bytes, offset (log_offset=1)", number
            )
        rows.append(row)
    return np.array(rows, np.int64).reshape(-1, COLUMNS)
