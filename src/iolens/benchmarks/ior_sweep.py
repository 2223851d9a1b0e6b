"""The sweep with IOR under MPI: each task its part of one shared file, in random order, read by another than wrote."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Final

from iolens.benchmarks.programs import found_program, run_program
from iolens.benchmarks.sweep import Plan, SweepPoint, Values
from iolens.errors import IolensError, UsageError
from iolens.records import Note, Problem, Row
from iolens.sources import ReadOptions
from iolens.sources.benchmarks.ior import read_ior_text
from iolens.sources.benchmarks.results import ResultFile
from iolens.units import MIB

LAUNCHERS: Final = {"mpirun": "-np", "mpiexec": "-n", "srun": "-n"}
LAYOUT_TRANSFER: Final = MIB


class IorTool:
    """Drives IOR; `jobs` of the plan are its tasks, each with one transfer in flight."""

    name = "ior"
    mixes = False  # a run of IOR writes or reads, with one size

    def __init__(self, plan: Plan, launcher: str | None = None) -> None:
        self.plan = plan
        self.program = found_program("ior")
        self.launcher = _launcher(launcher, plan.jobs)

    def lay_out(self) -> None:
        """Write the whole file and keep it."""
        block = self._block(self.plan.file_bytes, max(self.plan.transfer_sizes))
        self._run(["-w", "-b", str(block), "-t", str(min(LAYOUT_TRANSFER, block))])

    def run(self, point: SweepPoint) -> list[Values]:
        """One run of one size, stopped after the plan's time."""
        read = ["-r", "-C"]  # -C: each task reads what another wrote, past any cache of its own node
        text = self._run(
            [
                *(["-w", "-e"] if point.direction == "write" else read),
                "-E",  # the file is there in full: use it
                "-z",
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


def _launcher(given: str | None, tasks: int) -> list[str]:
    """The command before `ior`: as given, else the first MPI launcher on PATH; none for a single task."""
    if given is not None:
        return [word.replace("{tasks}", str(tasks)) for word in shlex.split(given)]
    for name, option in LAUNCHERS.items():
        if (path := shutil.which(name)) is not None:
            return [path, option, str(tasks)]
    if tasks == 1:
        return []
    raise UsageError(f"no MPI launcher ({', '.join(LAUNCHERS)}) is on PATH: name one with --launcher, or use --jobs 1")
