"""Report generation against store size: seconds and megabytes for a few lengths of one simulated file system."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from iolens.simulator.telemetry import order_of, simulate_telemetry
from iolens.simulator.workload import load_workload
from iolens.units import parse_time

DAYS = (1, 4, 16)
OSTS = 24


def main() -> None:
    """Simulate, report, print."""
    print(f"{'days':>5} {'rows':>12} {'store MB':>9} {'seconds':>8} {'report MB':>10}")
    for days in DAYS:
        with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
            store, page = f"{folder}/store", Path(folder) / "report.html"
            order = order_of(
                store, load_workload("scratch"), start=parse_time("2026-01-05"), days=days, osts=OSTS, with_jobs=False
            )
            rows = sum(simulate_telemetry(order).rows.values())
            began = time.perf_counter()
            command = [sys.executable, "-m", "iolens.cli.main", "report", "--store", store, "--output", str(page)]
            subprocess.run(command, check=True, capture_output=True)
            seconds = time.perf_counter() - began
            size = sum(file.stat().st_size for file in Path(store).rglob("*.parquet")) / 1e6
            print(f"{days:>5} {rows:>12,} {size:>9.1f} {seconds:>8.1f} {page.stat().st_size / 1e6:>10.2f}", flush=True)


if __name__ == "__main__":
    main()
