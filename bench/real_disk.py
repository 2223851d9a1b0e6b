"""Calibration from telemetry on a real disk: `python -m bench.real_disk`, as root, some eight minutes.

The agent samples a loop device that fio loads with known sizes: at depth 1 with pauses, then with deep queues, then by
`calibrate run`. Printed are FSU by the busy time of every second sample against the kernel's %util of those between,
and the limit by `calibrate estimate` against the fit of `calibrate run`. Each ratio is of one run; all of it is done
`--times` times. Other work on this machine and on the host of a virtual disk shows in them: figures to look at, and no
test.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from bench.loop_disk import (
    FILESYSTEM,
    LoadedDisk,
    file_disk,
    loop_disk,
    run_iolens,
    sampled,
    why_no_file_disk,
    why_no_loop_disk,
)

import iolens
from iolens.analyses.calibration_estimate.analysis import CalibrationEstimate, EvidenceEstimate, calibration_estimate
from iolens.arrays import Booleans, Floats
from iolens.benchmarks.programs import may_raise_priority
from iolens.models.cost_estimate import HIGHEST_UTIL_PCT, LOWEST_UTIL_PCT
from iolens.models.transaction_time import Calibration, Coefficients, fsu_bytes_pct
from iolens.schema import DIRECTIONS
from iolens.store.frames import FrameSelection
from iolens.units import KIB, MIB, format_bytes, parse_bytes

COUNTERS = tuple(f"{side}_{what}" for side in DIRECTIONS for what in ("ops", "bytes"))
SIZE = 512 * MIB
SIZES = "4KiB,16KiB,64KiB"  # where one line holds: larger reads cost a virtual disk less per byte
PAUSED = [(side, str(size * KIB)) for side in DIRECTIONS for size in (4, 16, 64, 256)]
PAUSED += [("rw", "32768"), ("rw", "4k/25:16k/25:64k/25:256k/25")]
ROUNDS = 3  # of pauses, deep queues and sweep, so that a slow minute of the host is in all of them
INTERVAL_S = 0.25  # of the agent; what changes with other work on the machine is then alike in ticks side by side
PAUSED_S = 2.5  # of each load with pauses and round
FULL_TICKS = 4  # whole ones of each load with a deep queue and round


DiskAt = Callable[[Path, int, bool], AbstractContextManager[LoadedDisk]]


class PausedLoad(NamedTuple):
    """One load at depth 1: what, and its time in microseconds since the epoch."""

    name: str
    begin_us: float
    end_us: float


class Saturating(NamedTuple):
    """How the disk is kept full, and the length of the ticks in which it is."""

    sizes: tuple[int, ...]
    queue_depth: int
    tick_s: float


@dataclass(frozen=True)
class Telemetry:
    """What one repetition left: rows of the device, loads at depth 1, and files of sweeps."""

    rows: pa.Table
    paused: list[PausedLoad]
    sweeps: list[Path]

    def column(self, name: str) -> Floats:
        """Of the rows."""
        return np.asarray(self.rows[name].to_numpy(), float)


def main() -> None:
    """Print the figures of each repetition."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--place", type=Path, default=Path("/var/tmp"), help="a folder on the disk")
    parser.add_argument(
        "--without-loop", action="store_true", help="a file on the disk itself: no thread of the kernel waits between"
    )
    parser.add_argument("--queue-depth", type=int, default=16, help="of saturating runs and of the sweep")
    parser.add_argument("--sizes", default=SIZES, help="of the saturating runs and of the sweep")
    parser.add_argument("--tick", type=float, default=1.0, help="seconds, of the limit; `calibrate estimate` takes ten")
    parser.add_argument("--times", type=int, default=2)
    options = parser.parse_args()
    disk_at, why_not = (file_disk, why_no_file_disk) if options.without_loop else (loop_disk, why_no_loop_disk)
    if (why := why_not(options.place)) is not None:
        parser.error(f"nothing is measured: {why}")
    try:
        for number in range(1, options.times + 1):
            print(f"repetition {number} of {options.times}", flush=True)
            sizes = tuple(parse_bytes(size) for size in options.sizes.split(","))
            repetition(disk_at, options.place, Saturating(sizes, options.queue_depth, options.tick))
    except KeyboardInterrupt:
        sys.exit("interrupted; the device and its file are removed")


def repetition(disk_at: DiskAt, place: Path, full: Saturating) -> None:
    """Load, sample, estimate, print."""
    with disk_at(place, SIZE, may_raise_priority()) as disk:
        telemetry = measured(disk, full)
        fit: dict[str, Any] = json.loads(run_iolens("calibrate", "fit", *telemetry.sweeps, "--format", "json"))
        print_busy_time(telemetry)
        print_limit(estimated(telemetry.rows, full.tick_s), fit, full.sizes)


def measured(disk: LoadedDisk, full: Saturating) -> Telemetry:
    """All loads, under the eyes of the agent."""
    bursts = {load: disk.burst(*load) for load in PAUSED}
    paused, sweeps = [], []
    with sampled(disk, INTERVAL_S) as store:
        for number in range(ROUNDS):
            for (side, sizes), burst in bursts.items():
                began = time.time()
                disk.load(side, sizes, 1, PAUSED_S, burst)
                name = f"{side} {'4 to 256 KiB' if ':' in sizes else format_bytes(int(sizes))}"
                paused.append(PausedLoad(name, began * 1e6, time.time() * 1e6))
            for side in DIRECTIONS:
                for size in full.sizes:
                    disk.load(side, str(size), full.queue_depth, (FULL_TICKS + 1) * full.tick_s)
            sweeps.append(sweep(disk, full, number))
    with iolens.open(str(store)) as opened:
        rows = opened.frame("target_io", FILESYSTEM).sort("time").collect(backend="pyarrow").to_native()
    return Telemetry(rows, paused, sweeps)


def sweep(disk: LoadedDisk, full: Saturating, number: int) -> Path:
    """`calibrate run`, each size once."""
    file = disk.folder / f"sweep-{number}.json"
    place = disk.file if disk.file.is_block_device() else disk.folder
    realtime = ["--realtime"] if disk.realtime else []
    sizes = ",".join(map(str, full.sizes))
    options = ("--size", disk.size_bytes, "--sizes", sizes, "--repeats", 1, "--runtime", "700ms", *realtime)
    run_iolens(
        "calibrate", "run", place, "--destroy-data", "--no-asymptote", *options, "--queue-depth", full.queue_depth,
        "-o", file,
    )  # fmt: skip
    return file


def estimated(rows: pa.Table, tick_s: float) -> CalibrationEstimate:
    """As `calibrate estimate`, of these rows."""
    return calibration_estimate(FrameSelection({"target_io": rows}), shortest_tick_s=tick_s)


def evidence(estimate: CalibrationEstimate, kind: str) -> Iterator[tuple[str, EvidenceEstimate, Coefficients]]:
    """Estimates of one kind by direction, with what they say an I/O costs."""
    for item in estimate.estimates:
        if item.evidence == kind and item.latency_s is not None and item.s_per_byte is not None:
            yield item.direction, item, Coefficients(item.latency_s, item.s_per_byte)


def print_busy_time(telemetry: Telemetry) -> None:
    """FSU of samples that the estimate has not seen: those between its own."""
    is_odd = telemetry.column("epoch_us") // (INTERVAL_S * 1e6) % 2 == 1
    costs = {}
    for side, item, cost in evidence(estimated(telemetry.rows.filter(pa.array(~is_odd)), INTERVAL_S), "busy_time"):
        costs[side] = cost
        print(f"busy time, {side}s: {described(cost)}, {item.ticks} ticks; {item.note}")
    calibration = Calibration("busy time", costs["write"], costs["read"])
    util_pct = 1e-4 * telemetry.column("busy_us") / telemetry.column("duration_s")
    begin, end = telemetry.column("start_us"), telemetry.column("epoch_us")
    usual = is_odd & (util_pct > LOWEST_UTIL_PCT) & (util_pct < HIGHEST_UTIL_PCT)
    all_paused = np.zeros(usual.size, bool)
    for name in dict.fromkeys(load.name for load in telemetry.paused):
        mine = [(begin >= load.begin_us) & (end <= load.end_us) for load in telemetry.paused if load.name == name]
        chosen = usual & np.any(mine, axis=0)
        all_paused |= chosen
        print_ratio(name, telemetry, chosen, calibration)
    print_ratio("all together", telemetry, all_paused, calibration)


def print_ratio(name: str, telemetry: Telemetry, chosen: Booleans, calibration: Calibration) -> None:
    """FSU against the kernel's %util of the same samples."""
    if not chosen.any():
        print(f"  {name:18} no sample with 5 % < util < 70 %")
        return
    sums = {counter: telemetry.column(counter)[chosen].sum() for counter in COUNTERS}
    seconds = telemetry.column("duration_s")[chosen].sum()
    util_pct = 1e-4 * telemetry.column("busy_us")[chosen].sum() / seconds
    fsu_pct = fsu_bytes_pct(**sums, duration_s=seconds, calibration=calibration)
    ratio = f"ratio {fsu_pct / util_pct:.3f} ({chosen.sum()} samples)"
    print(f"  {name:18} FSU {fsu_pct:5.1f} %, the kernel's %util {util_pct:5.1f} %: {ratio}")


def print_limit(estimate: CalibrationEstimate, fit: dict[str, Any], sizes: Sequence[int]) -> None:
    """The limit, and the sweep's fit on the sizes at the disk."""
    for side, item, cost in evidence(estimate, "frontier"):
        by_sweep = fit["observed"][side]
        swept = Coefficients(by_sweep["latency_s"], by_sweep["s_per_byte"])
        known = " and ".join(item.identified) or "nothing"
        print(f"frontier, {side}s: {described(cost)}, {item.ticks} ticks, identified: {known}; {item.note}")
        print(f"  calibrate run:  {described(swept)}, R² {by_sweep['r2']:.3f}")
        ratios = [cost.seconds(size) / swept.seconds(size) for size in sizes]
        words = ", ".join(f"{format_bytes(size)} {ratio:.3f}" for size, ratio in zip(sizes, ratios, strict=True))
        print(f"  frontier ÷ fit: {words}; median {statistics.median(ratios):.3f}")
        print(f"  frontier ÷ measured: {', '.join(against_measured(side, cost, fit, sizes))}", flush=True)


def against_measured(side: str, cost: Coefficients, fit: dict[str, Any], sizes: Sequence[int]) -> Iterator[str]:
    """The limit against the median time of the sweep's runs of each size: a line may not fit the sweep itself."""
    for size in sizes:
        runs = [run for run in fit["runs"] if (run["direction"], run["size_bytes"]) == (side, size)]
        seconds = size / statistics.median(run["measured_bytes_per_s"] for run in runs)
        yield f"{format_bytes(size)} {cost.seconds(size) / seconds:.3f}"


def described(cost: Coefficients) -> str:
    """`112 µs + 0.431 ns a byte`."""
    return f"{cost.latency_s * 1e6:.1f} µs + {cost.s_per_byte * 1e9:.3f} ns a byte"


if __name__ == "__main__":
    main()
