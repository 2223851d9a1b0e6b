"""`workload` and `imbalance` against bare decode and against the pandas script a person would write, in one run.

`python -m bench.workload --days 30` makes 62 million samples of 48 controllers every 2 s; the default is shorter. Each
contestant runs in a process of its own, so that its peak memory is its own. Then tails are fitted by iolens and by the
`powerlaw` package.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TICKS_PER_DAY = 43_200
REPEATS = {"decode": 3, "workload": 2, "both": 2, "again": 3, "day": 2, "pandas": 1}  # the best of which counts
FITTED = ((10_000, True), (30_000, True), (100_000, False), (1_000_000, False))  # samples, and whether powerlaw can


def main() -> None:
    """Make the telemetry, measure, print ratios."""
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
        store = options.store or f"{folder}/store"
        if not Path(store).exists():
            make_store(store, options.days, options.targets)
        report(store, options.days * TICKS_PER_DAY * options.targets, options.no_pandas)
    report_fits()


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=2)
    parser.add_argument("--targets", type=int, default=48)
    parser.add_argument("--store", help="keep the telemetry here and use it again")
    parser.add_argument("--no-pandas", action="store_true", help="leave out the pandas script, which needs the memory")
    return parser.parse_args()


def make_store(url: str, days: int, targets: int) -> None:
    """Telemetry by the shipped model of Spider."""
    began = time.perf_counter()
    program = str(Path(sys.executable).parent / "iolens")
    wanted = ["--workload", "spider", "--days", str(days), "--osts", str(targets), "--store", url]
    subprocess.run([program, "simulate", "telemetry", *wanted], check=True, capture_output=True)
    rows = days * TICKS_PER_DAY * targets
    size = sum(file.stat().st_size for file in Path(url).rglob("*.parquet")) / 1e6
    took = time.perf_counter() - began
    print(f"made {days} days × {targets} controllers × 2 s: {rows:,} rows, {rows / took:,.0f} a second, {size:,.0f} MB")


def report(store: str, rows: int, no_pandas: bool) -> None:
    """Seconds, memory and ratios."""
    names = [name for name in REPEATS if not (no_pandas and name == "pandas")]
    print(f"\n{'contestant':12} {'seconds':>9} {'rows/s':>14} {'peak MiB':>9}")
    result = {}
    for name in names:
        command = [sys.executable, "-m", "bench.workload_contestants", name, store, str(REPEATS[name])]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        result[name] = answer["seconds"], answer["peak_mib"]
        print(f"{name:12} {result[name][0]:>9.2f} {rows / result[name][0]:>14,.0f} {result[name][1]:>9.0f}")
    ours = result["both"]
    print(f"\nworkload + imbalance: {result['decode'][0] / ours[0]:.2f} of decode speed, {ours[1]:,.0f} MiB at most")
    again, day = result["again"][0], result["day"][0]
    print(f"asked again: {again / ours[0]:.1%} of the first time; with one day more: {day - again:.2f} s beside that")
    if "pandas" in result:
        theirs = result["pandas"]
        print(f"{theirs[0] / ours[0]:.1f}× faster than pandas in 1/{theirs[1] / ours[1]:.1f} of its memory")


def report_fits() -> None:
    """Seconds per fit of the same Pareto sample: ours is both fits, four rivals and the verdict."""
    from iolens.models.heavy_tail import heavy_tail
    from iolens.models.tails import TailSample

    print(f"\n{'samples':>9} {'iolens s':>9} {'powerlaw s':>11} {'alpha':>7} {'powerlaw':>9}")
    heavy_tail(TailSample.of_values(np.arange(1.0, 100.0)), "")  # the imports are not what is measured
    for size, also in FITTED:
        values = (1.0 - np.random.default_rng(1).random(size)) ** (-1.0 / 1.24)
        began = time.perf_counter()
        mle = heavy_tail(TailSample.of_values(values), "").mle
        took = time.perf_counter() - began
        theirs = powerlaw_fit(values) if also else None
        alpha = f"{mle.alpha:.3f}" if mle else ""
        beside = f"{theirs[0]:>11.2f} {alpha:>7} {theirs[1]:>9.3f}" if theirs else f"{'':>11} {alpha:>7}"
        print(f"{size:>9,} {took:>9.3f} {beside}")


def powerlaw_fit(values: np.ndarray) -> tuple[float, float] | None:  # type: ignore[type-arg]
    """Seconds and α (of the survival function) by the powerlaw package; None where it is not installed."""
    try:
        import powerlaw
    except ImportError:
        return None
    began = time.perf_counter()
    fit = powerlaw.Fit(values, verbose=False)
    for rival in ("lognormal", "exponential", "stretched_exponential", "truncated_power_law"):
        fit.distribution_compare("power_law", rival)
    return time.perf_counter() - began, float(fit.power_law.alpha) - 1.0


if __name__ == "__main__":
    main()
