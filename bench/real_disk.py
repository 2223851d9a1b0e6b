"""Calibration from telemetry on a real disk: `python -m bench.real_disk`, as root, some seven minutes.

The agent samples a loop device that fio loads with known sizes: at depth 1 with pauses, then with deep queues, then by
`calibrate run`. Printed are FSU by the busy time's coefficients against the kernel's %util, and the limit by
`calibrate estimate` against the fit of `calibrate run`. Each ratio is of one run; all of it is done `--times` times.
Other work on this machine and on the host of a virtual disk shows in them: figures to look at, and no test.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from bench.loop_disk import FILESYSTEM, LoopDisk, loop_disk, run_iolens, sampled, why_no_loop_disk

import iolens
from iolens.analyses.calibration_estimate.estimate import calibration_estimate
from iolens.analyses.calibration_estimate.results import CalibrationEstimate, EvidenceEstimate
from iolens.api.open_store import OpenStore
from iolens.benchmarks.programs import may_raise_priority
from iolens.models.transaction_time import Coefficients
from iolens.schema import DIRECTIONS
from iolens.units import KIB, MIB, format_bytes

SIZE = 512 * MIB
SIZES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB)
LEARNED = SIZES[:-1]  # at depth 1, with pauses
SATURATING = (4 * KIB, 64 * KIB, MIB)
ROUNDS = 3  # of pauses, deep queues and sweep, so that a slow minute of the host is in all of them
LEARN_TICKS = 2.5
CHECKED = (("read", "8k"), ("write", "128k"), ("rw", "4k/25:16k/25:64k/25:256k/25"), ("rw", "32k"))
CHECK_TICKS = 4
FULL_TICKS = 4  # of each size and round
BUSY_TIME = "busy-time"


class Check(NamedTuple):
    """One load at depth 1 over whole ticks, and the kernel's %util of the time."""

    name: str
    begin: float  # seconds since the epoch
    end: float
    util_pct: float


@dataclass(frozen=True)
class Telemetry:
    """What one repetition left: the store, when the check began, its loads, and files of sweeps."""

    store: Path
    check_from: float
    checks: list[Check]
    sweeps: list[Path]


def main() -> None:
    """Print the figures of each repetition."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--place", type=Path, default=Path("/var/tmp"), help="a folder on the disk")
    parser.add_argument("--queue-depth", type=int, default=16, help="of saturating runs and of the sweep")
    parser.add_argument("--tick", type=float, default=1.0, help="seconds; `calibrate estimate` itself takes ten")
    parser.add_argument("--times", type=int, default=2)
    options = parser.parse_args()
    if (why := why_no_loop_disk(options.place)) is not None:
        parser.error(f"nothing is measured: {why}")
    try:
        for number in range(1, options.times + 1):
            print(f"repetition {number} of {options.times}", flush=True)
            repetition(options.place, options.queue_depth, options.tick)
    except KeyboardInterrupt:
        sys.exit("interrupted; the device and its file are removed")


def repetition(place: Path, queue_depth: int, tick_s: float) -> None:
    """Load, sample, estimate, print."""
    with loop_disk(place, SIZE, may_raise_priority()) as disk:
        telemetry = measured(disk, queue_depth, tick_s)
        fit = calibration_fit(telemetry.sweeps)
        with iolens.open(str(telemetry.store)) as store:
            estimate = estimated(store, telemetry.check_from, tick_s)
            print_busy_time(store, estimate, telemetry.checks)
            print_frontier(estimate, fit)


def measured(disk: LoopDisk, queue_depth: int, tick_s: float) -> Telemetry:
    """All loads, under the eyes of the agent."""
    bursts = {(side, size): disk.burst(side, str(size)) for side in DIRECTIONS for size in LEARNED}
    checked = [(side, sizes, disk.burst(side, sizes)) for side, sizes in CHECKED]
    sweeps = []
    with sampled(disk, tick_s) as store:
        for number in range(ROUNDS):
            for (side, size), burst in bursts.items():
                disk.load(side, str(size), 1, LEARN_TICKS * tick_s, burst)
            for side in DIRECTIONS:
                for size in SATURATING:
                    disk.load(side, str(size), queue_depth, (FULL_TICKS + 1) * tick_s)
            sweeps.append(sweep(disk, queue_depth, number))
        check_from = time.time() // tick_s * tick_s + tick_s
        checks = [check(disk, *load, tick_s) for load in checked]
    return Telemetry(store, check_from, checks, sweeps)


def sweep(disk: LoopDisk, queue_depth: int, number: int) -> Path:
    """`calibrate run`, each size once."""
    file = disk.folder / f"sweep-{number}.json"
    realtime = ["--realtime"] if disk.realtime else []
    sizes = ",".join(map(str, SIZES))
    options = ("--size", disk.size_bytes, "--sizes", sizes, "--repeats", 1, "--runtime", "700ms", *realtime)
    run_iolens(
        "calibrate", "run", disk.device, "--destroy-data", "--no-asymptote", *options, "--queue-depth", queue_depth,
        "-o", file,
    )  # fmt: skip
    return file


def calibration_fit(sweeps: Sequence[Path]) -> dict[str, Any]:
    """`calibrate fit` of all rounds, by the sizes at the disk."""
    fit: dict[str, Any] = json.loads(run_iolens("calibrate", "fit", *sweeps, "--format", "json"))
    return fit


def check(disk: LoopDisk, side: str, sizes: str, burst: int, tick_s: float) -> Check:
    """One load, and what the kernel says of the whole ticks within it."""
    load = Thread(target=disk.load, args=(side, sizes, 1, (CHECK_TICKS + 2) * tick_s, burst))
    load.start()
    begin = (time.time() + 0.7) // tick_s * tick_s + tick_s
    try:
        readings = [busy_at(disk, begin), busy_at(disk, begin + CHECK_TICKS * tick_s)]
    finally:
        load.join()
    (first_s, first_us), (last_s, last_us) = readings
    name = f"{side} {'of 4 to 256 KiB' if ':' in sizes else sizes}"
    return Check(name, begin, begin + CHECK_TICKS * tick_s, 1e-4 * (last_us - first_us) / (last_s - first_s))


def busy_at(disk: LoopDisk, at: float) -> tuple[float, int]:
    """The kernel's io_ticks at that time, and when it was really read."""
    time.sleep(max(at - time.time(), 0))
    busy_us = disk.counters.read().busy_us
    assert busy_us is not None
    return time.time(), busy_us


def estimated(store: OpenStore, until: float, tick_s: float) -> CalibrationEstimate:
    """As `calibrate estimate`, of what came before the check."""
    end = datetime.fromtimestamp(until, UTC)
    return store.ask(lambda rows: calibration_estimate(rows, shortest_tick_s=tick_s), FILESYSTEM, until=end)


def evidence(estimate: CalibrationEstimate, kind: str) -> Iterator[tuple[str, EvidenceEstimate, Coefficients]]:
    """Estimates of one kind by direction, with what they say an I/O costs."""
    for item in estimate.estimates:
        if item.evidence == kind and item.latency_s is not None and item.s_per_byte is not None:
            yield item.direction, item, Coefficients(item.latency_s, item.s_per_byte)


def print_busy_time(store: OpenStore, estimate: CalibrationEstimate, checks: Sequence[Check]) -> None:
    """FSU of loads that the estimate has not seen."""
    costs = {}
    for side, item, cost in evidence(estimate, "busy_time"):
        costs[f"{side}_latency_s"], costs[f"{side}_s_per_byte"] = cost.latency_s, cost.s_per_byte
        print(f"busy time, {side}s: {described(cost)}, {item.ticks} ticks; {item.note}")
    store.store.add_calibration({"name": BUSY_TIME, "time": time.time_ns() // 1000, "source": "bench", **costs})
    for load in checks:
        begin, end = (datetime.fromtimestamp(at, UTC) for at in (load.begin, load.end))
        result = store.utilization(FILESYSTEM, since=begin, until=end, model="counters", calibration=BUSY_TIME)
        fsu_pct = result.mean_fsu_bytes_pct
        print(
            f"  {load.name:22} FSU {fsu_pct:5.1f} %, the kernel's %util {load.util_pct:5.1f} %:"
            f" ratio {fsu_pct / load.util_pct:.3f} ({result.samples} ticks)"
        )


def print_frontier(estimate: CalibrationEstimate, fit: dict[str, Any]) -> None:
    """The limit, and the sweep's fit on the sizes at the disk."""
    for side, item, cost in evidence(estimate, "frontier"):
        by_sweep = fit["observed"][side]
        swept = Coefficients(by_sweep["latency_s"], by_sweep["s_per_byte"])
        known = " and ".join(item.identified) or "nothing"
        print(f"frontier, {side}s: {described(cost)}, {item.ticks} ticks, identified: {known}; {item.note}")
        print(f"  calibrate run:  {described(swept)}, R² {by_sweep['r2']:.3f}")
        ratios = [cost.seconds(size) / swept.seconds(size) for size in SIZES]
        words = ", ".join(f"{format_bytes(size)} {ratio:.3f}" for size, ratio in zip(SIZES, ratios, strict=True))
        print(f"  frontier ÷ fit: {words}; median {statistics.median(ratios):.3f}", flush=True)


def described(cost: Coefficients) -> str:
    """`112 µs + 0.431 ns a byte`."""
    return f"{cost.latency_s * 1e6:.1f} µs + {cost.s_per_byte * 1e9:.3f} ns a byte"


if __name__ == "__main__":
    main()
