"""What is said of one run: its performance, the factors beside it, its history, and what could not be known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from iolens.arrays import Floats, Integers

Verdict = Literal["own", "system", "both", "unexplained", "not slow", "too little history", "no log"]

OWN: Final = ("bytes", "opens", "mean_access_bytes", "small_access_pct", "sequential_pct", "strategy")
SYSTEM: Final = (
    "fsu_others_pct", "mdt_ops_per_s", "imbalance", "fullness_pct", "slowest_ost_ratio", "coverage_factor",
)  # fmt: skip
ShareOf = Literal["disk_seconds", "metadata_seconds", "metadata_operations"]


@dataclass(frozen=True, slots=True)
class RunPerformance:
    """Bytes ÷ I/O time of the slowest rank, per node where nodes are known; its place among like runs."""

    value: float | None
    unit: str  # MiB/s/CN or MiB/s
    history_percentile: float | None
    first_quartile: float | None  # of the history: slower than this is slow
    median: float | None


@dataclass(frozen=True, slots=True)
class LastingChange:
    """A step in the history: medians before and after, the first run after it, and runs after it, the run included."""

    since: datetime
    before: float
    after: float
    runs_after: int
    p: float


@dataclass(frozen=True, slots=True)
class ExplainedFactor:
    """One factor of a run. `percentile` is in the history, `rho` Spearman's with performance over `rho_runs` runs.

    `p` is that of ρ alone, `p_holm` corrected for all factors. `named`: it is part of the verdict. `target`: the OST
    that has the value, of a factor that is one OST's. `change`: it changed when performance fell, and stayed so.
    """

    factor: str
    value: float | str | None
    percentile: float | None
    rho: float | None
    p: float | None
    p_holm: float | None
    rho_runs: int
    named: bool
    target: str | None = None
    change: LastingChange | None = None


@dataclass(frozen=True, slots=True)
class RunNeighbour:
    """A job that used the same targets at the same time, and its share of what they did, which `share_of` names."""

    name: str
    share_pct: float
    user: str | None
    executable: str | None
    share_of: ShareOf = "disk_seconds"


@dataclass(frozen=True, slots=True)
class LikeHistory:
    """The runs that a run is compared with; `relaxed`: of the same user, program and processes, whatever they moved.

    `program_runs` are runs of the same user, program and processes: over these own factors are related to performance.
    `after` of the `runs` came after the run: they are used where fewer than five came before.
    """

    runs: int
    relaxed: bool
    program_runs: int
    left_out: int  # like runs further away in time than those taken
    after: int = 0


@dataclass(frozen=True, slots=True)
class UnknownFactor:
    """What has no value, and why."""

    factor: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class HistorySeries:
    """For figures: the runs of the history and the run itself in the order of their start; NaN is not known."""

    start_us: Integers
    is_run: Integers  # 1 at the run itself
    performance: Floats
    factors: dict[str, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class RunLoad:
    """For figures: the load of the run's targets in steps of time, and the bytes of the run."""

    step_us: Integers  # ends of steps, one more than there are steps
    fsu_pct: Floats
    others_pct: Floats
    activity_us: Integers  # ends of bins, one more than there are bins
    bytes_per_s: Floats
