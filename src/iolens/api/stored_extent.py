"""What is stored: from when to when, of the tables that an analysis reads, and for how many days."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from iolens.units import DAY_US, from_epoch_us, iso

if TYPE_CHECKING:
    from iolens.api.access.store_analyses import StoreAnalyses

LOAD: Final = ("target_sizes", "target_io")
READ: Final[Mapping[str, tuple[str, ...]]] = {
    "blame": ("job_io", *LOAD, "metadata_ops"),
    "capacity": ("target_capacity",),
    "contents": ("contents",),
    "drives": ("drives",),
    "latency": ("target_histograms", "target_io"),
    "metadata": ("metadata_ops",),
}


def nothing_stored(opened: StoreAnalyses, analysis: str, filesystem: str) -> str:
    """`scratch: nothing is stored of this window; stored is 2026-01-05T00:00:00Z to 2026-01-06T00:00:00Z`."""
    stored = stored_words(opened, analysis, filesystem)
    if not stored:
        return f"{filesystem}: nothing is stored that {analysis} reads"
    return f"{filesystem}: nothing is stored of this window; {stored}"


def stored_words(opened: StoreAnalyses, analysis: str, filesystem: str | None) -> str:
    """`stored is 2026-01-05T00:00:00Z to 2026-01-06T00:00:00Z`; empty where nothing is."""
    extent = opened.store.select(filesystem).extent_us(*READ.get(analysis, LOAD))
    return "" if extent is None else "stored is {} to {}".format(*(iso(from_epoch_us(end)) for end in extent))


def stored_days(opened: StoreAnalyses) -> dict[str, int]:
    """Whole days from the first to the last disk I/O that is stored, by file system; by the log alone."""
    names = opened.store.targets_by_filesystem()
    return {name: whole_days(opened.store.select(name).extent_us(*LOAD)) for name in names}


def whole_days(extent_us: tuple[int, int] | None) -> int:
    """How many fit between its ends."""
    return 0 if extent_us is None else (extent_us[1] - extent_us[0]) // DAY_US
