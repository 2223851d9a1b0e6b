"""A workload is a readable TOML file: what the disks are, how they are loaded, and by which jobs on which nodes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast, get_args

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats
from iolens.errors import InputError, UsageError
from iolens.models.transaction_time import Calibration, Coefficients
from iolens.schema import DIRECTIONS
from iolens.simulator.darshan_runs import Strategy
from iolens.simulator.toml_section import TomlSection, read_toml

# Jobs with a pattern of their own beside the streams of a workload ----------------------------------------------------
# Who, when, on which OSTs, and how much.
#
# A level is the share, in per cent, of an OST's time that the job's disk I/Os take by the workload's disk model (paper
# U, Eq. 7), so that its disk-seconds are known. In a workload's file each job is a `[[planted]]`.

MINUTE_S: Final = 60
HIGHEST_PCT: Final = 130.0  # no disk does more
MOST_PER_S: Final = 1e6  # metadata operations
MOST_NODES: Final = 100_000
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,32}")
_WORD_TEXT: Final = "a word of letters, digits, _ . or -"
_STRATEGIES: Final = tuple(name for name in get_args(Strategy) if name != "none")


@dataclass(frozen=True, slots=True)
class PlantedJob:
    """One job. `ios` has shares of its disk I/Os by direction and bytes, on any scale; `osts` are indices (None: all).

    While it is active, its I/Os take `level_pct` of the time of each of its OSTs, and it does `metadata` operations per
    second on all MDTs together. With `period_s` it is active in the first `active_share` of each period from its start.
    With a `strategy` it is under Darshan, and its accesses are one after another unless they are `is_random`.
    """

    job_id: str
    user: str
    project: str
    executable: str
    nodes: int
    start_s: int
    end_s: int
    level_pct: float = 0.0
    ios: Mapping[tuple[str, int], float] = field(default_factory=dict)
    osts: tuple[int, ...] | None = None
    period_s: float | None = None
    active_share: float = 1.0
    metadata: Mapping[str, float] = field(default_factory=dict)
    strategy: Strategy | None = None
    is_random: bool = False

    def __post_init__(self) -> None:
        for is_wrong, problem in _problems(self):
            if is_wrong:
                raise UsageError(f"planted job {self.job_id!r}: {problem}")

    def active_s(self, until_s: NDArray[np.float64]) -> Floats:
        """Seconds that it was active before each of these times."""
        ran = np.clip(until_s, self.start_s, self.end_s) - self.start_s
        if self.period_s is None:
            return ran
        within = self.period_s * self.active_share
        periods, rest = np.divmod(ran, self.period_s)
        active: Floats = periods * within + np.minimum(rest, within)
        return active


def _problems(job: PlantedJob) -> Sequence[tuple[bool, str]]:
    minutes = job.start_s % MINUTE_S == 0 and job.end_s % MINUTE_S == 0
    return (
        (not minutes or job.end_s <= job.start_s, "starts and ends on whole minutes, and ends after its start"),
        (not 0 <= job.level_pct <= HIGHEST_PCT, f"its level is 0 to {HIGHEST_PCT:g} per cent, not {job.level_pct:g}"),
        (job.level_pct > 0 and sum(job.ios.values()) <= 0, "a level needs sizes of reads or writes"),
        (any(share < 0 for share in job.ios.values()), "shares of I/Os are zero or more"),
        (job.osts is not None and (not job.osts or len(set(job.osts)) < len(job.osts)), "names an OST once, and some"),
        (job.nodes < 1, "runs on at least one node"),
        (job.period_s is not None and job.period_s <= 0, "a period is longer than nothing"),
        (not 0 < job.active_share <= 1, f"is active for a share above 0, up to 1, not {job.active_share:g}"),
        (job.period_s is None and job.active_share < 1, "is active for a share of what period?"),
        (any(rate < 0 for rate in job.metadata.values()), "metadata operations per second are zero or more"),
        (job.strategy not in (None, *_STRATEGIES), f"a log is of one of {', '.join(_STRATEGIES)}"),
        (job.strategy is not None and not job.job_id.isdecimal(), "Darshan needs a number as job id"),
    )


def planted_job(section: TomlSection, sizes: Mapping[str, int], operations: Sequence[str], osts: int) -> PlantedJob:
    """A `[[planted]]` of a workload's file; `sizes` are the known sizes of I/Os by name."""
    job_id, user, project, executable = (
        section.matching(key, _WORD, _WORD_TEXT) for key in ("job_id", "user", "project", "executable")
    )
    start_s, end_s = _times(section)
    level_pct, ios = _ios(section, sizes)
    period_s, active_share = _period(section)
    return PlantedJob(
        job_id,
        user,
        project,
        executable,
        nodes=section.whole("nodes", 1, MOST_NODES),
        start_s=start_s,
        end_s=end_s,
        level_pct=level_pct,
        ios=ios,
        osts=section.indices("osts", osts) if "osts" in section.left else None,
        period_s=period_s,
        active_share=active_share,
        metadata=_rates(section, operations),
        strategy=_strategy(section, job_id),
    )


def _times(section: TomlSection) -> tuple[int, int]:
    start_s, end_s = (_whole_minute(section, key) for key in ("start", "end"))
    if end_s <= start_s:
        section.refuse("end", "at or before the start", "a time after it")
    return start_s, end_s


def _ios(section: TomlSection, sizes: Mapping[str, int]) -> tuple[float, dict[tuple[str, int], float]]:
    shares = {
        (direction, size): share
        for direction in DIRECTIONS
        for part in section.some(direction)
        for name, size in sizes.items()
        if (share := part.number(name, 0, 1e9, 0.0))
    }
    level_pct = section.number("level_pct", 0, HIGHEST_PCT, 0.0)
    if level_pct > 0 and not shares:
        section.refuse("level_pct", level_pct, "a share above zero for at least one size in read or write")
    return level_pct, shares


def _period(section: TomlSection) -> tuple[float | None, float]:
    period_s = section.duration("period") if "period" in section.left else None
    if period_s is None and "active_pct" in section.left:
        section.refuse("active_pct", section.left["active_pct"], "a period beside it")
    return period_s, section.number("active_pct", 1e-3, 100, 100.0) / 100.0


def _rates(section: TomlSection, operations: Sequence[str]) -> dict[str, float]:
    rates = {name: part.number(name, 0, MOST_PER_S, 0.0) for part in section.some("metadata") for name in operations}
    return {name: rate for name, rate in rates.items() if rate}


def _strategy(section: TomlSection, job_id: str) -> Strategy | None:
    if "darshan" not in section.left:
        return None
    if not job_id.isdecimal():
        section.refuse("job_id", job_id, "a number, for a job under Darshan")
    known = re.compile("|".join(_STRATEGIES))
    return cast("Strategy", section.matching("darshan", known, f"one of {', '.join(_STRATEGIES)}"))


def _whole_minute(section: TomlSection, key: str) -> int:
    seconds = section.time(key)
    if seconds % MINUTE_S:
        section.refuse(key, f"{seconds:g} s since 1970", "a time on a whole minute")
    return int(seconds)


# A workload is a readable TOML file -----------------------------------------------------------------------------------
# What the disks are, how they are loaded, and who loads them.
#
# Levels are per cent of the time of a target's disks. An unknown key is refused, never ignored.

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


# Which nodes the jobs of a simulated file system run on ---------------------------------------------------------------


def placed_on(workload: SimulatedWorkload, nodes: int) -> list[list[int]]:
    """Which nodes the jobs of each stream run on: by weight, at least one; fewer nodes than streams are shared.

    Planted jobs have nodes of their own behind them, if there are enough.
    """
    left = nodes - _span(workload) if _is_wide_enough(workload, nodes) else nodes
    weights = np.array([job.weight for job in workload.jobs])
    if left < len(weights):
        return [[number % left] for number in range(len(weights))]
    exact = weights / weights.sum() * (left - len(weights))
    sizes = 1 + np.floor(exact).astype(int)
    for number in np.argsort(np.floor(exact) - exact, kind="stable")[: left - sizes.sum()]:
        sizes[number] += 1
    ends = np.cumsum(sizes)
    return [list(range(end - size, end)) for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)]


def planted_on(workload: SimulatedWorkload, nodes: int) -> dict[str, list[int]]:
    """Which nodes each planted job runs on: neighbours, its own where there are enough, else shared with others."""
    first = nodes - _span(workload) if _is_wide_enough(workload, nodes) else 0
    offsets, placed = _offsets(workload), {}
    for job in workload.planted:
        width = min(job.nodes, nodes)
        start = min(first + offsets[job.job_id], nodes - width)
        placed[job.job_id] = list(range(start, start + width))
    return placed


def nodes_of_jobs(workload: SimulatedWorkload, nodes: int) -> list[list[int]]:
    """Nodes by number of the job: of the streams first, then of planted jobs."""
    return [*placed_on(workload, nodes), *planted_on(workload, nodes).values()]


def _is_wide_enough(workload: SimulatedWorkload, nodes: int) -> bool:
    return nodes - _span(workload) >= len(workload.jobs)


def _span(workload: SimulatedWorkload) -> int:
    """Nodes that planted jobs need so that no two share one."""
    offsets = _offsets(workload)
    return max((offsets[job.job_id] + job.nodes for job in workload.planted), default=0)


def _offsets(workload: SimulatedWorkload) -> dict[str, int]:
    """The first node of each planted job, counted from the first of all of them: the lowest that is free."""
    offsets: dict[str, int] = {}
    placed: list[PlantedJob] = []
    for job in sorted(workload.planted, key=lambda job: (job.start_s, job.job_id)):
        others = [other for other in placed if other.start_s < job.end_s and job.start_s < other.end_s]
        offset = 0
        for other in sorted(others, key=lambda other: offsets[other.job_id]):
            if offset + job.nodes <= offsets[other.job_id]:
                break
            offset = max(offset, offsets[other.job_id] + other.nodes)
        offsets[job.job_id] = offset
        placed.append(job)
    return offsets
