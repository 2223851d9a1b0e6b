"""What estimates of calibrations cost: `python -m bench.estimate_cost`.

Of 30 days × 48 targets × 5 s: made for the first time, asked again, and after one more day. And at ingest: a day of
`lctl` text of 24 OSTs, and the estimate that follows by itself, as a share of the loading.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.telemetry import write_days
from tests.cli.captures import snapshot

import iolens
from iolens.api.calibration_estimate import estimate_by_itself, estimated_calibrations
from iolens.api.ingest import ingest_places
from iolens.sources import ReadOptions
from iolens.store.scope import Scope

SCOPE = Scope("scratch")
OSTS, EVERY_S, DAYS = 24, 60, 1
IN_FLIGHT = "disk I/Os in flight    ios   % cum % |  ios         % cum %\n"
SIZES = tuple(4096 << power for power in range(9))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--targets", type=int, default=48)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
        at_ingest(Path(folder))
        asked(f"{folder}/store", options.days, options.targets)


def at_ingest(folder: Path) -> None:
    """Loading, and what follows."""
    captures = folder / "captures"
    captures.mkdir()
    for number in range(DAYS * 86_400 // EVERY_S + 1):
        counts = {(side, size): number * (size >> 10) for side in ("read", "write") for size in SIZES}
        names = (f"scratch-OST{place:04x}" for place in range(OSTS))
        text = "".join(snapshot(number * EVERY_S, counts, target=name) + in_flight(number) for name in names)
        (captures / f"{number:04}.txt").write_text(text)
    opened = iolens.open(f"{folder}/loaded")
    loading_s = seconds(lambda: ingest_places(opened.store, opened.config, [str(captures)], ReadOptions()))
    estimate_s = seconds(lambda: list(estimate_by_itself(opened, {})))
    print(
        f"{DAYS} day of lctl text, {OSTS} OSTs, every {EVERY_S} s: loaded in {loading_s:.1f} s,"
        f" estimate {estimate_s:.2f} s: {100 * estimate_s / loading_s:.1f} %"
    )


def in_flight(number: int) -> str:
    """One more section of `brw_stats`, of the seven that servers print."""
    rows = "".join(f"{depth}:\t\t{number * 100:>9}   0   0   | {number * 100:>6}   0   0\n" for depth in range(1, 32))
    return f"\n                           read      |     write\n{IN_FLIGHT}{rows}"


def asked(url: str, days: int, targets: int) -> None:
    """First, again, and with one day more."""
    write_days(url, 0, days, targets)
    opened = iolens.open(url)
    first_s = seconds(lambda: estimated_calibrations(opened, SCOPE))
    again_s = seconds(lambda: estimated_calibrations(opened, SCOPE))
    write_days(url, days, 1, targets)
    later_s = seconds(lambda: estimated_calibrations(opened, SCOPE))
    print(
        f"{days} days × {targets} targets × 5 s: first {first_s:.2f} s, again {again_s:.3f} s, with one more day"
        f" {later_s:.2f} s"
    )


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
