"""The sweep with IOR under MPI: tasks share one file, of which each takes random parts."""

from __future__ import annotations

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
from iolens.units import MIB

LAYOUT_TRANSFER: Final = MIB


class IorTool:
    """Drives IOR; `jobs` of the plan are its tasks, each with one transfer in flight."""

    name = "ior"
    mixes = False  # a run of IOR writes or reads, with one size

    def __init__(self, plan: Plan, launcher: str | None = None) -> None:
        self.plan = plan
        self.program = found_program("ior")
        self.launcher = launcher_words(launcher, plan.jobs, "--jobs 1")

    def lay_out(self) -> None:
        """Write the whole file and keep it."""
        block = self._block(self.plan.file_bytes, max(self.plan.transfer_sizes))
        self._run(["-w", "-b", str(block), "-t", str(min(LAYOUT_TRANSFER, block))])

    def run(self, point: SweepPoint) -> list[Values]:
        """One run of one size, stopped after the plan's time."""
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
        return [dict(item.values) for item in items if isinstance(item, Row)]

    def _block(self, aggregate_bytes: int, transfer_bytes: int) -> int:
        """Bytes per task: a whole number of transfers."""
        block = aggregate_bytes // self.plan.jobs // transfer_bytes * transfer_bytes
        if not block:
            shared = f"{aggregate_bytes} bytes in transfers of {transfer_bytes}"
            raise UsageError(f"{self.plan.jobs} tasks cannot share {shared}: name a larger --size")
        return block

    def _run(self, options: list[str]) -> str:
        direct = ["--posix.odirect"] if self.plan.direct else []
        command = [*self.launcher, self.program, "-a", "POSIX", "-k", *direct, *options, "-o", str(self.plan.file)]
        return run_program(command, self.plan.realtime)
