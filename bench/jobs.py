"""`make bench`: the jobs of a year by window, as `Store.jobs` answers, each question in a process of its own.

Five million jobs are made first; `--store DIRECTORY` keeps them for the next time. Beside the seconds that pass stand
those of the processor, which other programs on the machine do not change, and the peak memory of the process.
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
DAYS, DAYS_PER_BATCH = 365, 7
JOBS = 5_000_000
WINDOWS = (1, 7)  # days
MIDDLE = 180  # the windows begin on this day
MOST_SECONDS, MOST_MIB = 1.0, 500.0


def main() -> None:
    """Make the jobs, ask for windows of them, print what that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--store", help="keep the jobs here and use them again")
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--days", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make_jobs(options.store, options.jobs)
    elif options.days:
        print(json.dumps(answered(options.store, options.days)))
    else:
        with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
            report(options.store or f"{folder}/store", options.jobs)


def report(store: str, jobs: int) -> None:
    """Seconds, memory and jobs of each window, and how that compares with what it may take."""
    if not Path(store).exists():
        began = time.perf_counter()
        started("--store", store, "--make", "--jobs", str(jobs))
        files = list(Path(store, "jobs").rglob("*.parquet"))
        size_mb = sum(file.stat().st_size for file in files) / 1e6
        print(f"made {jobs:,} jobs in {time.perf_counter() - began:.0f} s: {size_mb:,.0f} MB in {len(files)} files")
    print(f"{'days':>5} {'jobs':>9} {'seconds':>8} {'processor s':>12} {'peak MiB':>9}  of what it may take")
    for days in WINDOWS:
        answer = json.loads(started("--store", store, "--days", str(days)))
        figures = f"{answer['jobs']:>9,} {answer['seconds']:>8.2f} {answer['cpu_s']:>12.2f} {answer['peak_mib']:>9.0f}"
        shares = f"{answer['seconds'] / MOST_SECONDS:.2f} of {MOST_SECONDS:g} s"
        print(f"{days:>5} {figures}  {shares}, {answer['peak_mib'] / MOST_MIB:.2f} of {MOST_MIB:g} MiB")


def started(*arguments: str) -> str:
    """What this module prints with other arguments, in a process whose memory is its own."""
    command = [sys.executable, "-m", "bench.jobs", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def answered(url: str, days: int) -> dict[str, float]:
    """Jobs of a window: their number, the seconds that took, and the peak memory of this process."""
    import pyarrow as pa

    from iolens.store.store import Store

    pa.array([0])  # where pandas is installed, as for tests, pyarrow imports it now: an installation has none
    since = FIRST_DAY + timedelta(days=MIDDLE)
    began, cpu = time.perf_counter(), time.process_time()
    rows = Store(url).jobs(since, since + timedelta(days=days))
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"jobs": len(rows), "seconds": seconds, "cpu_s": cpu_s, "peak_mib": peak_mib}


def make_jobs(url: str, jobs: int) -> None:
    """A year of jobs, a week with each append."""
    import pyarrow as pa

    from iolens.store.store import Store

    store = Store(url)
    for first in range(0, DAYS, DAYS_PER_BATCH):
        days = range(first, min(first + DAYS_PER_BATCH, DAYS))
        rows = pa.concat_tables([jobs_of_day(day, jobs // DAYS) for day in days])
        store.append("jobs", rows, f"bench/jobs/{first}")


def jobs_of_day(day: int, count: int) -> pa.Table:
    """Jobs that start on a day, with users, names and node lists of usual length; most last minutes, some two days."""
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(day)
    start_s = int((FIRST_DAY + timedelta(days=day)).timestamp()) + np.sort(random.integers(0, 86_400, count))
    duration_s = np.minimum(random.lognormal(7, 2, count), 172_800).astype(np.int64)
    times_s = {"time": start_s + duration_s, "start": start_s, "submit": start_s - random.integers(1, 90_000, count)}
    nodes, users = 1 + random.geometric(0.2, count), random.integers(0, 900, count)
    states = np.array(["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED"])
    hosts = zip(random.integers(0, 9_000, count).tolist(), nodes.tolist(), strict=True)
    columns = {
        **{name: pa.array(seconds * 1_000_000).cast(pa.timestamp("us", "UTC")) for name, seconds in times_s.items()},
        "source": pa.repeat("slurm", count),
        "cluster": pa.repeat("frost", count),
        "job_id": pa.array(np.char.mod("%d", 10_000_000 + day * count + np.arange(count))),
        "duration_s": duration_s.astype(np.float64),
        "user": pa.array(np.char.mod("user%04d", users)),
        "project": pa.array(np.char.mod("m%04d", users // 7)),
        "name": pa.array(np.char.mod("run-%d.sh", random.integers(0, 20_000, count))),
        "state": pa.array(states[random.integers(0, len(states), count)]),
        "nodes": nodes,
        "cores": nodes * 128,
        "node_list": pa.array([f"nid[{first:06}-{first + more:06}]" for first, more in hosts]),
        "ended": pa.repeat(pa.scalar(True), count),
    }
    return pa.table(columns)


if __name__ == "__main__":
    main()
