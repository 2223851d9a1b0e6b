"""Made-up rows of `bench latency`: the same small numbers wherever a test needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

US = 1e-6
CALLS = {
    "write": ("getcwd", "open", "ioctl", "fstat", "lseek", "ftruncate", "write", "close"),
    "read": ("getcwd", "open", "ioctl", "fstat", "lseek", "read", "close"),
}
# Mean microseconds of calls on two file systems; calls that are not named take as long as getppid.
NFS = {"getppid": 10.0, "open": 100.0, "fstat": 12.0, "write": 20.0, "close": 30.0}
LUSTRE = {"getppid": 10.0, "open": 160.0, "fstat": 480.0, "write": 40.0, "close": 30.0}


def call_row(
    place: str, direction: str, call: str, mean_us: float, iteration: int = 0, calls: int = 100, **values: Any
) -> dict[str, Any]:
    """One call of one pass; its median is a microsecond below the mean, its 99th percentile thrice as high."""
    return {
        "study": "latency",
        "sweep": "latency-made-up",
        "tool": "strace",
        "place": place,
        "time": 1_000_000 * (iteration + 1),
        "direction": direction,
        "call": call,
        "iteration": iteration,
        "transfer_bytes": 8,
        "operations": calls,
        "duration_s": calls * mean_us * US,
        "latency_mean_s": mean_us * US,
        "latency_median_s": (mean_us - 1.0) * US,
        "latency_p99_s": 3.0 * mean_us * US,
        **({"bytes": 8 * calls} if call == direction else {}),
        **values,
    }


def study_rows(
    means: Mapping[str, Mapping[str, float]], factors: Sequence[float] = (0.98, 1.0, 1.02), **values: Any
) -> list[dict[str, Any]]:
    """Passes over several places; each pass is a factor slower or faster than the means."""
    return [
        call_row(place, direction, call, by_call.get(call, by_call["getppid"]) * factor, iteration, **values)
        for iteration, factor in enumerate(factors)
        for place, by_call in means.items()
        for direction in ("write", "read")
        for call in ("getppid", *CALLS[direction])
    ]
