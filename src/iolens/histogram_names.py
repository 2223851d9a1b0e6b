"""The histograms of `target_histograms` that others than their source read: their names, and what their bins mean.

In flight: `disk_ios_in_flight` counts rows of its own for 1, 2, 3, … up to 31, which is "or more"; Lustre 2.17.51 and
later count in powers of two (`disk_ios_in_flight_pow2`), where 4 stands for 3 and 4. Latency by size (Lustre 2.17's
`io_latency_stats`): one histogram for each size of an I/O, named with the smallest size it holds; a bin is labelled
with its upper bound in nanoseconds.
"""

from __future__ import annotations

from typing import Final

IO_TIME: Final = "io_time_ms"
IN_FLIGHT: Final = "disk_ios_in_flight"
IN_FLIGHT_POW2: Final = "disk_ios_in_flight_pow2"
IN_FLIGHTS: Final = (IN_FLIGHT, IN_FLIGHT_POW2)
LAST_IN_FLIGHT: Final = 31  # the last row of `disk_ios_in_flight`: this many, or more

_LATENCY: Final = "io_latency_ns_from_"
LATENCY_SIZES: Final = tuple(1 << power for power in range(12, 27))
"""Smallest sizes that Lustre counts apart, bytes: each holds I/Os up to just below the next."""
LATENCY_HISTOGRAMS: Final = {size: f"{_LATENCY}{size}" for size in LATENCY_SIZES}
_SIZES: Final = {name: size for size, name in LATENCY_HISTOGRAMS.items()}


def latency_size(histogram: str) -> int | None:
    """The smallest size in bytes that a latency histogram holds; below twice as much is in it. None: another one."""
    return _SIZES.get(histogram)


def in_flight_of(histogram: str, label: int) -> tuple[float, int]:
    """Mean of the numbers in flight that a bin holds, taken as equally frequent, and the smallest of them."""
    if histogram == IN_FLIGHT or label < 4:
        return float(label), label
    smallest = label // 2 + 1
    return (smallest + label) / 2, smallest
