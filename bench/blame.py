"""`blame` against bare decode of the same columns, in one run: `python -m bench.blame --days 2 --targets 156`.

Every job is active on every target in every minute, which is the most there can be. Each contestant runs in a process
of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

FIRST_US = 1_767_225_600_000_000  # 2026-01-01
MINUTES = 1440
JOB_HOURS = 6
CONTESTANTS = ("decode", "blame", "again")


def main() -> None:
    """Make job_stats and disk I/Os, measure, print ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--targets", type=int, default=156)
    parser.add_argument("--jobs", type=int, default=50, help="active at a time")
    parser.add_argument("--store", help="keep the rows here and use them again")
    parser.add_argument("--contestant", choices=CONTESTANTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant:
        print(json.dumps(measured(options.contestant, options.store)))
        return
    with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
        store = options.store or f"{folder}/store"
        if not Path(store).exists():
            make_store(store, options.days, options.targets, options.jobs)
        report(store, options.days * MINUTES * options.targets * options.jobs)


def make_store(url: str, days: int, targets: int, jobs: int) -> None:
    """Minutes of job_stats, disk I/Os and RPCs; jobs change every six hours."""
    from iolens.store.store import Store

    store, chance, began = Store(url), np.random.default_rng(1), time.perf_counter()
    for day in range(days):
        for hour in range(24):
            first = day * MINUTES + hour * 60
            minutes = np.arange(first, first + 60)
            store.append("job_io", job_rows(chance, minutes, targets, jobs, (day * 24 + hour) // JOB_HOURS))
            sizes, requests = target_rows(chance, minutes, targets, jobs)
            store.append("target_sizes", sizes)
            store.append("target_io", requests)
    rows = days * MINUTES * targets * jobs
    size = sum(file.stat().st_size for file in Path(url).rglob("*.parquet")) / 1e6
    print(f"made {days} days × {targets} targets × 60 s × {jobs} jobs: {rows:,} rows of job_stats, {size:,.0f} MB"
          f" in {time.perf_counter() - began:.0f} s")  # fmt: skip


def times(minutes: np.ndarray, targets: int, each: int) -> dict[str, pa.Array]:  # type: ignore[type-arg]
    """By minute, target and whatever each of them has."""
    count = len(minutes) * targets * each
    ends = FIRST_US + (np.repeat(minutes, targets * each) + 1) * 60_000_000
    place = np.tile(np.repeat(np.arange(targets), each), len(minutes))
    stamp = pa.timestamp("us", "UTC")
    return {
        "time": pa.array(ends, pa.int64()).cast(stamp), "start": pa.array(ends - 60_000_000, pa.int64()).cast(stamp),
        "duration_s": pa.array(np.full(count, 60.0)), "filesystem": pa.array(["scratch"] * count),
        "source": pa.array(["bench"] * count), "target_kind": pa.array(["ost"] * count),
        "target": pa.array([f"scratch-OST{number:04x}" for number in range(targets)]).take(pa.array(place)),
    }  # fmt: skip


def job_rows(chance: np.random.Generator, minutes: np.ndarray, targets: int, jobs: int, shift: int) -> pa.Table:  # type: ignore[type-arg]
    """Every job on every target."""
    columns = times(minutes, targets, jobs)
    count = len(columns["duration_s"])
    ids = pa.array([str(shift * jobs + number) for number in range(jobs)])
    columns["job_id"] = ids.take(pa.array(np.tile(np.arange(jobs), count // jobs)))
    for direction in ("read", "write"):
        ops = chance.integers(0, 400, count)
        columns |= {f"{direction}_ops": pa.array(ops), f"{direction}_bytes": pa.array(ops << 16)}
    return pa.table(columns)


def target_rows(chance: np.random.Generator, minutes: np.ndarray, targets: int, jobs: int) -> tuple[pa.Table, pa.Table]:  # type: ignore[type-arg]
    """Disk I/Os of three sizes, and RPCs."""
    count = len(minutes) * targets
    counts = {
        f"{direction}_ios_{size}": pa.array(chance.integers(0, 130 * jobs, count))
        for direction in ("read", "write")
        for size in (4096, 65536, 1 << 20)
    }
    requests = {f"{direction}_ops": pa.array(chance.integers(1, 400 * jobs, count)) for direction in ("read", "write")}
    moved = {f"{direction}_bytes": pa.array(chance.integers(1, 1 << 40, count)) for direction in ("read", "write")}
    common = times(minutes, targets, 1)
    return pa.table({**common, **counts}), pa.table({**common, **requests, **moved})


def report(store: str, rows: int) -> None:
    """Seconds, memory and ratios."""
    print(f"\n{'contestant':12} {'seconds':>9} {'processor s':>12} {'rows/s':>14} {'peak MiB':>9}")
    results = {}
    for name in CONTESTANTS:
        command = [sys.executable, "-m", "bench.blame", "--contestant", name, "--store", store]
        results[name] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        seconds, processor_s, peak = (results[name][what] for what in ("seconds", "processor_s", "peak_mib"))
        print(f"{name:12} {seconds:>9.2f} {processor_s:>12.2f} {rows / seconds:>14,.0f} {peak:>9.0f}")
    ratio = results["decode"]["seconds"] / results["blame"]["seconds"]
    print(f"\nblame: {ratio:.2f} of decode speed, {results['blame']['peak_mib']:,.0f} MiB at most")


def measured(name: str, store: str) -> dict[str, float]:
    """One contestant, here; `again` after it has been asked once."""
    ask: dict[str, Callable[[str], None]] = {"decode": decode, "blame": blame, "again": again}
    if name == "again":
        again(store)
    began, before = time.perf_counter(), os.times()
    ask[name](store)
    after = os.times()
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    processor_s = sum(after[:4]) - sum(before[:4])
    return {"seconds": time.perf_counter() - began, "processor_s": processor_s, "peak_mib": int(peak.split()[1]) / 1024}


def decode(store: str) -> None:
    """DuckDB reads the columns that blame needs of job_stats and takes the maximum of each."""
    from iolens.store.duckdb_engine import relation
    from iolens.store.store import Store

    chosen = Store(store).select("scratch")
    names = ["time", "start", "duration_s", "target", "target_kind", "job_id", "read_ops", "write_ops", "read_bytes",
             "write_bytes"]  # fmt: skip
    files = relation(chosen.tables, "job_io", chosen.snapshot("job_io").paths)
    files.filter("duration_s > 0").aggregate(", ".join(f'max("{name}")' for name in names)).to_arrow_table()


def blame(store: str) -> None:
    """All rows."""
    import iolens

    iolens.open(store, fresh=True).blame("scratch")


def again(store: str) -> None:
    """With what is remembered."""
    import iolens

    iolens.open(store).blame("scratch")


if __name__ == "__main__":
    main()
