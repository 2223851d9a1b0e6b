"""Answers of studies, made up: bandwidth, stripes, memory, metadata, two studies side by side, the list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from iolens.analyses.bench_bandwidth import StudyBandwidth, study_bandwidth
from iolens.analyses.bench_cache import CacheStudy, cache_study
from iolens.analyses.bench_compare import StudyComparison, study_comparison
from iolens.analyses.bench_list import StoredStudy, StudyList
from iolens.analyses.bench_metadata import MetadataStudy, metadata_study
from iolens.analyses.bench_stripe import StripeRecommendation, stripe_recommendation
from iolens.units import GIB, KIB, MIB
from tests.analyses.study_rows import Rows, cache_rows, grid, metadata_rows, repeats

MB = 1e6


def block_rows(factor: float = 1.0) -> Rows:
    """Two places over seven block sizes, three runs each; the second is faster for large blocks."""
    return [
        row
        for place, gain in (("home", 1.0), ("lake", 1.6))
        for direction, peak in (("write", 200 * MB), ("read", 500 * MB))
        for power in range(0, 14, 2)
        for row in repeats(
            direction, [factor * peak * gain**power * share / (1 + 4 / 2**power) for share in (0.9, 1.0, 0.95)],
            place=place, transfer_bytes=4 * KIB << power,
        )
    ]  # fmt: skip


def two_places() -> StudyBandwidth:
    return study_bandwidth(block_rows())


def files_of_tasks() -> StudyBandwidth:
    """IOR with a file for each task and one for all, by aggregate size."""
    return study_bandwidth(
        [
            row
            for is_per_process, size, tasks in product((True, False), (GIB, 4 * GIB, 16 * GIB), (2, 8))
            for direction in ("write", "read")
            for row in repeats(
                direction, [(400 if is_per_process else 300) * MB * tasks**0.5, 250 * MB], study="ior", tool="ior",
                sweep="ior", file_per_process=is_per_process, aggregate_bytes=size, tasks=tasks, page_cache="warm",
            )
        ]
    )  # fmt: skip


def one_run() -> StudyBandwidth:
    return study_bandwidth(repeats("write", [123 * MB]))


def striped_rows() -> Rows:
    """One OST at 220 and 16 at 714 MB/s at best, as paper N's writes; reads from 385 to 920 MB/s."""
    ends = {"write": (220, 714), "read": (385, 920)}
    rows = []
    for direction, (low, high) in ends.items():
        cells = {
            (count, size, block): [
                (low + (high - low) * share)
                * MB
                * (1.0 if size == MIB else 0.9)
                * (1.0 if block > MIB else 0.8)
                * noise
                for noise in (0.98, 0.99, 1.0)
            ]
            for count, share in ((1, 0.0), (4, 0.5), (16, 1.0))
            for size, block in product((MIB, 32 * MIB), (64 * KIB, 4 * MIB, 16 * MIB))
        }
        rows += grid(cells, direction)
    return rows


def striped() -> StripeRecommendation:
    return stripe_recommendation(striped_rows())


def flat() -> StripeRecommendation:
    cells = {(count, MIB, MIB): [100.0 * MB, 140.0 * MB, 120.0 * MB] for count in (1, 4, 16)}
    return stripe_recommendation(grid({**cells, (8, MIB, MIB): [102.0 * MB, 141.0 * MB, 121.0 * MB]}))


def blocks_only() -> StripeRecommendation:
    return stripe_recommendation(grid({(None, None, KIB): [1e8], (None, None, MIB): [3e8]}))


def cached() -> CacheStudy:
    return cache_study(
        [
            *cache_rows("lake", small=(900 * MB, 100 * MB, 4000 * MB, 200 * MB), large=(150 * MB,) * 4),
            *cache_rows(
                "home", small=(90 * MB, 80 * MB, 300 * MB, 200 * MB), large=(70 * MB, 60 * MB, 90 * MB, 80 * MB)
            ),
        ]
    )


def names() -> MetadataStudy:
    kinds = ("directory_creation", "directory_stat", "directory_removal", "file_creation", "file_stat", "file_removal")
    return metadata_study(
        metadata_rows(
            {
                (kind, tasks): [1000.0 * (number + 1) ** 2 * tasks**0.7 * share for share in (0.9, 1.0)]
                for (number, kind), tasks in product(enumerate(kinds), (1, 4, 16))
            }
        )
    )


def side_by_side() -> StudyComparison:
    return study_comparison("before", block_rows(), "after", [*block_rows(1.25), *repeats("write", [MB], tasks=9)])


def slower_names() -> StudyComparison:
    before, after = (metadata_rows({("file_stat", 1): [factor * 100, factor * 102]}) for factor in (2.0, 1.0))
    return study_comparison("before", before, "after", after)


def listed() -> StudyList:
    began, ended = datetime(2026, 11, 18, 9, 30, tzinfo=UTC), datetime(2026, 11, 18, 9, 42, tzinfo=UTC)
    return StudyList(
        [
            StoredStudy("stripe-20261118T093000-1a2b3c", "stripe", ("lake",), ("n1",), 600, began, ended),
            StoredStudy("cache-20261117T093000-4d5e6f", "cache", ("lake", "home"), ("n1", "n2"), 8, None, None),
        ]
    )


def no_studies() -> StudyList:
    return StudyList([])


def _made(*answers: Callable[[], Any]) -> Callable[[Path], Iterator[Any]]:
    return lambda _: (answer() for answer in answers)


STUDY_ANSWERS = {
    "bench_bandwidth": _made(two_places, files_of_tasks, one_run, lambda: study_bandwidth(striped_rows())),
    "bench_stripe": _made(striped, flat, blocks_only),
    "bench_cache": _made(cached, lambda: cache_study(cache_rows(small=(MB,) * 4))),
    "bench_metadata": _made(names),
    "bench_compare": _made(side_by_side, slower_names),
    "bench_list": _made(listed, no_studies),
}
