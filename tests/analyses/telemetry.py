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
            counts = {size_column(direction, size): 0 for direction in DIRECTIONS for size in SIZE_BINS}
            counts |= {
                size_column(direction, size): int(random.poisson(60 * burst))
                for direction in DIRECTIONS
                for size in SIZES
            }
            sizes.append({**common, **counts, "read_ios_outside": 0, "write_ios_outside": 0})
            moved = {
                f"{direction}_bytes": sum(counts[size_column(direction, size)] * size for size in SIZES)
                for direction in DIRECTIONS
            }
            io.append({**common, **moved, "read_ops": 1, "write_ops": 1})
            start = time
    return Telemetry(sizes, io)


def table_of(name: str, rows: list[dict]) -> pa.Table:
    """Finished rows as an Arrow table of the schema."""
    from iolens.schema import TABLES
    from iolens.store.rows import to_arrow

    return to_arrow(TABLES[name], rows)


def _ticks(random, ticks: int, first_tick: int, missing: float, tick_us: int):
    """Intervals that end on ticks; a missed sample widens the next one."""
    start = T0_US + first_tick * tick_us
    for tick in range(first_tick, first_tick + ticks):
        if random.random() < missing and tick < first_tick + ticks - 1:
            continue
        time = T0_US + (tick + 1) * tick_us
        seconds = (time - start) / 1e6 + random.normal(0, 0.01)
        yield {
            "time": time, "start": start, "duration_s": seconds, "date": start // 86_400_000_000, "source": "made-up",
            "after_reset": False,
        }  # fmt: skip
        start = time


def made_up_devices(
    seed: int, ticks: int, devices: int, *, filesystem: str = "node1", first_tick: int = 0, missing: float = 0.1
) -> list[dict]:
    """`target_io` rows of block devices; the last device does not count its busy time, some I/Os are above 1 MiB."""
    random = np.random.default_rng(seed)
    rows = []
    for device in range(devices):
        for common in _ticks(random, ticks, first_tick, missing, TICK_US):
            burst = random.choice([0.0, 0.1, 1.0, 4.0])
            counts = {}
            for direction in DIRECTIONS:
                ops = int(random.poisson(120 * burst))
                mean = int(random.choice([4096, 65536, 1 << 20, 3 << 20]))
                counts |= {
                    f"{direction}_ops": ops,
                    f"{direction}_bytes": ops * mean,
                    f"{direction}_wait_us": ops * int(random.integers(200, 9000)),
                }
            busy = None if device == devices - 1 else int(random.uniform(0, 1) * common["duration_s"] * 1e6)
            name = {"filesystem": filesystem, "target": f"sd{chr(97 + device)}", "target_kind": "device"}
            rows.append({**common, **counts, **name, "busy_us": busy})
    return rows


OPERATIONS = {
    "open": 300, "close": 290, "mknod": 40, "unlink": 35, "getattr": 900, "setattr": 50, "statfs": 1, "rename": 4,
    "samedir_rename": 4,
}  # fmt: skip


def made_up_metadata(
    seed: int,
    ticks: int,
    targets: int,
    *,
    filesystem: str = "scratch",
    first_tick: int = 0,
    missing: float = 0.1,
    times: bool = True,
) -> list[dict]:
    """`metadata_ops` rows; `mkdir` is absent until it first occurs, as servers print it, and rmdir never does."""
    random = np.random.default_rng(seed)
    rows = []
    for target in range(targets):
        for number, common in enumerate(_ticks(random, ticks, first_tick, missing, TICK_US)):
            burst = random.choice([0.0, 0.2, 1.0, 8.0])
            counts = {name: int(random.poisson(rate * burst)) for name, rate in OPERATIONS.items()}
            counts["mkdir"] = int(random.poisson(3 * burst)) if number > ticks // 2 else None
            spent = {
                f"{name}_us": count * int(random.integers(20, 400))
                for name, count in counts.items()
                if count is not None
            }
            rows.append({**common, **counts, **(spent if times else {}), "filesystem": filesystem,
                         "target": f"{filesystem}-MDT{target:04x}"})  # fmt: skip
    return rows


def made_up_io_times(
    seed: int, ticks: int, targets: int, *, filesystem: str = "scratch", first_tick: int = 0, slow: int | None = 1
) -> list[dict]:
    """`target_histograms` rows at 60 s, non-zero bins only: I/O times, and another histogram beside them."""
    random = np.random.default_rng(seed)
    rows = []
    for target in range(targets):
        for common in _ticks(random, ticks, first_tick, 0.1, 60_000_000):
            name = {"filesystem": filesystem, "target": f"{filesystem}-OST{target:04x}", "target_kind": "ost"}
            for direction in DIRECTIONS:
                times = random.lognormal(
                    2.5 if target == slow and direction == "read" else 0.8, 1.2, random.integers(0, 400)
                )
                bins, counts = np.unique(2 ** np.ceil(np.log2(np.maximum(times, 1))).astype(int), return_counts=True)
                for bin_, count in zip(bins.tolist(), counts.tolist(), strict=True):
                    row = {
                        **common,
                        **name,
                        "direction": direction,
                        "histogram": "io_time_ms",
                        "bin": bin_,
                        "count": count,
                    }
                    rows += [row, {**row, "histogram": "pages_per_bulk", "count": count * 7}]
    return rows
