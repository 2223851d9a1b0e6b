"""The sweep with IOR under MPI: one shared file, whose transfers IOR deals out to the tasks and orders at random."""

from __future__ import annotations

import shlex
from math import gcd
from pathlib import Path
from typing import Final

from iolens.benchmarks.launcher import launcher_words
from iolens.benchmarks.programs import found_program, run_program
from iolens.benchmarks.sweep import Plan, SweepPoint, Values
from iolens.errors import IolensError, UsageError
from iolens.records import Note, Problem, Row
from iolens.sources import ReadOptions
from iolens.sources.benchmarks.ior import read_ior_text
from iolens.sources.benchmarks.results import ResultFile
from iolens.units import MIB, format_bytes

LAYOUT_TRANSFER: Final = MIB
LEAST_TRANSFERS: Final = 2


class IorTool:
    """Drives IOR; `jobs` of the plan are its tasks, each with one transfer in flight."""

    name = "ior"
    mixes = False  # a run of IOR writes or reads, with one size

    def __init__(self, plan: Plan, launcher: str | None = None) -> None:
        self.plan = plan
        self.program = found_program("ior")
        self.launcher = launcher_words(launcher, plan.jobs, "--jobs 1")
        for point in plan.points():  # refuse now what IOR would refuse after the file is written
            self._block(point.aggregate_bytes, point.transfer_bytes)

    def lay_out(self) -> None:
        """Write the whole file and keep it: as much as the run of any size will read."""
        block = max(self._block(self.plan.file_bytes, size) for size in self.plan.transfer_sizes)
        self._run(["-w", "-b", str(block), "-t", str(gcd(LAYOUT_TRANSFER, block))])

    def run(self, point: SweepPoint) -> list[Values]:
        """One run of one size, stopped after the plan's time.

        IOR refuses -C (read what another task wrote) with random offsets in a shared file, and it is not needed there:
        every run deals the transfers of the whole file out anew.
        """
        text = self._run(
            [
                *(["-w", "-e"] if point.direction == "write" else ["-r"]),
                "-E",  # the file is there in full: use it
                "-z",  # of the whole file: mostly what others wrote, which is why IOR refuses -C beside it
                "-b", str(self._block(point.aggregate_bytes, point.transfer_bytes)),
                "-t", str(point.transfer_bytes),
                "-D", str(max(round(self.plan.runtime_s), 1)),
            ]
        )  # fmt: skip
        items = list(read_ior_text(ResultFile(Path("ior"), ReadOptions(), self.plan.sweep), text))
        problems = [item for item in items if isinstance(item, Problem) and not isinstance(item, Note)]
        if problems:
            raise IolensError(f"ior: {problems[0].reason}")
        rows = [dict(item.values) for item in items if isinstance(item, Row)]
        self._check_tasks(rows)
        return rows

    def _check_tasks(self, rows: list[Values]) -> None:
        """A launcher that does not speak the program's MPI starts so many runs of one task each."""
        tasks = self.plan.jobs
        if len(rows) > 1 or any(row.get("tasks") != tasks for row in rows):
            launcher = shlex.join(self.launcher) or "no launcher"
            ran = " + ".join(f"{row.get('tasks')}" for row in rows)
            raise IolensError(f"ior: {launcher}: expected one run of {tasks} tasks, found tasks of {ran}")

    def _block(self, aggregate_bytes: int, transfer_bytes: int) -> int:
        """Bytes per task: a whole number of transfers, and two at least, or IOR has nothing to put in random order."""
        transfers = aggregate_bytes // self.plan.jobs // transfer_bytes
        if transfers < LEAST_TRANSFERS:
            shared = f"{format_bytes(aggregate_bytes)} in transfers of {format_bytes(transfer_bytes)}"
            least = f"at least {LEAST_TRANSFERS} for each"
            raise UsageError(f"{self.plan.jobs} tasks cannot share {shared} ({least}): name a larger --size")
        return transfers * transfer_bytes

    def _run(self, options: list[str]) -> str:
        direct = ["--posix.odirect"] if self.plan.direct else []
        command = [*self.launcher, self.program, "-a", "POSIX", "-k", *direct, *options, "-o", str(self.plan.file)]
        return run_program(command, self.plan.realtime)
