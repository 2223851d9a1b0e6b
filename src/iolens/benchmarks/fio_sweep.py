"""The sweep with fio: one process per run, random offsets, direct I/O."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from iolens.benchmarks.programs import found_program, run_program
from iolens.benchmarks.sweep import Plan, SweepPoint, Values
from iolens.errors import IolensError
from iolens.records import Note, Problem, Row
from iolens.sources import ReadOptions
from iolens.sources.benchmarks.fio import read_fio_text
from iolens.sources.benchmarks.results import ResultFile
from iolens.units import MIB, format_bytes

LAYOUT_TRANSFER: Final = MIB


class FioTool:
    """Drives fio."""

    name = "fio"
    mixes = True

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.program = found_program("fio")

    def lay_out(self) -> None:
        """Write every block: reads of a merely allocated file never reach the disk."""
        transfer, limit_s = min(LAYOUT_TRANSFER, self.plan.file_bytes), self.plan.layout_s
        limits = [] if limit_s is None else [f"--runtime={round(limit_s * 1000)}ms"]
        began = time.monotonic()
        self._run(
            [
                "--rw=write",
                f"--bs={transfer}",
                f"--size={self.plan.file_bytes}",
                "--end_fsync=1",
                "--iodepth=4",
                *limits,
            ]
        )
        if limit_s is not None and time.monotonic() - began >= limit_s:
            size = format_bytes(self.plan.file_bytes)
            raise IolensError(f"{self.plan.file}: {size} were not written within {limit_s:g} s: nothing was measured")

    def run(self, point: SweepPoint) -> list[Values]:
        """One run of one size, or of all sizes in both directions."""
        options = [
            *self._transfers(point),
            f"--size={point.aggregate_bytes}",
            f"--iodepth={self.plan.queue_depth if self.plan.direct else 1}",
            f"--numjobs={self.plan.jobs}",
            "--group_reporting",
            "--time_based" if self.plan.run_bytes is None else f"--io_size={self.plan.run_bytes}",
            f"--runtime={round(self.plan.runtime_s * 1000)}ms",
            "--norandommap",  # offsets are drawn anew each time, as after a seek to anywhere
            "--randrepeat=0",
            *([] if self.plan.direct or "write" not in point.directions else ["--end_fsync=1"]),
        ]
        text = self._run(options)
        file = ResultFile(Path("fio"), ReadOptions(), self.plan.sweep)
        items = list(read_fio_text(file, text))
        problems = [item for item in items if isinstance(item, Problem) and not isinstance(item, Note)]
        if problems:
            raise IolensError(f"fio: {problems[0].reason}")
        return [dict(item.values) for item in items if isinstance(item, Row)]

    def _transfers(self, point: SweepPoint) -> list[str]:
        """Directions and sizes; of the saturating test, as many I/Os of each size."""
        if not point.is_saturating:
            return [f"--rw=rand{point.direction}", f"--bs={point.transfer_bytes}"]
        return ["--rw=randrw", f"--bssplit={':'.join(f'{size}/' for size in self.plan.transfer_sizes)}"]

    def _run(self, options: list[str]) -> str:
        engine = "libaio" if self.plan.direct else "psync"  # libaio waits for buffered I/O anyway
        command = [
            self.program,
            "--name=iolens",
            f"--filename={str(self.plan.file).replace(':', chr(92) + ':')}",  # fio takes a colon for a list of files
            f"--direct={int(self.plan.direct)}",
            f"--ioengine={engine}",
            "--output-format=json",
            "--eta=never",
            *options,
        ]
        return run_program(command, self.plan.realtime)
