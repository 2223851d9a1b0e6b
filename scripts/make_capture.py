"""Make the capture that the quick start loads: two made-up file systems as `lctl get_param` prints them.

`scratch` drowns in 4 KiB writes for a while, `scratch2` moves as many bytes in 1 MiB I/Os. Deterministic.
"""

from __future__ import annotations

import gzip
import random
from pathlib import Path

OUTPUT = Path(__file__).parent.parent / "docs" / "capture.txt.gz"
SIZES = [4096 << power for power in range(9)]
START = 1_767_600_000  # 2026-01-05T08:00:00Z
TICK_S = 5
TICKS = 240
OSTS = 4


def label(size: int) -> str:
    """A bin's label as brw_stats prints it."""
    return f"{size >> 20}M" if size >= 1 << 20 else f"{size >> 10}K"


def activity(filesystem: str, tick: int) -> dict[tuple[str, int], float]:
    """Mean disk I/Os per tick and OST: quiet, then a plateau of fifteen minutes, then a read burst."""
    background = {("write", 1 << 20): 20.0, ("read", 1 << 20): 30.0, ("read", 4096): 10.0}
    if 30 <= tick < 210:
        if filesystem == "scratch":
            return background | {("write", 4096): 3000.0, ("write", 65536): 120.0}
        return background | {("write", 1 << 20): 200.0}
    if tick >= 225:
        return background | {("read", 1 << 20): 1500.0}
    return background


def main() -> None:
    """Write the capture."""
    dice = random.Random(2012)
    counts = {
        (fs, ost): dict.fromkeys([(direction, size) for direction in ("read", "write") for size in SIZES], 0)
        for fs in ("scratch", "scratch2")
        for ost in range(OSTS)
    }
    lines: list[str] = []
    for tick in range(TICKS + 1):
        for (filesystem, ost), bins in counts.items():
            if tick:
                for key, mean in activity(filesystem, tick).items():
                    bins[key] += max(0, round(dice.gauss(mean * (1 + 0.04 * ost), mean**0.5)))
            lines += snapshot(f"{filesystem}-OST{ost:04x}", START + tick * TICK_S + dice.uniform(0.001, 0.02), bins)
    OUTPUT.write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), compresslevel=9, mtime=0))


def snapshot(target: str, second: float, bins: dict[tuple[str, int], int]) -> list[str]:
    """`obdfilter.*.stats` and `osd-ldiskfs.*.brw_stats` of one OST at one time."""
    clock = [
        f"snapshot_time             {second:.9f} secs.nsecs",
        f"start_time                {START - 86400}.000000000 secs.nsecs",
    ]
    stats = [
        f"{direction}_bytes                {ops} samples [bytes] 4096 1048576 {moved}"
        for direction in ("read", "write")
        for ops, moved in [
            (
                sum(count for (item, _), count in bins.items() if item == direction),
                sum(size * count for (item, size), count in bins.items() if item == direction),
            )
        ]
    ]
    table = [
        f"{label(size)}:\t\t{bins['read', size]:>10}   0   0   | {bins['write', size]:>10}   0   0" for size in SIZES
    ]
    colons = [line.replace("_time ", "_time:") for line in clock]
    return [
        f"obdfilter.{target}.stats=", *clock, *stats, f"osd-ldiskfs.{target}.brw_stats=", *colons,
        "", "                           read      |     write",
        "disk I/O size          ios   % cum % |  ios         % cum %", *table,
    ]  # fmt: skip


if __name__ == "__main__":
    main()
