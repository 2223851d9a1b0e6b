"""`make bench`: projects of a million application runs joined to a million jobs, each verb in a process of its own.

The rows are made first; `--store DIRECTORY` keeps them for the next time. Beside the seconds that pass stand those of
the processor, which other programs on the machine do not change, and the peak memory of the process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
DAYS, DAYS_PER_BATCH = 60, 10
RUNS = 1_000_000
VERBS = ("projects", "coverage", "interfaces", "patterns", "files", "sizes", "variance")
MOST_SECONDS = {"projects": 2.0}


def main() -> None:
    """Make runs and jobs, ask every verb, print what that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--store", help="keep the rows here and use them again")
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--verb", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make_rows(options.store, options.runs)
    elif options.verb:
        print(json.dumps(answered(options.store, options.verb)))
    else:
        with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
            report(options.store or f"{folder}/store", options.runs)


def report(store: str, runs: int) -> None:
    """Seconds and memory of each verb, and how that compares with what it may take."""
    if not Path(store).exists():
        began = time.perf_counter()
        started("--store", store, "--make", "--runs", str(runs))
        size_mb = sum(file.stat().st_size for file in Path(store).rglob("*.parquet")) / 1e6
        print(f"made {runs:,} runs and as many jobs in {time.perf_counter() - began:.0f} s: {size_mb:,.0f} MB")
    print(f"{'verb':>10} {'runs':>9} {'seconds':>8} {'processor s':>12} {'peak MiB':>9}  of what it may take")
    for verb in VERBS:
        answer = json.loads(started("--store", store, "--verb", verb))
        figures = f"{answer['runs']:>9,} {answer['seconds']:>8.2f} {answer['cpu_s']:>12.2f} {answer['peak_mib']:>9.0f}"
        most_s = MOST_SECONDS.get(verb)
        share = f"  {answer['seconds'] / most_s:.2f} of {most_s:g} s" if most_s else ""
        print(f"{verb:>10} {figures}{share}")


def started(*arguments: str) -> str:
    """What this module prints with other arguments, in a process whose memory is its own."""
    command = [sys.executable, "-m", "bench.runs", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def answered(url: str, verb: str) -> dict[str, float]:
    """One verb over all runs: how many, the seconds that took, and the peak memory of this process."""
    import pyarrow as pa

    from iolens.api import OpenStore
    from iolens.api.run_analyses import run_analysis

    pa.array([0])  # where pandas is installed, as for tests, pyarrow imports it now: an installation has none
    with OpenStore(url) as opened:
        began, cpu = time.perf_counter(), time.process_time()
        result = run_analysis(opened, verb)
        seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"runs": result.runs, "seconds": seconds, "cpu_s": cpu_s, "peak_mib": peak_mib}


def make_rows(url: str, runs: int) -> None:
    """Two months of runs, each in a job of its own; some days with each append."""
    import pyarrow as pa

    from iolens.store.store import Store

    store = Store(url)
    for first in range(0, DAYS, DAYS_PER_BATCH):
        days = range(first, min(first + DAYS_PER_BATCH, DAYS))
        parts = [rows_of_day(day, runs // DAYS) for day in days]
        for place, table in enumerate(("runs", "jobs")):
            store.append(table, pa.concat_tables([part[place] for part in parts]), f"bench/{table}/{first}")


def rows_of_day(day: int, count: int) -> tuple[pa.Table, pa.Table]:
    """Runs that start on a day, and their jobs."""
    import hashlib

    import numpy as np
    import pyarrow as pa

    from iolens.run_tables import ACCESS_BINS, INTERFACES, PATTERNS, access_column

    random = np.random.default_rng(day)
    start_s = int((FIRST_DAY + timedelta(days=day)).timestamp()) + np.sort(random.integers(0, 86_400, count))
    duration_s = np.minimum(random.lognormal(6, 1.5, count), 43_200).astype(np.int64) + 1
    users = random.integers(0, 400, count)
    processes = 2 ** random.integers(0, 15, count)
    moved = {f"{name}_bytes": random.lognormal(22, 3, count).astype(np.int64) for name in ("read", "write")}
    repeats = random.random(count) < 0.5  # half of the runs are like others of their user
    moved = {name: np.where(repeats, 10**9 + users, values) for name, values in moved.items()}
    seconds = {f"{name}_s": random.lognormal(3, 2, count) for name in ("read", "write", "metadata", "slowest_rank")}
    counts = ["files", "opens", "reads", "writes", "stats", "seeks", "posix_reads", "posix_writes", "sequential_reads",
              "sequential_writes", "misaligned_ops", "written_files", "new_files",
              *(access_column(name, size) for name in ("read", "write") for size in (*ACCESS_BINS, None)),
              *(f"{name}_{what}" for name in (*INTERFACES, *PATTERNS)
                for what in ("files", "read_bytes", "write_bytes"))]  # fmt: skip
    ids = np.char.mod("%d", 10_000_000 + day * count + np.arange(count))
    times = {name: pa.array(value * 1_000_000).cast(pa.timestamp("us", "UTC"))
             for name, value in (("time", start_s + duration_s), ("start", start_s))}  # fmt: skip
    common = {
        **times, "job_id": pa.array(ids), "duration_s": duration_s.astype(np.float64),
        "user": pa.array(np.char.mod("user%04d", users)), "source": pa.repeat("bench", count),
    }  # fmt: skip
    runs = pa.table({
        **common, "run_id": pa.array([hashlib.sha256(name.encode()).hexdigest() for name in ids]),
        "filesystem": pa.repeat("scratch", count), "executable": pa.array(np.char.mod("app%02d.x", users % 40)),
        "processes": processes, **moved, **seconds,
        **{name: np.where(repeats, users % 9, random.integers(0, 1000, count)) for name in counts},
    })  # fmt: skip
    jobs = pa.table({
        **common, "cluster": pa.repeat("frost", count), "project": pa.array(np.char.mod("m%04d", users // 7)),
        "name": pa.array(np.char.mod("run-%d.sh", random.integers(0, 20_000, count))),
        "nodes": np.maximum(processes // 64, 1), "cores": processes, "ended": pa.repeat(pa.scalar(True), count),
    })  # fmt: skip
    return runs, jobs


if __name__ == "__main__":
    main()
