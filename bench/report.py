"""Building a report: as it is by default, and with `--full`, which has all that reports had before they were short.

`python -m bench.report`: 24 OSTs, 1, 4 and 14 days of one simulated file system. `--osts 500 --days 30 --tick 60` is a
large one. Nothing is remembered from one report to the next. MiB are those of all its processes together.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from bench.long_window import watched

from iolens.simulator.telemetry import order_of, simulate_telemetry
from iolens.simulator.workload import load_workload
from iolens.units import parse_time

DAYS = (1, 4, 14)


def main() -> None:
    """Simulate, report, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--osts", type=int, default=24)
    parser.add_argument("--days", type=lambda text: [int(word) for word in text.split(",")], default=DAYS)
    parser.add_argument("--tick", type=int, help="seconds between samples [5]")
    options = parser.parse_args()
    print(f"{'days':>5} {'rows':>12} {'report':>8} {'seconds':>8} {'processor s':>12} {'peak MiB':>9} {'MB':>6}")
    for days in options.days:
        with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
            store = f"{folder}/store"
            rows = simulated(store, days, options.osts, options.tick)
            took = {kind: report(store, kind) for kind in ("full", "default")}
            for kind, (seconds, processor_s, peak_mib, size) in took.items():
                print(
                    f"{days:>5} {rows:>12,} {kind:>8} {seconds:>8.1f} {processor_s:>12.1f} {peak_mib:>9.0f}"
                    f" {size / 1e6:>6.2f}",
                    flush=True,
                )
            print(f"      default ÷ full: {took['default'][1] / took['full'][1]:.2f} of the processor time")


def simulated(store: str, days: int, osts: int, tick_s: int | None) -> int:
    """A store of one file system, and its rows."""
    workload = load_workload("scratch")
    if tick_s is not None:
        workload = replace(workload, tick_s=tick_s)
    order = order_of(store, workload, start=parse_time("2026-01-05"), days=days, osts=osts, with_jobs=False)
    return sum(simulate_telemetry(order).rows.values())


def report(store: str, kind: str) -> tuple[float, float, float, int]:
    """Seconds, those of processors, MiB and bytes of the page."""
    page = Path(store).parent / f"{kind}.html"
    command = [sys.executable, "-m", "iolens.cli.main", "report", "--store", store, "--fresh", "--output", str(page)]
    seconds, processor_s, peak_mib = watched([*command, *(["--full"] if kind == "full" else [])])
    return seconds, processor_s, peak_mib, page.stat().st_size


if __name__ == "__main__":
    main()
