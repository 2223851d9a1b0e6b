"""A disk whose cost per I/O is known, for a calibration to find again: it answers sweeps as a benchmark would see it.

With read-ahead it does what the servers of paper U did (Fig. 6): small reads become larger ones at the disk, most
requests are then answered from memory, and a part of what was read is never asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from iolens.models.transaction_time import Calibration
from iolens.units import KIB, MIB

TRANSFER_SIZES = tuple(4 * KIB << power for power in range(11))  # 4 KiB … 4 MiB
READ_AHEAD_BYTES = MIB
AMPLIFICATION = 9.5 / 8  # of reads under read-ahead, as in Fig. 6


@dataclass(slots=True)
class SimulatedDevice:
    """A device that takes exactly the modelled time, times a random factor of `noise` (standard deviation of its log).

    I/Os above `largest_io_bytes` are split by the server, as into the 1 MiB of paper U.
    """

    calibration: Calibration
    read_ahead: bool = False
    largest_io_bytes: int = MIB
    noise: float = 0.0
    seed: int = 1
    _random: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def disk_ios(self, direction: str, transfer_bytes: int, requested_bytes: int) -> dict[int, int]:
        """I/Os at the disk by size for so many bytes in transfers of one size."""
        if direction == "read" and self.read_ahead and transfer_bytes < READ_AHEAD_BYTES:
            return self._read_ahead(transfer_bytes, requested_bytes)
        size = min(transfer_bytes, self.largest_io_bytes)
        return {size: requested_bytes // size}

    def seconds(self, direction: str, ios: dict[int, int]) -> float:
        """Time of those I/Os (Eq. 3), disturbed."""
        cost = self.calibration.of(direction)
        undisturbed = sum(count * cost.seconds(size) for size, count in ios.items())
        return float(undisturbed * np.exp(self.noise * self._random.standard_normal()))

    def run(
        self, direction: str, transfer_bytes: int, requested_bytes: int, iteration: int = 0, queue_depth: int = 1
    ) -> dict[str, object]:
        """A row of `benchmark_runs` for one run."""
        ios = self.disk_ios(direction, transfer_bytes, requested_bytes)
        return {
            "tool": "simulated",
            "run_id": f"simulated/{direction}/{transfer_bytes}/{iteration}",
            "direction": direction,
            "transfer_bytes": transfer_bytes,
            "queue_depth": queue_depth,
            "duration_s": self.seconds(direction, ios),
            "bytes": requested_bytes,
            "operations": requested_bytes // transfer_bytes,
            "iteration": iteration,
            "access": "random",
            "aggregate_bytes": requested_bytes,
            "device": "simulated",
            "device_ops": sum(ios.values()),
            "device_bytes": sum(size * count for size, count in ios.items()),
            "device_sizes": json.dumps({str(size): count for size, count in sorted(ios.items())}),
            "complete": True,
        }

    def sweep(
        self, sizes: Iterable[int] = TRANSFER_SIZES, requested_bytes: int = 1 << 33, repeats: int = 1
    ) -> Iterator[dict[str, object]]:
        """The sweep of U3: every size, writes and reads."""
        every = list(sizes)
        for iteration in range(repeats):
            for direction in ("write", "read"):
                for size in every:
                    yield self.run(direction, size, requested_bytes, iteration)

    def _read_ahead(self, transfer_bytes: int, requested_bytes: int) -> dict[int, int]:
        """The disk reads more than was asked for: as many I/Os of each size from the transfer's to the window's."""
        sizes = [transfer_bytes << power for power in range(21) if transfer_bytes << power <= READ_AHEAD_BYTES]
        each = max(round(AMPLIFICATION * requested_bytes / sum(sizes)), 1)
        return dict.fromkeys(sizes, each)
