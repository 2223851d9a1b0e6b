"""A made-up Lustre 2.15 server below a directory, with counters that only grow."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

SIZES = {4096: "4K", 65536: "64K", 1 << 20: "1M"}


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

    @property
    def targets(self) -> list[str]:
        return [f"scratch-OST{number:04x}" for number in range(self.osts)]

    def work(self, writes: int = 1, now: float | None = None) -> None:
        moment = time.time() if now is None else now
        self.opens += writes
        for number, target in enumerate(self.targets):
            self.written[target] = self.written.get(target, 0) + writes * (number + 1)
            self._ost(target, self.written[target], moment)
        self._mdt(moment)

    def total_bytes(self) -> int:
        return sum(self.written.values()) << 20

    def reset(self) -> None:
        """As after a reboot."""
        self.written, self.opens = {}, 0
        self.start += 1000.0

    def _ost(self, target: str, count: int, moment: float) -> None:
        clock = f"snapshot_time:  {moment:.9f} secs.nsecs\nstart_time:     {self.start:.9f} secs.nsecs\n"
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
            for size, label in SIZES.items()
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
        self._put(f"proc/fs/lustre/obdfilter/{target}/job_stats", self._job_stats(count, moment))
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

    def _job_stats(self, count: int, moment: float) -> str:
        return "job_stats:\n" + "".join(
            f"- job_id:          job.{number}\n  snapshot_time:   {moment:.9f} secs.nsecs\n"
            f"  start_time:      {self.start:.9f} secs.nsecs\n"
            f"  write_bytes:     {{ samples: {count}, unit: bytes, min: 4096, max: 1048576, sum: {count << 20:>16} }}\n"
            for number in range(self.jobs)
        )

    def _mdt(self, moment: float) -> None:
        self._put(
            "proc/fs/lustre/mdt/scratch-MDT0000/md_stats",
            f"snapshot_time    {moment:.9f} secs.nsecs\nstart_time       {self.start:.9f} secs.nsecs\n"
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
