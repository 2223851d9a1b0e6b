"""`explain` on a store of many days: `python -m bench.explain --days 16 --targets 32 --jobs 10`.

Every job is active on every target in every minute. A like run of two hours is in every day: the history is as long as
the store, and memory must not grow with it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.blame import FIRST_US, JOB_HOURS, make_store

RUN_S = 7200


def main() -> None:
    """Make a store, and ask in a process of its own, so that its peak memory is its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=16)
    parser.add_argument("--targets", type=int, default=32)
    parser.add_argument("--jobs", type=int, default=10, help="active at a time")
    parser.add_argument("--store", help="keep the rows here and use them again")
    parser.add_argument("--ask", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        print(json.dumps(measured(options.store)))
        return
    with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
        store = options.store or f"{folder}/store"
        if not Path(store).exists():
            make_store(store, options.days, options.targets, options.jobs)
            add_runs(store, options.days, options.jobs)
        command = [sys.executable, "-m", "bench.explain", "--ask", "--store", store]
        result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(f"{result['runs']} like runs, verdict {result['verdict']}: {result['seconds']:.2f} s,"
              f" {result['processor_s']:.2f} s of processors, {result['peak_mib']:.0f} MiB")  # fmt: skip


def add_runs(url: str, days: int, jobs: int) -> None:
    """A run each day, of the first job of its hours."""
    from iolens.run_tables import RUNS
    from iolens.store.rows import to_arrow
    from iolens.store.store import Store

    rows = []
    for day in range(days):
        start = FIRST_US + (day * 24 + 7) * 3_600_000_000
        shift = (day * 24 + 7) // JOB_HOURS
        rows.append({
            "time": start + RUN_S * 1_000_000, "start": start, "date": start // 86_400_000_000,
            "duration_s": float(RUN_S), "source": "bench", "filesystem": "scratch",
            "run_id": f"{day:064x}", "job_id": str(shift * jobs),
            "user": "ada", "executable": "app", "processes": 64, "files": 8, "read_bytes": 1 << 40, "write_bytes": 0,
            "slowest_rank_s": 1000.0 + day % 7, "partial": False,
        })  # fmt: skip
    Store(url).append("runs", to_arrow(RUNS, rows))


def measured(store: str) -> dict[str, float | str]:
    """Explain the run of the first day."""
    import resource

    import iolens

    began, busy = time.perf_counter(), time.process_time()
    with iolens.open(store) as opened:
        result = opened.explain(f"{0:064x}")
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "verdict": result.verdict, "runs": result.history.runs, "seconds": time.perf_counter() - began,
        "processor_s": time.process_time() - busy, "peak_mib": peak_kib / 1024,
    }  # fmt: skip


if __name__ == "__main__":
    main()
