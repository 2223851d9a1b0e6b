"""What is said of one run: its performance, the factors, and which of them explain that it was slow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal

import numpy as np

from iolens.arrays import Floats, Integers
from iolens.models.drift import change_point, relative_clearness
from iolens.models.trend import holm, percentile_of, spearman
from iolens.units import epoch_us, from_epoch_us

# What is said of one run ----------------------------------------------------------------------------------------------
# Its performance, the factors beside it, its history, and what could not be known.

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


# Which factors explain a slow run -------------------------------------------------------------------------------------
# Unusual for it, and known to go with its performance (DEFINITIONS, Was it me).

LOW_PCT: Final = 10.0
HIGH_PCT: Final = 90.0
SIGNIFICANCE: Final = 0.05
CHANGE_P: Final = 0.01
TOGETHER: Final = 2  # runs by which a factor may change sooner or later than performance …
AS_CLEAR: Final = 0.9  # … unless a fall at its change is nearly as clear as where it is clearest
COUNTS: Final = ("bytes", "opens")


@dataclass(frozen=True, slots=True, eq=False)
class FactorValues:
    """One factor: of the run, of its history, and of the runs over which it is related to performance. NaN: not known.

    `least_difference`: a run that is nearer to the median of its history is as usual. `shown` is the value in words.
    `others_rate` and `others_rates`: a second number that has to be high as well; coverage has one. A value below
    `harmful_from` harms nobody, nor does a lasting change to one below `change_harmful_from`. `harms_by`: 1 where more
    of it slows runs down, −1 where less does; 0: by ρ. Not `is_possible`: the run has nothing that it could slow down.
    `target`: the OST that has the value.
    """

    name: str
    value: float
    history: Floats
    related: Floats
    performance: Floats
    least_difference: float = 0.0
    shown: str | None = None
    harmful_from: float = -math.inf
    change_harmful_from: float = -math.inf
    harms_by: int = 0
    is_possible: bool = True
    target: str | None = None
    others_rate: float = math.nan
    others_rates: Floats = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, slots=True, eq=False)
class RunOrder:
    """When the runs of a history and the run itself began, in the order of time, and how fast each was.

    The run is number `itself` of them.
    """

    start_us: Integers
    itself: int
    performance: Floats

    def series(self, factor: FactorValues) -> Floats:
        """A factor's values in this order."""
        return np.insert(factor.history, self.itself, factor.value)

    def change(self, values: Floats) -> LastingChange | None:
        """A step in a series of this order that is beyond chance and lasts until the run."""
        known = np.flatnonzero(~np.isnan(values))
        step = change_point(values[known])
        if step is None or step.p >= CHANGE_P or known[step.place] > self.itself:
            return None
        since = from_epoch_us(int(self.start_us[known[step.place]]))
        return LastingChange(since, step.before, step.after, len(known) - step.place, step.p)

    def place(self, change: LastingChange) -> int:
        """Of the first run after a change."""
        return int(np.searchsorted(self.start_us, epoch_us(change.since)))

    @property
    def fall(self) -> LastingChange | None:
        """The lasting fall of performance."""
        change = self.change(self.performance)
        return change if change is not None and change.after < change.before else None

    def is_at(self, fall: LastingChange, change: LastingChange) -> bool:
        """Whether something changed when performance fell."""
        place = self.place(change)
        if abs(place - self.place(fall)) <= TOGETHER:
            return True
        known = ~np.isnan(self.performance)
        return relative_clearness(self.performance[known], int(known[:place].sum())) >= AS_CLEAR


def judged(
    factors: Sequence[FactorValues],
    is_enough: bool,
    is_slow: bool,
    order: RunOrder | None = None,
    fall: LastingChange | None = None,
) -> list[ExplainedFactor]:
    """All factors with percentile, ρ and p; those that explain a slow run are named.

    A factor explains it by its place in the history and its ρ, or because it changed when performance fell for good.
    """
    lines = [_judged(factor, is_enough) for factor in factors]
    tested = [place for place, line in enumerate(lines) if line.p is not None]
    corrected = holm([p for line in lines if (p := line.p) is not None])
    for place, p in zip(tested, corrected, strict=True):
        lines[place] = replace(lines[place], p_holm=p)
    if order is not None and fall is not None:
        changes = _changes(order, factors)
        lines = [
            replace(line, change=change if change and _is_with(fall, change, order, line, factor) else None)
            for line, factor, change in zip(lines, factors, changes, strict=True)
        ]
    return [
        replace(line, named=is_slow and (line.change is not None or _explains(line, factor)))
        for line, factor in zip(lines, factors, strict=True)
    ]


def _changes(order: RunOrder, factors: Sequence[FactorValues]) -> list[LastingChange | None]:
    """The step of each factor that is beyond chance among all of them (Holm)."""
    changes = [None if math.isnan(factor.value) else order.change(order.series(factor)) for factor in factors]
    tested = sum(not math.isnan(factor.value) for factor in factors)
    stepped = [place for place, change in enumerate(changes) if change is not None]
    beyond = [1.0] * (tested - len(stepped))
    corrected = holm([*(change.p for change in changes if change is not None), *beyond])
    for place, p in zip(stepped, corrected, strict=False):
        changes[place] = changes[place] if p < CHANGE_P else None
    return changes


def _is_with(
    fall: LastingChange, change: LastingChange, order: RunOrder, line: ExplainedFactor, factor: FactorValues
) -> bool:
    """Whether a factor changed at about the time of the fall, in the direction that slows runs down."""
    if not order.is_at(fall, change):
        return False
    is_related = line.rho is not None and line.p_holm is not None and line.p_holm < SIGNIFICANCE
    harms_by = factor.harms_by or (-np.sign(line.rho or 0.0) if is_related else 0)
    is_worse = (change.after - change.before) * harms_by > 0
    is_harmful = factor.is_possible and min(change.after, factor.value) >= factor.change_harmful_from
    is_large = abs(change.after - change.before) > factor.least_difference and _differs_from(change.before, factor)
    return bool(is_worse and is_harmful and is_large and _is_by_others(factor))


def _differs_from(usual: float, factor: FactorValues) -> bool:
    return abs(factor.value - usual) > factor.least_difference


def verdict_of(
    own: Sequence[ExplainedFactor], system: Sequence[ExplainedFactor], is_slow: bool | None, on_slow_ost: bool = False
) -> Verdict:
    """By the named factors, and by a slow OST of its files; None: the history is too short to say."""
    if is_slow is None:
        return "too little history"
    if not is_slow:
        return "not slow"
    by_own, by_system = (any(line.named for line in lines) for lines in (own, system))
    by_system |= on_slow_ost
    if by_own and by_system:
        return "both"
    return "own" if by_own else "system" if by_system else "unexplained"


def _judged(factor: FactorValues, is_enough: bool) -> ExplainedFactor:
    is_known = ~(np.isnan(factor.related) | np.isnan(factor.performance))
    related = spearman(factor.related[is_known], factor.performance[is_known]) if is_enough else None
    rho, p = related or (None, None)
    percentile = percentile_of(factor.value, factor.history) if is_enough else None
    runs = int(is_known.sum())
    return ExplainedFactor(factor.name, _shown(factor), percentile, rho, p, None, runs, False, factor.target)


def _shown(factor: FactorValues) -> float | str | None:
    """The value as it is given: counts are whole numbers, a strategy has a name."""
    if math.isnan(factor.value):
        return None
    return factor.shown or (int(factor.value) if factor.name in COUNTS else factor.value)


def _explains(line: ExplainedFactor, factor: FactorValues) -> bool:
    """Whether the run is beyond its history in the direction in which runs are slower."""
    if line.percentile is None or line.rho is None or line.p_holm is None or line.p_holm >= SIGNIFICANCE:
        return False
    is_beyond = line.percentile > HIGH_PCT if line.rho < 0 else line.percentile < LOW_PCT
    is_harmful = factor.is_possible and factor.value >= factor.harmful_from
    usual = float(np.median(factor.history[~np.isnan(factor.history)]))
    return is_beyond and is_harmful and _differs_from(usual, factor) and _is_by_others(factor)


def _is_by_others(factor: FactorValues) -> bool:
    """A slow run lasts longer, and others move more in that time: they must have done more per second as well."""
    if not factor.others_rates.size:
        return True
    place = percentile_of(factor.others_rate, factor.others_rates)
    return place is not None and place > HIGH_PCT
