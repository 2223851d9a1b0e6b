"""Jobs with a pattern of their own beside the streams of a workload: who, when, on which OSTs, and how much.

A level is the share, in per cent, of an OST's time that the job's disk I/Os take by the workload's disk model (paper U,
Eq. 7), so that its disk-seconds are known. In a workload's file each job is a `[[planted]]`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast, get_args

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats
from iolens.errors import UsageError
from iolens.schema import DIRECTIONS
from iolens.simulator.darshan_runs import Strategy
from iolens.simulator.toml_section import TomlSection

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
