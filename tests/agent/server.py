"""Lustre servers below a directory: a made-up one with counters that only grow, and the simulator's in a process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from iolens.schema import DIRECTIONS, SIZE_BINS, size_column
from iolens.simulator.activity import Activity
from iolens.simulator.workload import OPERATIONS, SIZES, load_workload

NOT_IN_1_8 = ("setxattr", "sync")  # its MDS does not count them
ROW_LABELS = {4096: "4K", 65536: "64K", 1 << 20: "1M"}


@dataclass
class Server:
    """OSTs and one MDT; `work` moves the counters on and rewrites the files, each in one step."""

    root: Path
    osts: int = 2
    version: str = "2.15.4"
    start: float = 1_600_000_000.0
    written: dict[str, int] = field(default_factory=dict)  # 1 MiB writes by OST
    opens: int = 0
    jobs: int = 3
    job_lines: int = 1
    job_sizes: bool = False  # by size too, as Lustre 2.16 does

    @property
    def targets(self) -> list[str]:
        return [f"scratch-OST{number:04x}" for number in range(self.osts)]

    def work(self, writes: int = 1, now: float | None = None) -> None:
        timestamp = time.time() if now is None else now
        self.opens += writes
        for number, target in enumerate(self.targets):
            self.written[target] = self.written.get(target, 0) + writes * (number + 1)
            self._ost(target, self.written[target], timestamp)
        self._mdt(timestamp)

    def total_bytes(self) -> int:
        return sum(self.written.values()) << 20

    def reset(self) -> None:
        """As after a reboot."""
        self.written, self.opens = {}, 0
        self.start += 1000.0

    def _ost(self, target: str, count: int, timestamp: float) -> None:
        clock = f"snapshot_time:  {timestamp:.9f} secs.nsecs\nstart_time:     {self.start:.9f} secs.nsecs\n"
        sections = "".join(
            f"\n                   read      |     write\n{title:22} {unit}   % cum % |  {unit}         % cum %\n"
            + "".join(f"{label}:\t\t{count:>9}  50  50   | {count:>6}  50 50\n" for label in labels)
            for title, unit, labels in (
                ("pages per bulk r/w", "rpcs", ("1", "2", "256")),
                ("disk I/Os in flight", "ios", ("1", "2")),
            )
        )
        rows = "".join(
            f"{label}:\t\t{0:>9}   0   0   | {count if size == 1 << 20 else 0:>6}   0   0\n"
            for size, label in ROW_LABELS.items()
        )
        self._put(
            f"proc/fs/lustre/obdfilter/{target}/stats",
            clock.replace("time:", "time ")
            + f"write_bytes               {count} samples [bytes] 4096 1048576 {count << 20}\n",
        )
        self._put(
            f"sys/kernel/debug/lustre/osd-ldiskfs/{target}/brw_stats",
            f"{clock}{sections}\n                           read      |     write\n"
            f"disk I/O size          ios   % cum % |  ios         % cum %\n{rows}",
        )
        self._put(f"proc/fs/lustre/obdfilter/{target}/job_stats", self._job_stats(count, timestamp))
        self._put(f"proc/fs/lustre/obdfilter/{target}/recovery_status", "status: COMPLETE\n")
        for leaf, number in (
            ("kbytestotal", 1 << 30),
            ("kbytesfree", 1 << 29),
            ("filestotal", 1000),
            ("filesfree", 500),
        ):
            self._put(f"sys/fs/lustre/obdfilter/{target}/{leaf}", f"{number}\n")
        self._put(f"sys/fs/lustre/obdfilter/{target}/num_exports", "7\n")
        self._put("sys/fs/lustre/version", f"{self.version}\n")

    def _job_stats(self, count: int, timestamp: float) -> str:
        sizes = f", hist: {{ 4K: 0, 1M: {count} }}" if self.job_sizes else ""
        moved = f"samples: {count}, unit: bytes, min: 4096, max: 1048576, sum: {count << 20:>16}{sizes}"
        return "job_stats:\n" + "".join(
            f"- job_id:          job.{number}\n  snapshot_time:   {timestamp:.9f} secs.nsecs\n"
            f"  start_time:      {self.start:.9f} secs.nsecs\n"
            f"  write_bytes:     {{ {moved} }}\n"
            for number in range(self.jobs)
        )

    def _mdt(self, timestamp: float) -> None:
        self._put(
            "proc/fs/lustre/mdt/scratch-MDT0000/md_stats",
            f"snapshot_time    {timestamp:.9f} secs.nsecs\nstart_time       {self.start:.9f} secs.nsecs\n"
            f"open                      {self.opens} samples [usecs] 1 10 {self.opens * 5}\n",
        )
        self._put("proc/fs/lustre/mdt/scratch-MDT0000/job_stats", "job_stats:\n")
        self._put("proc/fs/lustre/osd-ldiskfs/scratch-MDT0000/kbytestotal", "1000\n")
        self._put("proc/fs/lustre/osd-ldiskfs/scratch-MDT0000/kbytesfree", "500\n")

    def _put(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.parent / f".{path.name}"
        beside.write_text(text)
        beside.replace(path)


@dataclass(frozen=True)
class SimulatedServer:
    """`iolens simulate lustre` as a process of its own; what it did in any time follows from its seed."""

    root: Path
    version: str
    seed: int
    osts: int = 2
    mdts: int = 1
    speed: float = 100.0
    start: str = "2012-10-22T10:40:00Z"
    events: tuple[object, ...] = ()  # more of the command line

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """The counters move until the block ends."""
        command = [sys.executable, "-m", "iolens.cli.main", "simulate", "lustre", "--root", self.root,
                   "--version", self.version, "--osts", self.osts, "--mdts", self.mdts, "--seed", self.seed,
                   "--speed", self.speed, "--start", self.start, *self.events]  # fmt: skip
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            try:
                yield process
                assert not process.poll(), process.stderr and process.stderr.read()
            finally:
                process.terminate()

    def wait_for_tree(self, process: subprocess.Popen[bytes]) -> None:
        """Return when the last file of the tree is there."""
        last = "clients/sacct.txt" if "--clients" in self.events else f"*MDT{self.mdts - 1:04x}/filesfree"
        while not any(self.root.rglob(last)):
            assert process.poll() is None, process.stderr and process.stderr.read()
            time.sleep(0.02)

    def did(self, table: str, target: str, from_us: int, until_us: int) -> dict[str, int]:
        """What the counters of a table gained between two snapshots of a target. They move in whole ticks."""
        activity = Activity(load_workload("scratch"), self.osts, self.seed)
        first, end = (timestamp // (activity.tick_s * 1_000_000) for timestamp in (from_us, until_us))
        number = int(target[-4:], 16)
        if table == "metadata_ops":
            return self._operations(activity, number, first, end)
        ios = activity.block(first, end - first).counts[..., number].sum(axis=2)  # direction × size
        by_size = {
            direction: dict(zip(SIZES, map(int, ios[row]), strict=True)) for row, direction in enumerate(DIRECTIONS)
        }
        if table == "target_sizes":
            bins = {
                size_column(direction, size): by_size[direction].get(size, 0)
                for direction in DIRECTIONS
                for size in SIZE_BINS
            }
            return bins | {f"{direction}_ios_outside": 0 for direction in DIRECTIONS}
        moved = {
            f"{direction}_bytes": sum(size * count for size, count in by_size[direction].items())
            for direction in DIRECTIONS
        }
        return moved | {f"{direction}_ops": sum(by_size[direction].values()) for direction in DIRECTIONS}

    def _operations(self, activity: Activity, mdt: int, first: int, end: int) -> dict[str, int]:
        total = np.zeros(len(OPERATIONS), np.int64)
        per_hour = activity.ticks_per_hour
        for hour in range(first // per_hour, end // per_hour + 1):
            ticks = slice(max(first - hour * per_hour, 0), max(end - hour * per_hour, 0))
            total += activity.metadata(hour, self.mdts)[:, ticks, mdt].sum(axis=1)
        done = dict(zip(OPERATIONS, map(int, total), strict=True))
        return {name: count for name, count in done.items() if self.version != "1.8" or name not in NOT_IN_1_8}
