"""How well a calibration of this machine's disk fits, and what FSU it then gives: `python -m bench.calibration`.

A sweep with fio, its fit, then the FSU of each second of an idle disk and of one that fio keeps full. A calibration
that is right has an R² near 1, an FSU near 0 on an idle disk and near 100 % on a full one; other work on the machine
and on the host of a virtual disk shows in all of them, so these are figures to look at and no test.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from iolens.benchmarks.device_counters import BlockDeviceCounters, underlying_device
from iolens.benchmarks.programs import LARGE_PAGES, may_raise_priority
from iolens.models.transaction_time import Calibration, Coefficients, fsu_bytes_pct

SIZE = "512MiB"
SIZES = "4KiB,8KiB,16KiB,64KiB,128KiB,256KiB"  # larger reads cost a virtual disk less per byte (docs/calibration.md)
QUEUE_DEPTH = 4
MIX = "4k/25:16k/25:64k/25:256k/25"


def iolens(*arguments: object) -> str:
    """Standard output of the command."""
    words = ["iolens", *map(str, arguments)]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def fitted(folder: Path, repeats: int) -> dict[str, Any]:
    """A sweep in that folder, and its fit."""
    realtime = ["--realtime"] if may_raise_priority() else []
    options = ("--size", SIZE, "--sizes", SIZES, "--runtime", "200ms", "--queue-depth", QUEUE_DEPTH, *realtime)
    file = folder / "sweep.json"
    iolens("calibrate", "run", folder, "--repeats", repeats, *options, "--no-asymptote", "-o", file)
    fit: dict[str, Any] = json.loads(iolens("calibrate", "fit", file, "--repeats", "best", "--format", "json"))
    return fit


def sampled(counters: BlockDeviceCounters, calibration: Calibration, seconds: int) -> list[float]:
    """FSU of each second."""
    levels = []
    before, began = counters.read(), time.monotonic()
    for _ in range(seconds):
        time.sleep(1)
        after, now = counters.read(), time.monotonic()
        assert before.bytes is not None
        assert after.bytes is not None
        fsu_pct = fsu_bytes_pct(
            read_ops=after.ops["read"] - before.ops["read"],
            read_bytes=after.bytes["read"] - before.bytes["read"],
            write_ops=after.ops["write"] - before.ops["write"],
            write_bytes=after.bytes["write"] - before.bytes["write"],
            duration_s=now - began,
            calibration=calibration,
        )
        levels.append(fsu_pct)
        before, began = after, now
    return levels


def saturated(folder: Path, counters: BlockDeviceCounters, calibration: Calibration, seconds: int) -> list[float]:
    """The disk while fio keeps it full."""
    file = folder / "saturate.dat"
    common = ["fio", "--name=saturate", f"--filename={file}", f"--size={SIZE}", "--direct=1", "--ioengine=libaio"]
    subprocess.run([*common, "--rw=write", "--bs=1m", "--end_fsync=1"], check=True, capture_output=True)
    command = [
        *common, "--rw=randrw", f"--bssplit={MIX}", f"--iodepth={QUEUE_DEPTH}", "--time_based", "--norandommap",
        f"--runtime={seconds + 3}", "--eta=never",
    ]  # fmt: skip
    environment = {**os.environ, "GLIBC_TUNABLES": LARGE_PAGES}  # as in the sweep
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment):
        time.sleep(1.5)  # until it is under way
        return sampled(counters, calibration, seconds)


def main() -> None:
    """Print the fit and the levels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--place", type=Path, default=Path("/var/tmp"), help="a folder on the disk")
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=7, help="of each level")
    options = parser.parse_args()
    device = underlying_device(options.place).device
    if device is None:
        parser.error(f"{options.place} is on no block device")
    with tempfile.TemporaryDirectory(dir=options.place, prefix="iolens-bench-") as name:
        fit = fitted(Path(name), options.repeats)
        costs = {
            direction: Coefficients(result["latency_s"], result["s_per_byte"])
            for direction, result in fit["observed"].items()
        }
        for direction, result in fit["observed"].items():
            rate = result["rate_mib_per_s"]
            shown = "no limit" if rate is None else f"{rate:,.0f} MiB/s"
            print(f"{direction}: R² {result['r2']:.3f}, latency {result['latency_s'] * 1e6:.0f} µs, {shown}")
        print(f"FSU of the saturating runs: ceiling {fit['ceiling_fsu_pct']:.0f} %")
        print(f"bytes read at the disk for each that was asked for: {fit['read_amplification']:.2f}")
        calibration = Calibration("here", costs["write"], costs["read"])
        counters = BlockDeviceCounters(device)
        for level, seconds in (
            ("idle", sampled(counters, calibration, options.seconds)),
            ("full", saturated(Path(name), counters, calibration, options.seconds)),
        ):
            values = " ".join(f"{value:.0f}" for value in seconds)
            print(f"{level} disk: median FSU {statistics.median(seconds):.1f} % ({values})")


if __name__ == "__main__":
    main()
