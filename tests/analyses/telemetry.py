"""A small made-up file system, as rows and as a brute-force truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from iolens.schema import DIRECTIONS, SIZE_BINS, size_column

T0_US = 1_600_041_600_000_000  # a UTC midnight
TICK_US = 5_000_000
SIZES = (4096, 65536, 1 << 20, 1 << 22)


@dataclass(frozen=True)
class Telemetry:
    """Rows of `target_sizes` and `target_io`, in step."""

    sizes: list[dict]
    io: list[dict]

    def table(self, name: str) -> pa.Table:
        from iolens.schema import TABLES
        from iolens.store.rows import to_arrow

        return to_arrow(TABLES[name], self.sizes if name == "target_sizes" else self.io)


def made_up(
    seed: int, ticks: int, targets: int, *, filesystem: str = "scratch", first_tick: int = 0, missing: float = 0.1
) -> Telemetry:
    """Random counts; some samples are missed, so that the next interval is wider."""
    random = np.random.default_rng(seed)
    sizes, io = [], []
    for target in range(targets):
        start = T0_US + first_tick * TICK_US
        for tick in range(first_tick, first_tick + ticks):
            if random.random() < missing and tick < first_tick + ticks - 1:
                continue
            time = T0_US + (tick + 1) * TICK_US
            seconds = (time - start) / 1e6 + random.normal(0, 0.01)
            common = {
                "time": time, "start": start, "duration_s": seconds, "date": start // 86_400_000_000,
                "filesystem": filesystem, "source": "made-up", "target": f"{filesystem}-OST{target:04x}",
                "target_kind": "ost", "after_reset": False,
            }  # fmt: skip
            burst = random.choice([0.0, 0.1, 1.0, 4.0])
            counts = {size_column(way, size): 0 for way in DIRECTIONS for size in SIZE_BINS}
            counts |= {size_column(way, size): int(random.poisson(60 * burst)) for way in DIRECTIONS for size in SIZES}
            sizes.append({**common, **counts, "read_ios_outside": 0, "write_ios_outside": 0})
            moved = {f"{way}_bytes": sum(counts[size_column(way, size)] * size for size in SIZES) for way in DIRECTIONS}
            io.append({**common, **moved, "read_ops": 1, "write_ops": 1})
            start = time
    return Telemetry(sizes, io)
