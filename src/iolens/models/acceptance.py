"""Whether a storage system passes an acceptance suite (SPEC B10): measured against limits, with scores like IO500's.

A score is the geometric mean of like results, so that a strong one does not hide a weak one; the whole is that of the
bandwidth score in GiB/s and the operations score in thousands per second.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, log
from typing import Literal

from iolens.units import GIB

Verdict = Literal["pass", "fail", "not measured"]
Kind = Literal["bandwidth", "operations", "workload", "script"]


@dataclass(frozen=True, slots=True)
class Limit:
    """What one measure of a step must reach, or must not exceed, and where the number comes from."""

    measure: str
    at_least: float | None
    at_most: float | None
    reason: str

    def verdict(self, value: float | None) -> Verdict:
        """A value at the limit passes."""
        if value is None:
            return "not measured"
        low = self.at_least is not None and value < self.at_least
        high = self.at_most is not None and value > self.at_most
        return "fail" if low or high else "pass"


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """One limit of a step and what was measured; `ratio` is above 1 where the limit is kept with a margin."""

    step: str
    measure: str
    measured: float | None
    at_least: float | None
    at_most: float | None
    ratio: float | None
    verdict: Verdict
    reason: str

    @classmethod
    def of(cls, step: str, limit: Limit, value: float | None) -> LimitCheck:
        """The limit held against a value."""
        ratio = None
        if value is not None and limit.at_least:
            ratio = value / limit.at_least
        elif value and limit.at_most is not None:
            ratio = limit.at_most / value
        return cls(step, limit.measure, value, limit.at_least, limit.at_most, ratio, limit.verdict(value), limit.reason)


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step measured, null where it did not; `trouble` says why it did not run, or not to its end."""

    name: str
    kind: Kind
    tool: str
    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    read_ops_per_s: float | None = None
    write_ops_per_s: float | None = None
    read_p99_s: float | None = None
    write_p99_s: float | None = None
    served_pct: float | None = None
    read_requests_pct: float | None = None
    size_deviation_points: float | None = None
    trouble: str | None = None

    def value(self, measure: str) -> float | None:
        """A measure by its name."""
        number: float | None = getattr(self, measure)
        return number


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The outcome of a suite: `passed` where every limit was measured and kept."""

    filesystem: str
    suite: str
    place: str
    ssi: float
    share: float
    percentile: float
    passed: bool
    score: float | None
    bandwidth_gib_per_s: float | None
    thousand_ops_per_s: float | None
    checks: list[LimitCheck]
    steps: list[StepResult]
    notes: list[str]


MEASURES: tuple[str, ...] = tuple(
    name for name in StepResult.__dataclass_fields__ if name not in ("name", "kind", "tool", "trouble")
)


def bandwidth_score(steps: Iterable[StepResult]) -> float | None:
    """GiB/s, over the directions of the bandwidth steps."""
    return _score(
        (step.read_bytes_per_s or step.write_bytes_per_s for step in steps if step.kind == "bandwidth"), float(GIB)
    )


def operations_score(steps: Iterable[StepResult]) -> float | None:
    """Thousand operations per second, over the directions of the operations steps."""
    return _score((step.read_ops_per_s or step.write_ops_per_s for step in steps if step.kind == "operations"), 1000.0)


def total_score(bandwidth: float | None, operations: float | None) -> float | None:
    """The geometric mean of both."""
    return None if bandwidth is None or operations is None else geometric_mean([bandwidth, operations])


def geometric_mean(values: list[float]) -> float:
    """Of positive values."""
    return exp(sum(log(value) for value in values) / len(values))


def _score(values: Iterable[float | None], unit: float) -> float | None:
    """None where one is missing: a score over fewer steps is not comparable."""
    numbers = list(values)
    known = [value / unit for value in numbers if value]
    return geometric_mean(known) if known and len(known) == len(numbers) else None
