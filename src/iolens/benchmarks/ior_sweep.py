"""Runs of IOR: one as it is asked for, and the sweep under MPI on one shared file."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from math import gcd, isfinite
from pathlib import Path
from typing import Final

from iolens.benchmarks.programs import found_program, launcher_words, run_program
from iolens.benchmarks.sweep import Plan, SweepPoint, Values
from iolens.errors import IolensError, UsageError
from iolens.records import Note, Problem, Row
from iolens.sources import ReadOptions
from iolens.sources.benchmarks.ior import read_ior_text
from iolens.sources.benchmarks.results import ResultFile
from iolens.units import MIB, format_bytes

# One run of IOR -------------------------------------------------------------------------------------------------------
# What is asked for, the command line that asks for it, and the rows of its results.
#
# IOR's own words: each of `tasks` moves a block of `block_bytes` in pieces of `transfer_bytes`, `segments` times.

WORD_BYTES: Final = 8  # IOR moves whole ones
APIS: Final = ("POSIX", "MPIIO", "HDF5", "NCMPI")
# IOR's clock has no zone, and where and how often it ran is for whoever started it to say.
_NOT_IORS_TO_SAY: Final = ("time", "run_id", "filesystem", "fullness_pct")


@dataclass(frozen=True, slots=True, kw_only=True)
class IorCommand:
    """What IOR is asked to do; `reorder`: a task reads what one of the next node wrote, on a single node its own.

    `fsync` is at the end of the writes.
    `use_existing`: a file that is there is written over, not made anew, so that it keeps its stripes. `max_seconds` is
    when writing, or reading, is broken off: for a command that does one of them.
    """

    file: Path
    transfer_bytes: int
    block_bytes: int
    api: str = "POSIX"
    tasks: int = 1
    segments: int = 1
    file_per_process: bool = False
    collective: bool = False
    random: bool = False
    fsync: bool = False
    direct: bool = False
    reorder: bool = False
    write: bool = True
    read: bool = True
    keep: bool = False
    use_existing: bool = False
    repetitions: int = 1
    max_seconds: float | None = None

    @property
    def aggregate_bytes(self) -> int:
        """Size of all files together, which is also what is written, and read, in one repetition."""
        return self.tasks * self.segments * self.block_bytes

    def check(self) -> None:
        """Refuse what IOR refuses, or takes for something else, before anything is started."""
        if trouble := _trouble(self):
            raise UsageError(f"IOR: {trouble}")

    def options(self) -> list[str]:
        """The words after `ior`."""
        self.check()
        flags = {
            "-F": self.file_per_process,
            "-c": self.collective,
            "-z": self.random,
            "-w": self.write,
            "-r": self.read,
            "-e": self.fsync and self.write,
            "-C": self.reorder and self.read,
            "-k": self.keep,
            "-E": self.use_existing and self.write,
            "--posix.odirect": self.direct,
        }
        words = ["-a", self.api, "-t", str(self.transfer_bytes), "-b", str(self.block_bytes), "-s", str(self.segments)]
        words += [flag for flag, is_set in flags.items() if is_set]
        words += ["-i", str(self.repetitions)] if self.repetitions != 1 else []
        words += ["-D", str(max(round(self.max_seconds), 1))] if self.max_seconds is not None else []
        return [*words, "-o", str(self.file)]

    def argv(self, launcher: str | None = None, program: str | None = None) -> list[str]:
        """The whole command: launcher, `ior` as found on PATH unless it is named, options."""
        return [*launcher_words(launcher, self.tasks), program or found_program("ior"), *self.options()]

    def shown(self, launcher: str = "mpirun -np {tasks}") -> str:
        """The command as one would type it."""
        return shlex.join(self.argv(launcher, "ior"))


def _trouble(command: IorCommand) -> str | None:
    """The first reason why IOR cannot do it."""
    sizes = (command.transfer_bytes, command.block_bytes, command.segments, command.tasks, command.repetitions)
    reasons = {
        f"api {command.api!r} is none of {', '.join(APIS)}": command.api not in APIS,
        "neither written nor read": not (command.write or command.read),
        "sizes, segments, tasks and repetitions must be 1 or more": min(sizes) < 1,
        f"a transfer of {command.transfer_bytes} bytes is not a multiple of {WORD_BYTES}": (
            command.transfer_bytes % WORD_BYTES != 0
        ),
        f"a block of {command.block_bytes} bytes is not a whole number of transfers of {command.transfer_bytes}": (
            command.transfer_bytes > 0 and command.block_bytes % command.transfer_bytes != 0
        ),
        "POSIX has no collective I/O: use MPIIO": command.collective and command.api == "POSIX",
        "collective I/O cannot be in random order": command.collective and command.random,
        "O_DIRECT is for POSIX": command.direct and command.api != "POSIX",
        "a shared file in random order cannot also be reordered": (
            command.random and command.reorder and command.read and not command.file_per_process
        ),
        "max_seconds is for a command that only writes or only reads": (
            command.max_seconds is not None and command.write and command.read
        ),
        f"{command.file}: '@' separates files for IOR": "@" in str(command.file),
    }
    return next((reason for reason, applies in reasons.items() if applies), None)


def run_ior(command: IorCommand, launcher: str | None = None, timeout_s: float | None = None) -> list[Values]:
    """Run it: rows of `benchmark_runs`, one per direction and repetition.

    After `timeout_s` it is stopped, and `subprocess.TimeoutExpired` raised.
    """
    limit_s = timeout_s if timeout_s is not None and isfinite(timeout_s) else None
    return ior_rows(command, run_program(command.argv(launcher), timeout_s=limit_s))


def ior_rows(command: IorCommand, text: str) -> list[Values]:
    """What IOR printed as rows, with what it was asked for and does not print."""
    items = list(read_ior_text(ResultFile(Path("ior"), ReadOptions(), "ior"), text))
    problems = [item for item in items if isinstance(item, Problem) and not isinstance(item, Note)]
    if problems:
        raise IolensError(f"ior: {problems[0].reason}")
    rows = [_row(command, dict(item.values)) for item in items if isinstance(item, Row)]
    if others := {row.get("tasks") for row in rows} - {command.tasks, None}:
        raise IolensError(
            f"ior: it ran with {', '.join(map(str, others))} tasks, not {command.tasks}: a launcher of another MPI"
            " starts tasks that do not know each other"
        )
    asked = [name for name, is_asked in (("write", command.write), ("read", command.read)) if is_asked]
    if missing := [name for name in asked if all(row.get("direction") != name for row in rows)]:
        raise IolensError(f"ior: it printed no result of the {missing[0]}")
    return rows


def _row(command: IorCommand, values: Values) -> Values:
    once = ("iteration", "repetitions") if command.repetitions == 1 else ()  # whoever repeats it counts
    known = {name: value for name, value in values.items() if name not in (*_NOT_IORS_TO_SAY, *once)}
    known |= {"collective": command.collective}
    known |= {"page_cache": "bypassed"} if command.direct else {}
    return known | ({"fsync": command.fsync} if values.get("direction") == "write" else {})


# The sweep with IOR under MPI -----------------------------------------------------------------------------------------
# One shared file, whose transfers IOR deals out to the tasks and orders at random.

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
