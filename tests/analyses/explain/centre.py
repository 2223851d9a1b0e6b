"""A made-up centre: runs of one program on some OSTs with neighbours, whose loads and times are known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from iolens.run_tables import access_column
from iolens.schema import TABLES, size_column
from iolens.store.rows import to_arrow
from iolens.store.store import Store
from iolens.units import MIB
from tests.analyses.run_rows import T0_S, job_row, run_row

OSTS = tuple(f"scratch-OST{index:04x}" for index in range(4))
MDT = "scratch-MDT0000"
TICK_S = 60
RUN_S = 600
EVERY_S = 2 * 3600
MOVED = 8 << 30
LARGE, SMALL = 4 << 20, 10 << 10


@dataclass
class Centre:
    """Rows by table, and the load of others on each OST in disk I/Os of 1 MiB per tick, by run."""

    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    others_ios: list[np.ndarray] = field(default_factory=list)
    io_us: list[list[float]] = field(default_factory=list)  # mean time of an I/O by run and OST

    def add(self, table: str, row: dict[str, Any]) -> None:
        self.tables.setdefault(table, []).append(row)

    def stored(self, store: Store) -> Store:
        for table, rows in self.tables.items():
            store.append(table, to_arrow(TABLES[table], rows))
        return store


def interval(start_s: float, seconds: float, target: str, kind: str = "ost", **more: Any) -> dict[str, Any]:
    """A row of a table of intervals, seconds from `T0_S`."""
    start, end = (round((T0_S + second) * 1e6) for second in (start_s, start_s + seconds))
    times = {"start": start, "time": end, "date": start // 86_400_000_000, "duration_s": seconds}
    named = {"filesystem": "scratch", "source": "made-up", "target": target, "target_kind": kind, "after_reset": False}
    return {**times, **named, **more}


def run_of(
    number: int,
    io_s: float,
    access_bytes: int = LARGE,
    moved: int = MOVED,
    start_s: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A run of ten minutes, two hours after the one before."""
    accesses = moved // access_bytes
    upper = next(size for size in (10 << 10, 4 << 20) if access_bytes <= size)
    own = {
        "job_id": str(1000 + number), "filesystem": "scratch", "write_bytes": moved, "files": 8, "opens": 32,
        "writes": accesses, "posix_writes": accesses, "sequential_writes": accesses, "slowest_rank_s": io_s,
        "shared_files": 8, "shared_write_bytes": moved, access_column("write", upper): accesses,
    }  # fmt: skip
    start_s = number * EVERY_S if start_s is None else start_s
    return run_row(f"{number:02d}aa{number:060d}", start_s, start_s + RUN_S, **{**own, **more})


def made_up_centre(
    others: list[float], io_s: list[float], small: dict[int, int] | None = None, job_stats: bool = True, seed: int = 1
) -> Centre:
    """A run for each of `others`, the disk I/Os of 1 MiB of neighbours per OST and tick, and of `io_s`.

    `small`: access sizes of single runs that are not `LARGE`.
    """
    random = np.random.default_rng(seed)
    centre = Centre()
    for number, (level, seconds) in enumerate(zip(others, io_s, strict=True)):
        centre.add("runs", run_of(number, seconds, (small or {}).get(number, LARGE)))
        start_s = number * EVERY_S
        centre.add("jobs", job_row(str(1000 + number), start_s, start_s + RUN_S, nodes=2, cores=64))
        load = np.rint(level * random.uniform(0.9, 1.1, (RUN_S // TICK_S, len(OSTS)))).astype(int)
        centre.others_ios.append(load)
        own = MOVED // MIB // load.size
        for tick, target in np.ndindex(load.shape):
            _tick(
                centre,
                start_s + tick * TICK_S,
                OSTS[target],
                str(1000 + number),
                own,
                int(load[tick, target]),
                job_stats,
            )
        for tick in range(RUN_S // TICK_S):
            at_s = start_s + tick * TICK_S
            operations = {"open": 100 + int(random.integers(0, 20)), "close": 50}
            row = interval(at_s, TICK_S, MDT, "mdt", **operations)
            centre.add("metadata_ops", {name: value for name, value in row.items() if name != "target_kind"})
            if job_stats:
                centre.add("job_io", interval(at_s, TICK_S, MDT, "mdt", job_id=str(1000 + number), open=40))
        _fill(centre, start_s, number)
        _time(centre, start_s, number)
    return centre


def _time(centre: Centre, start_s: float, number: int) -> None:
    """A thousand I/Os of each OST, most of them within 4 ms, some within 8."""
    centre.io_us.append([])
    for place, target in enumerate(OSTS):
        slower = 10 * ((number + 3 * place) % 7)
        centre.io_us[-1].append(1000.0 * (4 * (1000 - slower) + 8 * slower) / 1000)
        for bin_ms, count in ((4, 1000 - slower), (8, slower)):
            named = {"histogram": "io_time_ms", "direction": "write", "bin": bin_ms, "count": count}
            centre.add("target_histograms", interval(start_s, RUN_S, target, **named))


def _tick(centre: Centre, at_s: float, target: str, job: str, own: int, others: int, job_stats: bool) -> None:
    """All I/Os are writes of 1 MiB, one RPC each."""
    ios = own + others
    centre.add("target_sizes", interval(at_s, TICK_S, target, **{size_column("write", MIB): ios}))
    counts = {"read_bytes": 0, "read_ops": 0}
    centre.add("target_io", interval(at_s, TICK_S, target, write_bytes=ios * MIB, write_ops=ios, **counts))
    if job_stats:
        for name, count in ((job, own), ("7", others)):
            row = interval(at_s, TICK_S, target, job_id=name, write_bytes=count * MIB, write_ops=count, **counts)
            centre.add("job_io", row)


def _fill(centre: Centre, start_s: float, number: int) -> None:
    for place, target in enumerate(OSTS):
        time = round((T0_S + start_s - 1800) * 1e6)
        used = {"total_bytes": 100, "used_bytes": 40 + number % 7 + place, "free_bytes": 60}
        named = {"filesystem": "scratch", "source": "made-up", "target": target, "target_kind": "ost"}
        centre.add("target_capacity", {"time": time, "date": time // 86_400_000_000, **named, **used})
