"""What a plan rests on and answers: inputs as values, ranges or distributions, and the answer of every case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.results import not_in_json, only_if_present
from iolens.arrays import Floats
from iolens.errors import UsageError
from iolens.models.dom import Method
from iolens.models.resampling import RESAMPLES, SEED, interval95, portions, resampled_means
from iolens.units import format_bytes, parse_capacity, parse_rate

# What a plan rests on -------------------------------------------------------------------------------------------------
# Every input is a value, a range or a distribution, and knows where it comes from (SPEC P6).

OPTION: Final = "option "  # what the origin of an input begins with that was given on the command line
RANGE: Final = ".."  # `100TB..150TB`

Kind = Literal["value", "range", "distribution"]


@dataclass(frozen=True, slots=True)
class Input:
    """One input: its expected value, between which ends it lies, and its origin in words.

    A value has no width. A range is anything between its ends alike, its middle is expected. A distribution is known
    by samples: their mean is expected, and the ends are the middle 95 % of resampled means.
    """

    name: str
    kind: Kind
    low: float
    expected: float
    high: float
    origin: str
    samples: Floats | None = not_in_json()

    def draws(self, random: np.random.Generator, count: int = RESAMPLES) -> Floats:
        """`count` values it may as well have."""
        if self.samples is not None:
            return resampled_means(self.samples, random, count)
        if self.kind == "range":
            return random.uniform(self.low, self.high, count)
        return np.full(count, self.expected)


def value(name: str, number: float, origin: str) -> Input:
    """A number taken as it is."""
    return Input(name, "value", float(number), float(number), float(number), origin)


def between(name: str, low: float, high: float, origin: str) -> Input:
    """A range; its middle is expected."""
    if low > high:
        raise UsageError(f"{name}: the range begins at {low:g} and ends below it, at {high:g}")
    return Input(name, "range", float(low), (low + high) / 2.0, float(high), origin)


def distribution(name: str, samples: Sequence[float] | Floats, origin: str) -> Input:
    """Samples; their mean is expected."""
    values = np.asarray(samples, dtype=np.float64)
    if not values.size or not np.isfinite(values).all():
        raise UsageError(f"{name}: there are no samples to take a mean of ({origin})")
    ends = interval95(resampled_means(values, np.random.default_rng(SEED)))
    return Input(name, "distribution", ends[0], float(values.mean()), ends[1], origin, values)


def parse_input(name: str, text: str, parse: Callable[[str], float], origin: str) -> Input:
    """`133TB` as a value, `100TB..150TB` as a range. An error names the option, where one was given."""
    low, dots, high = text.partition(RANGE)
    try:
        return between(name, parse(low), parse(high), origin) if dots else value(name, parse(text), origin)
    except ValueError as error:
        place = origin.removeprefix(OPTION) if origin.startswith(OPTION) else name
        raise UsageError(f"{place}: {error}") from error


# Numbers of a plan as people write them; an error names the option ----------------------------------------------------


def number(text: str, option: str) -> float:
    """A plain number."""
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is not a number") from None


def whole_number(text: str, option: str) -> int:
    """A count."""
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{option}: {text!r} is not a whole number")
    return int(text)


def drive_bytes(text: str, option: str) -> int:
    """The size of a drive in bytes."""
    try:
        size = parse_capacity(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
    if not size:
        raise UsageError(f"{option}: a drive has a size above 0")
    return size


def rate_or_number(name: str, text: str, option: str) -> Input:
    """A rate for what is called bytes, a plain number for the rest; `3..4` is a range."""
    parse = parse_rate if "bytes" in name else (lambda word: number(word, option))
    return parse_input(name, text.strip(), parse, f"{OPTION}{option}")


# An input that is a statistic of samples ------------------------------------------------------------------------------
# The median WAF of drives, the 95th percentile of days.

STATISTICS: Final[dict[str, Callable[..., Any]]] = {
    "mean": np.mean,
    "median": np.median,
    "p95": lambda values, axis: np.percentile(values, 95.0, axis=axis, method="linear"),
    "max": np.max,
}
WEIGHTED: Final = "fleet"  # the mean, each drive by the bytes written to it


@dataclass(frozen=True, slots=True)
class Statistic(Input):
    """A distribution of which one statistic is expected; its ends are the middle 95 % over resampled samples."""

    statistic: str = "mean"
    weights: Floats | None = not_in_json()

    def draws(self, random: np.random.Generator, count: int = RESAMPLES) -> Floats:
        """The statistic of `count` resamples."""
        assert self.samples is not None
        return _resampled(self.samples, self.statistic, self.weights, random, count)


def statistic(
    name: str, which: str, samples: Sequence[float], origin: str, weights: Sequence[float] | None = None
) -> Statistic:
    """`mean`, `median`, `p95` or `max` of samples, or with weights `fleet`."""
    known = (*STATISTICS, *((WEIGHTED,) if weights is not None else ()))
    if which not in known:
        raise UsageError(f"{name}: {which!r} is neither a number, a range nor one of {', '.join(known)}")
    values = np.asarray(samples, dtype=np.float64)
    if not values.size:
        raise UsageError(f"{name}: there are no samples to take the {which} of ({origin})")
    heavy = None if weights is None or which != WEIGHTED else np.asarray(weights, dtype=np.float64)
    ends = interval95(_resampled(values, which, heavy, np.random.default_rng(SEED), RESAMPLES))
    expected = float(_of(values[None, :], which, None if heavy is None else heavy[None, :])[0])
    words = f"{which} of {origin}"
    return Statistic(name, "distribution", ends[0], expected, ends[1], words, values, which, heavy)


def _resampled(samples: Floats, which: str, weights: Floats | None, random: np.random.Generator, count: int) -> Floats:
    parts = []
    for size in portions(count, samples.size):
        places = random.integers(0, samples.size, (size, samples.size))
        parts.append(_of(samples[places], which, None if weights is None else weights[places]))
    return np.concatenate(parts)


def _of(rows: Floats, which: str, weights: Floats | None) -> Floats:
    if weights is not None:
        return np.asarray((rows * weights).sum(axis=1) / weights.sum(axis=1))
    return np.asarray(STATISTICS[which](rows, axis=1), dtype=np.float64)


# What a plan answers case by case, and the measurements behind it -----------------------------------------------------
# Shared by the plans and what checks them.

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class CapacityCase:
    """One capacity: `low_bytes` and `high_bytes` with every input at the end that asks for least or most.

    `ci95` is the middle 95 % of 2,000 draws of the inputs; null where every input is a single value.
    """

    ssi: float
    purge_days: float
    purge_fraction: float
    daily_growth_bytes: int
    capacity_bytes: int
    low_bytes: int
    high_bytes: int
    ci95: tuple[int, int] | None
    name: str


@dataclass(frozen=True, slots=True)
class ClassVerdict:
    """One class of drives against one case; lifetimes in years, null where nothing is written.

    It suffices when its rating is at least the high end of what is needed.
    """

    class_dwpd: float
    suffices: bool
    strict_suffices: bool
    lifetime_years: float | None
    headroom_years: float | None
    strict_lifetime_years: float | None
    strict_headroom_years: float | None


@dataclass(frozen=True, slots=True)
class LargerDrive:
    """The same case on as many drives of another size (Eq. 4)."""

    drive_bytes: int
    dwpd: float
    strict_host_dwpd: float
    class_dwpd: float | None
    strict_class_dwpd: float | None


@dataclass(frozen=True, slots=True)
class EnduranceCase:
    """Drive writes per day that one case needs; `low_…` and `high_…` with inputs at the ends that ask least or most.

    Intervals are the middle 95 % of 2,000 draws of the inputs; null where every input is a single value. `needed_…` is
    the class that suffices by the published equation and by host writes strictly counted; null: none on offer does.
    """

    ssi: float
    fswpd: float
    data: int
    parity: int
    waf: float
    dwpd: float
    strict_host_dwpd: float
    strict_nand_dwpd: float
    rmw: float
    capacity_ratio: float
    low_dwpd: float
    high_dwpd: float
    ci95: Interval | None
    strict_host_low_dwpd: float
    strict_host_high_dwpd: float
    strict_host_ci95: Interval | None
    strict_nand_low_dwpd: float
    strict_nand_high_dwpd: float
    strict_nand_ci95: Interval | None
    class_dwpd: float | None
    strict_class_dwpd: float | None
    needed_class_dwpd: float | None
    classes: list[ClassVerdict]
    larger_drives: list[LargerDrive]
    name: str

    @property
    def published_need_dwpd(self) -> float:
        """What a drive must stand by the published equation."""
        return worst(self.high_dwpd, self.ci95)

    @property
    def strict_need_dwpd(self) -> float:
        """What a drive must stand in host writes."""
        return worst(self.strict_host_high_dwpd, self.strict_host_ci95)


@dataclass(frozen=True, slots=True)
class FileSystemWrites:
    """File-system writes per day: bytes written on a UTC day ÷ capacity. Null without a store that knows them.

    Days that are not complete are `left_out`; where less coverage was asked for, they are scaled to a whole day.
    """

    mean: float | None = None
    median: float | None = None
    p95: float | None = None
    max: float | None = None
    days: int = 0
    mean_ci95: Interval | None = None
    days_left_out: int = 0
    left_out: list[date] = field(default_factory=list)
    days_scaled: int = 0
    days_without_writes: int = 0
    first_day: date | None = None
    last_day: date | None = None
    capacity_bytes: int | None = None
    origin: str | None = None
    capacity_origin: str | None = None
    daily: NDArray[np.float64] | None = not_in_json()


@dataclass(frozen=True, slots=True)
class WriteAmplification:
    """WAF over the drives of the store; `fleet` is all their flash bytes ÷ all their host bytes.

    `drives_read_later` had no reading before the window's end: the first after it counts.
    """

    drives: int = 0
    drives_read_later: int = 0
    min: float | None = None
    median: float | None = None
    p95: float | None = None
    max: float | None = None
    mean: float | None = None
    fleet: float | None = None
    origin: str | None = None


def worst(high: float, ends: Interval | None) -> float:
    """The high end, or that of the interval where it reaches further."""
    return max(high, ends[1] if ends is not None else 0.0)


@dataclass(frozen=True, slots=True)
class DomThreshold:
    """What one DOM threshold needs, by one method. Costs are those of MDTs and OSTs together.

    `files_whole_pct` is the share of files that surely fit below the threshold, `capacity_pct` the average total as a
    share of the new capacity, `total_ci95` the middle 95 % of 2,000 resamples of the inodes, all in the average case.
    """

    dom_bytes: int
    method: Method
    dom_min_bytes: int | None
    dom_avg_bytes: int | None
    dom_max_bytes: int | None
    inode_min_bytes: int | None
    inode_avg_bytes: int | None
    inode_max_bytes: int | None
    total_min_bytes: int | None
    total_avg_bytes: int | None
    total_max_bytes: int | None
    total_ci95: tuple[float, float] | None
    files_whole_pct: float
    capacity_pct: float | None
    cost_min: float | None = only_if_present()
    cost_avg: float | None = only_if_present()
    cost_max: float | None = only_if_present()
    cost_over_inodes_only: float | None = only_if_present()

    @property
    def name(self) -> str:
        """`DOM up to 1 MiB`."""
        return f"DOM up to {format_bytes(self.dom_bytes)}"


@dataclass(frozen=True, slots=True)
class PerformanceCase:
    """What one speed asks for at one percentile (100: the largest tick; null: demand was given).

    `low_required` and `high_required` take SSI and demand at their ends; `ci95` is the middle 95 % of 2,000 draws of
    days and of SSI, null where neither is uncertain. The largest tick has no interval of its own: a longer window may
    hold a larger one.
    """

    ssi: float
    measure: str
    unit: str
    percentile: float | None
    demand: float
    required: float
    low_required: float
    high_required: float
    ci95: tuple[float, float] | None
    tick: str = field(default="tick", metadata={"json": False})

    @property
    def name(self) -> str:
        """`SSI 3, 99 % of ticks`, or of days where a tick is a day."""
        share = self.percentile
        measured = f"largest {self.tick}" if share == 100 else f"{share or 0.0:g} % of {self.tick}s"
        words = "as given" if share is None else measured
        return f"SSI {self.ssi:g}, {words}"
