"""The cache study: what a file that fits into memory and one that does not say of reads and writes."""

from __future__ import annotations

import pytest

from iolens.analyses.bench_cache import cache_study
from iolens.errors import UsageError
from iolens.units import GIB, MIB
from tests.analyses.study_rows import cache_rows

MB = 1e6


def test_memory_answers_for_the_file_that_fits_and_writes_are_kept_back() -> None:
    result = cache_study(cache_rows(small=(900 * MB, 100 * MB, 4000 * MB, 200 * MB), large=(150 * MB,) * 4))
    small, large = result.files
    assert (small.file_bytes, small.fits, large.fits) == (GIB // 4, True, False)
    assert small.read_factor == pytest.approx(20.0)
    assert small.write_factor == pytest.approx(9.0)
    assert large.read_factor == pytest.approx(1.0)
    (policy,) = result.policies
    assert (policy.reads_cached, policy.large_reads_cached, policy.write_back) == (True, False, True)
    assert policy.words == [
        "A file that fits into memory is read again 20.0 times as fast as from disk: it came from memory.",
        "A file that does not fit is read again 1.0 times as fast as from disk: it came from the disk again.",
        "A write returns 9.0 times as fast as with its fsync: writes return before they are on disk (write-back).",
    ]
    assert result.warnings == []


def test_no_cache_and_writes_that_go_through() -> None:
    rows = cache_rows(small=(100 * MB, 99 * MB, 210 * MB, 200 * MB), large=(100 * MB, 99 * MB, 900 * MB, 200 * MB))
    (policy,) = cache_study(rows).policies
    assert (policy.reads_cached, policy.large_reads_cached, policy.write_back) == (False, True, False)
    assert "memory made little difference" in policy.words[0]
    assert "part of it came from memory" in policy.words[1]
    assert "as with write-through" in policy.words[2]


def test_rates_are_medians_of_the_repeats() -> None:
    rows = [
        {**row, "iteration": number}
        for number, factor in enumerate((1.0, 3.0, 10.0))
        for row in cache_rows(small=(factor * MB,) * 4, large=(MB,) * 4)
    ]
    small = cache_study(rows).files[0]
    assert small.write_bytes_per_s == small.read_again_bytes_per_s == pytest.approx(3 * MB)
    assert small.runs == 3


def test_without_a_file_larger_than_memory_that_is_said() -> None:
    result = cache_study(cache_rows(small=(MB,) * 4))
    assert result.warnings == ["no file is larger than memory: see --large"]
    assert result.policies[0].large_reads_cached is None


def test_places_have_their_own_policies() -> None:
    rows = [
        *cache_rows("lake", small=(9 * MB, MB, 9 * MB, MB), large=(MB,) * 4),
        *cache_rows("pond", small=(MB,) * 4, large=(MB,) * 4),
    ]
    assert [(p.place, p.write_back) for p in cache_study(rows).policies] == [("lake", True), ("pond", False)]


def test_a_pass_that_is_missing_says_nothing() -> None:
    rows = [row for row in cache_rows(small=(MB,) * 4, large=(MB,) * 4) if row["page_cache"] != "dropped"]
    (policy,) = cache_study(rows).policies
    assert (policy.reads_cached, policy.write_back) == (None, False)
    assert len(policy.words) == 1


def test_a_file_of_unknown_memory_neither_fits_nor_does_not() -> None:
    rows = [{**row, "memory_bytes": None} for row in cache_rows(memory=MIB, small=(MB,) * 4)]
    assert cache_study(rows).files[0].fits is None


def test_runs_without_a_size_are_refused() -> None:
    with pytest.raises(UsageError, match="no run of this study has a file size"):
        cache_study([{"direction": "write", "place": "lake"}])
