"""Building a report: as it is by default, with `--full`, and by an earlier version in the same run.

`python -m bench.report`: 24 OSTs, 1, 4 and 14 days of one simulated file system. `--osts 500 --days 30 --tick 60` is a
large one. `--before PYTHON` is the interpreter of an environment with an earlier version. Nothing is remembered from
one report to the next. MiB are those of all processes of a report together.
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
    parser.add_argument("--before", metavar="PYTHON", help="also measure the version that this interpreter has")
    options = parser.parse_args()
    kinds = [*(["before"] if options.before else []), "full", "default"]
    print(f"{'days':>5} {'rows':>12} {'report':>8} {'seconds':>8} {'processor s':>12} {'peak MiB':>9} {'MB':>6}")
    for days in options.days:
        with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
            store = f"{folder}/store"
            rows = simulated(store, days, options.osts, options.tick)
            took = {kind: report(store, kind, options.before if kind == "before" else sys.executable) for kind in kinds}
            for kind, (seconds, processor_s, peak_mib, size) in took.items():
                print(
                    f"{days:>5} {rows:>12,} {kind:>8} {seconds:>8.1f} {processor_s:>12.1f} {peak_mib:>9.0f}"
                    f" {size / 1e6:>6.2f}",
                    flush=True,
                )
            for kind in kinds[:-1]:
                elapsed, processor = (took["default"][place] / took[kind][place] for place in (0, 1))
                print(f"      default ÷ {kind}: {elapsed:.2f} of the time, {processor:.2f} of the processor time")


def simulated(store: str, days: int, osts: int, tick_s: int | None) -> int:
    """A store of one file system, and its rows."""
    workload = load_workload("scratch")
    if tick_s is not None:
        workload = replace(workload, tick_s=tick_s)
    order = order_of(store, workload, start=parse_time("2026-01-05"), days=days, osts=osts, with_jobs=False)
    return sum(simulate_telemetry(order).rows.values())


def report(store: str, kind: str, python: str) -> tuple[float, float, float, int]:
    """Seconds, those of processors, MiB and bytes of the page."""
    page = Path(store).parent / f"{kind}.html"
    command = [python, "-m", "iolens.cli.main", "report", "--store", store, "--fresh", "--output", str(page)]
    seconds, processor_s, peak_mib = watched([*command, *(["--full"] if kind == "full" else [])])
    return seconds, processor_s, peak_mib, page.stat().st_size


if __name__ == "__main__":
    main()
