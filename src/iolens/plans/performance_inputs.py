"""The inputs of a performance plan: demand known elsewhere, and percentiles of ticks."""

from __future__ import annotations

from collections.abc import Sequence

from iolens.errors import UsageError
from iolens.plans.inputs import Input
from iolens.plans.numbers import number, rate_or_number


def percentiles(words: Sequence[str]) -> list[float]:
    """Shares of ticks in per cent."""
    if not words:
        raise UsageError("--percentile: name at least one, such as 95")
    return [number(word, "--percentile") for word in words]


def given_demand(text: str) -> Input:
    """A demand known elsewhere, from `MEASURE=VALUE`."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name.endswith("_per_s"):
        raise UsageError(f"--demand {text!r}: write MEASURE=VALUE, such as bytes_per_s=35GB/s or ops_per_s=2e6")
    return rate_or_number(name, value, "--demand")
