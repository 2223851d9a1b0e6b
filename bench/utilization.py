"""`make bench`: utilization against bare decode and against the pandas script a person would write.

Ratios measured in one run, because machines are noisy. Each measurement runs in a process of its own, so that its
peak memory is its own: `make bench BENCH='--days 2,8 --targets 156'`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from bench.telemetry import FIRST_DAY

REPEATS = 3


def main() -> None:
    """Make the telemetry, measure, print ratios."""
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
        store = options.store or f"{folder}/store"
        if not Path(store).exists():
            make_store(store, max(options.days), options.targets)
        report(store, options.days, options.targets, options.no_pandas)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=lambda text: [int(word) for word in text.split(",")], default=[2, 4, 8])
    parser.add_argument("--targets", type=int, default=156)
    parser.add_argument("--store", help="keep the telemetry here and use it again")
    parser.add_argument("--no-pandas", action="store_true", help="leave out the pandas script, which needs the memory")
    return parser.parse_args()


def make_store(url: str, days: int, targets: int) -> None:
    """Two writers at once: an append is safe with many."""
    began = time.perf_counter()
    half = (days + 1) // 2
    parts = [(0, half), (half, days - half)]
    writers = [
        subprocess.Popen([sys.executable, "-m", "bench.telemetry", url, str(first), str(count), str(targets)])
        for first, count in parts
        if count
    ]
    if any(writer.wait() for writer in writers):
        sys.exit("the telemetry could not be written")
    rows = 2 * days * 17280 * targets
    print(
        f"made {days} days × {targets} targets × 5 s: {rows / (time.perf_counter() - began):,.0f} rows/s, {size(url)}"
    )


def size(url: str) -> str:
    """Bytes on disk."""
    files = list(Path(url).rglob("*.parquet"))
    return f"{sum(file.stat().st_size for file in files) / 1e6:,.0f} MB in {len(files)} files"


def measure(what: str, store: str, days: int) -> tuple[float, float, float]:
    """Seconds (best of a few), peak MiB and processor seconds of one contestant in its own process."""
    until = (FIRST_DAY + timedelta(days=days)).isoformat()
    command = [sys.executable, "-m", "bench.contestants", what, store, until, str(REPEATS)]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer["seconds"], answer["peak_mib"], answer["processor_s"]


def report(store: str, days: list[int], targets: int, no_pandas: bool) -> None:
    """Tables of seconds, memory and ratios."""
    contestants = ["decode", "file-system", "whole", "again"] + ([] if no_pandas else ["pandas"])
    print(f"\n{'days':>5} {'contestant':12} {'seconds':>9} {'processor s':>12} {'rows/s':>14} {'peak MiB':>9}")
    pairs: dict[tuple[int, str], tuple[float, float, float]] = {}
    for count in days:
        for name in contestants:
            pairs[count, name] = measure(name, store, count)
            seconds, peak, processor_s = pairs[count, name]
            rows_per_s = count * 17280 * targets / seconds
            print(f"{count:>5} {name:12} {seconds:>9.2f} {processor_s:>12.2f} {rows_per_s:>14,.0f} {peak:>9.0f}")
    print("\nratios")
    for count in days:
        line = [
            f"{pairs[count, 'decode'][0] / pairs[count, name][0]:.2f} of decode speed ({name})"
            for name in contestants[1:3]
        ]
        if not no_pandas:
            ours, theirs = pairs[count, "whole"], pairs[count, "pandas"]
            line.append(f"{theirs[0] / ours[0]:.1f}× faster than pandas in 1/{theirs[1] / ours[1]:.1f} of its memory")
        print(f"{count:>5} days: " + "; ".join(line))
    first, last = days[0], days[-1]
    if last > first:
        grown = pairs[last, "whole"][1] / pairs[first, "whole"][1]
        per_day = [pairs[count, "whole"][0] / count for count in (first, last)]
        print(f"{first} → {last} days: memory × {grown:.2f}; seconds per day {per_day[0]:.3f} → {per_day[1]:.3f}")
    print_start_up()


def print_start_up() -> None:
    """`iolens --help` against a bare interpreter."""
    bare = fastest([sys.executable, "-c", "pass"])
    ours = fastest([str(Path(sys.executable).parent / "iolens"), "--help"])
    print(f"iolens --help: {ours * 1000:.0f} ms, {ours / bare:.1f}× python -c pass ({bare * 1000:.0f} ms)")


def fastest(command: list[str], runs: int = 15) -> float:
    """Best of several runs of a short command."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
