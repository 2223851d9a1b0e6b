"""A workload is a readable TOML file: what the disks are, how they are loaded, and who loads them.

Levels are per cent of the time of a target's disks. An unknown key is refused, never ignored.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iolens.errors import InputError, UsageError
from iolens.models.transaction_time import Calibration, Coefficients
from iolens.schema import DIRECTIONS
from iolens.simulator.planted_jobs import PlantedJob, planted_job
from iolens.simulator.toml_section import TomlSection, read_toml

FOLDER: Final = Path(__file__).parent / "workloads"
SIZES: Final = tuple(4096 << power for power in range(11))  # 4 KiB … 4 MiB
SIZE_NAMES: Final = tuple(f"{size >> 10}KiB" if size < 1 << 20 else f"{size >> 20}MiB" for size in SIZES)
PHASES: Final = ("quiet", "background", "burst")
OPERATIONS: Final = (
    "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getattr", "setattr", "getxattr",
    "setxattr", "statfs", "sync",
)  # fmt: skip
_SAME_ID_S: Final = 366 * 86400  # a planted job may have the number of no job of a stream within this time
HOLD_S: Final = 60  # background keeps its level this long
_NAME: Final = re.compile(r"[A-Za-z0-9_]{1,8}")  # what Lustre allows as the name of a file system


@dataclass(frozen=True, slots=True)
class Tail:
    """A Pareto tail cut off at a maximum: levels in per cent of a target's disk time."""

    alpha: float
    scale_pct: float
    maximum_pct: float


@dataclass(frozen=True, slots=True)
class Bursts:
    """Bursts that come at random, on average every `every_s`, and last `length_s` on average."""

    level: Tail
    every_s: float
    length_s: float


@dataclass(frozen=True, slots=True)
class JobClass:
    """One user's stream of jobs: each lasts `length_s` and has this weight in all activity."""

    user: str
    project: str
    weight: float
    length_s: float


@dataclass(frozen=True, slots=True)
class SimulatedCapacity:
    """How large and how full each OST is at the start, and how it grows."""

    total_bytes: int
    used_pct: float
    growth_bytes_per_day: int
    inodes: int


@dataclass(frozen=True, slots=True)
class SimulatedWorkload:
    """The whole file. `sizes` holds shares per size bin by phase and direction; they add up to one.

    `planted` are jobs with a pattern of their own, beside the streams.
    """

    filesystem: str
    osts: int
    mdts: int
    tick_s: int
    disks: Calibration
    full_pct: float
    correlation: float
    skew: float
    capacity: SimulatedCapacity
    quiet_below_pct: float
    background: Mapping[str, Tail]
    bursts: Mapping[str, Bursts]
    sizes: Mapping[tuple[str, str], tuple[float, ...]]
    hours: tuple[float, ...]
    days: tuple[float, ...]
    metadata: Mapping[str, float]
    jobs: tuple[JobClass, ...]
    planted: tuple[PlantedJob, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        ids = [job.job_id for job in self.planted]
        twice = next((job_id for job_id, count in Counter(ids).items() if count > 1), None)
        if twice is not None:
            raise UsageError(f"two planted jobs are called {twice!r}")
        for job in self.planted:
            self._check(job)

    def _check(self, job: PlantedJob) -> None:
        unknown = {size for _, size in job.ios} - set(SIZES)
        if unknown or {direction for direction, _ in job.ios} - set(DIRECTIONS):
            raise UsageError(f"planted job {job.job_id!r}: I/Os are reads and writes of {', '.join(SIZE_NAMES)}")
        if set(job.metadata) - set(OPERATIONS):
            raise UsageError(f"planted job {job.job_id!r}: metadata operations are {', '.join(OPERATIONS)}")
        if job.job_id.isdecimal() and self.jobs:
            turn, stream = divmod(int(job.job_id), len(self.jobs))
            namesake_s = turn * self.jobs[stream].length_s
            if abs(namesake_s - job.start_s) < _SAME_ID_S:
                raise UsageError(f"planted job {job.job_id!r}: a job of {self.jobs[stream].user} has that number then")

    @property
    def digest(self) -> str:
        """Changes with anything in it."""
        planted = repr(self.planted) if self.planted else ""
        return hashlib.sha256((repr(self) + planted).encode()).hexdigest()[:16]

    def rhythm(self, second: float) -> float:
        """How busy this hour of the (UTC) week is, 1 being usual."""
        hour = int(second) // 3600
        return self.hours[hour % 24] * self.days[(hour // 24 + 3) % 7]  # 1970 began on a Thursday


def shipped_workloads() -> list[str]:
    """Names of the workloads of disks that come with iolens."""
    return sorted(path.stem for path in FOLDER.glob("*.toml") if "kind" not in read_toml(path))


def load_workload(name: str) -> SimulatedWorkload:
    """A shipped workload by name, else the one in the file of that name."""
    if name in shipped_workloads():
        return read_workload(FOLDER / f"{name}.toml")
    path = Path(name)
    if not path.is_file():
        raise InputError(name, "no such workload", f"a TOML file, or one of: {', '.join(shipped_workloads())}")
    return read_workload(path)


def read_workload(path: Path) -> SimulatedWorkload:
    """Parse and check one workload file."""
    top = TomlSection(path, "", read_toml(path))
    if "kind" in top.left:
        problem = f"a workload model (kind = {top.left['kind']!r})"
        raise InputError(str(path), problem, "a workload of disks; `synthesize` and `simulate telemetry` take models")
    try:
        workload = _workload(top)
    except UsageError as error:
        raise InputError(str(path), str(error)) from None
    top.finish()
    return workload


def _workload(top: TomlSection) -> SimulatedWorkload:
    disks, targets, background, rhythm = (top.section(name) for name in ("disks", "targets", "background", "rhythm"))
    osts = top.whole("osts", 1, 65535)
    return SimulatedWorkload(
        filesystem=top.matching("filesystem", _NAME, "a name of at most eight letters, digits or _"),
        osts=osts,
        mdts=top.whole("mdts", 0, 65535),
        tick_s=_tick(top),
        disks=_disks(disks),
        full_pct=disks.number("full_pct", 1, 120, 100.0),
        correlation=targets.number("correlation", 0, 1),
        skew=targets.number("skew", 0, 3, 0.0),
        capacity=_capacity(targets),
        quiet_below_pct=background.number("quiet_below_pct", 0, 100, 0.0),
        background={direction: _tail(background.section(direction)) for direction in DIRECTIONS},
        bursts=_bursts(top.section("burst")),
        sizes=_sizes(top.section("sizes")),
        hours=rhythm.numbers("hours", 24),
        days=rhythm.numbers("days", 7),
        metadata=_metadata(top.section("metadata")),
        jobs=tuple(_job(part) for part in top.sections("jobs")),
        planted=_planted(top, osts),
    )


def _planted(top: TomlSection, osts: int) -> tuple[PlantedJob, ...]:
    sections = top.sections("planted") if "planted" in top.left else []
    sizes = dict(zip(SIZE_NAMES, SIZES, strict=True))
    return tuple(planted_job(section, sizes, OPERATIONS, osts) for section in sections)


def _tick(top: TomlSection) -> int:
    seconds = top.duration("tick")
    if seconds not in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60):
        top.refuse("tick", f"{seconds:g} s", f"whole seconds that divide {HOLD_S} s")
    return int(seconds)


def _disks(section: TomlSection) -> Calibration:
    w0, r0 = (section.number(key, 1e-9, 10) for key in ("w0", "r0"))
    w1, r1 = (section.number(key, 1e-15, 1e-3) for key in ("w1", "r1"))
    return Calibration("simulated", Coefficients(w0, w1), Coefficients(r0, r1))


def _tail(section: TomlSection) -> Tail:
    alpha, scale = section.number("alpha", 0.05, 20), section.number("scale_pct", 1e-6, 1000)
    return Tail(alpha, scale, section.number("maximum_pct", scale, 1e6))


def _bursts(section: TomlSection) -> dict[str, Bursts]:
    result = {}
    for direction in DIRECTIONS:
        part = section.section(direction)
        result[direction] = Bursts(_tail(part), part.duration("every"), part.duration("length"))
        if result[direction].length_s > 6 * 3600:
            part.refuse("length", f"{result[direction].length_s:g} s", "at most 6h")
    return result


def _sizes(section: TomlSection) -> dict[tuple[str, str], tuple[float, ...]]:
    shares = {}
    for phase in PHASES:
        part = section.section(phase)
        for direction in DIRECTIONS:
            bins = part.section(direction)
            given = [bins.number(name, 0, 1e9, 0.0) for name in SIZE_NAMES]
            if sum(given) <= 0:
                part.refuse(direction, dict.fromkeys(SIZE_NAMES, 0), "a share above zero for at least one size")
            shares[phase, direction] = tuple(share / sum(given) for share in given)
    return shares


def _metadata(section: TomlSection) -> dict[str, float]:
    return {name: section.number(name, 0, 1e6, 0.0) for name in OPERATIONS}


def _capacity(section: TomlSection) -> SimulatedCapacity:
    return SimulatedCapacity(
        section.size("total"),
        section.number("used_pct", 0, 95),
        section.size("growth_per_day", "0"),
        section.whole("inodes", 1, 1 << 40),
    )


def _job(section: TomlSection) -> JobClass:
    word = re.compile(r"[A-Za-z0-9_.-]{1,32}")
    names = [section.matching(key, word, "a word of letters, digits, _ . or -") for key in ("user", "project")]
    job = JobClass(names[0], names[1], section.number("weight", 1e-6, 1e6), section.duration("length"))
    if job.length_s < 600 or job.length_s % HOLD_S:
        section.refuse("length", f"{job.length_s:g} s", "whole minutes, at least 10min")
    return job
