"""Made-up runs of studies, as `iolens bench` puts them on record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from iolens.units import GIB, MIB

Rows = list[dict[str, Any]]


def run(direction: str, bytes_per_s: float, **values: Any) -> dict[str, Any]:
    """A run of 1 GiB at a rate."""
    usual = {
        "tool": "sequential", "study": "sequential", "sweep": "blocks", "place": "lake", "host": "n1", "api": "POSIX",
        "direction": direction, "tasks": 1, "file_per_process": True, "transfer_bytes": MIB, "aggregate_bytes": GIB,
        "bytes": GIB, "duration_s": GIB / bytes_per_s, "repetitions": 3, "iteration": 0, "direct": False,
        "fsync": True if direction == "write" else None, "page_cache": "dropped" if direction == "read" else None,
        "memory_bytes": 16 * GIB, "time": 1_700_000_000_000_000,
    }  # fmt: skip
    return {**usual, **values}


def repeats(direction: str, rates: Iterable[float], **values: Any) -> Rows:
    """One case, a run for each rate."""
    return [run(direction, rate, iteration=number, **values) for number, rate in enumerate(rates)]


def grid(cells: Mapping[Any, Sequence[float]], direction: str = "write") -> Rows:
    """Runs of a stripe study: rates by stripe count, stripe size and block size."""
    return [
        row
        for (count, size, block), rates in cells.items()
        for row in repeats(
            direction, rates, study="stripe", sweep="grid", stripe_count=count, stripe_bytes=size, transfer_bytes=block
        )
    ]


def cache_rows(place: str = "lake", memory: int = GIB, **rates: tuple[float, float, float, float]) -> Rows:
    """Runs of a cache study: write, write with fsync, read again and read from disk of the `small` and `large` file."""
    sizes = {"small": memory // 4, "large": 3 * memory}
    passes: tuple[dict[str, Any], ...] = (
        {"fsync": False},
        {"fsync": True},
        {"page_cache": "warm"},
        {"page_cache": "dropped"},
    )
    return [
        run(
            "read" if "page_cache" in values else "write", rate, study="cache", sweep="caches", place=place,
            bytes=sizes[name], aggregate_bytes=sizes[name], duration_s=sizes[name] / rate, memory_bytes=memory,
            **{"fsync": None, "page_cache": None, **values},
        )
        for name, four in rates.items()
        for rate, values in zip(four, passes, strict=True)
    ]  # fmt: skip


def metadata_rows(rates: dict[tuple[str, int], Sequence[float]], **values: Any) -> Rows:
    """Runs of mdtest: rates by operation and number of tasks."""
    usual = {"tool": "mdtest", "study": "metadata", "sweep": "names", "place": "lake", "host": "n1"}
    return [
        {
            **usual, "direction": operation, "tasks": tasks, "reported_ops_per_s": rate, "iteration": number,
            "time": 1_700_000_000_000_000, **values,
        }
        for (operation, tasks), several in rates.items()
        for number, rate in enumerate(several)
    ]  # fmt: skip
