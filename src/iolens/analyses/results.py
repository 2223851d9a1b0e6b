"""What every analysis returns: a frozen dataclass with the window, coverage and the parameters used."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

# Quotients of what may be zero or unknown -----------------------------------------------------------------------------
# None where there is nothing to say.


def ratio(above: float, below: float) -> float | None:
    """Above ÷ below; None of nothing."""
    return above / below if below > 0 else None


def pct(part: int | None, whole: int | None) -> float | None:
    """A part in per cent; None of nothing, or where either is not known."""
    return 100.0 * part / whole if whole and part is not None else None


def not_nan(value: float) -> float | None:
    """The number; None for NaN."""
    return None if value != value else float(value)


# What every analysis returns ------------------------------------------------------------------------------------------
# A frozen dataclass whose field names are the JSON keys.
#
# Fields marked with `not_in_json()` feed figures only; `None` in a field marked `only_if_present()` drops the key.


def not_in_json() -> Any:
    """A field that figures use and JSON leaves out."""
    return field(default=None, metadata={"json": False}, repr=False, compare=False)


def only_if_present() -> Any:
    """A field whose key appears in JSON only when it has a value."""
    return field(default=None, metadata={"json": "present"})


def with_key(key: str) -> Any:
    """A field whose key in JSON is a word that Python has for itself."""
    return field(metadata={"key": key})


def of_servers() -> Any:
    """The field `servers` of a result: the server of each target, put in by whoever asks a store; absent: not known."""
    return field(default=None, kw_only=True, metadata={"json": "present"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OverIntervals:
    """What every result says that rests on intervals.

    Shares of time, distributions, percentiles and tails depend on the length of a sample; sums and means do not. So
    `resolution` names what was read: `raw`, or the rollup `60s` or `1h`. `days_only_in_rollups` are days of the window
    whose raw rows were dropped, and which are not in an answer from raw rows; `days_from_parts` are days whose raw rows
    were dropped, and which are in it by the parts that were kept then.
    """

    resolution: str = "raw"
    days_only_in_rollups: int = 0
    days_from_parts: int | None = only_if_present()


def has_data(result: Any) -> bool:
    """Whether anything of its window is stored: a row that it was made of, or counters that say what was before.

    Coverage is that of what the main figure needs; bytes of days are an answer where sizes of disk I/Os are not stored.
    """
    if getattr(result, "since_start", None) is not None or getattr(result, "daily", None):
        return True
    coverage: Any = getattr(result, "coverage", None)
    if hasattr(coverage, "first_sample"):
        return bool(coverage.first_sample is not None)
    return any(getattr(result, name, None) != 0 for name in ("samples", "readings") if hasattr(result, name))


@dataclass(frozen=True, slots=True)
class TargetCoverage:
    """How much of the window one target reported."""

    target: str
    hours: float
    longest_interval_s: float
    missing_hours: float
    resets: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the answer rests on, and what was missing (B7)."""

    targets_known: int
    targets_reporting: int
    missing_targets: list[str]
    hours_window: float
    hours_min: float | None
    hours_median: float | None
    hours_max: float | None
    complete_pct: float | None
    resets: int
    missed_samples: int
    irregular_samples: int
    ios_outside_bins: int
    targets_without_sizes: list[str]
    sources: list[str]
    overlapping_rows: int
    first_sample: datetime | None
    last_sample: datetime | None
    per_target: list[TargetCoverage]
    notes: list[str]
