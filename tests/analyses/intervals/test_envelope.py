"""Median, spread and maximum by bucket, however the ticks come."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.intervals.buckets import MOST_BUCKETS, MOST_TICKS, BucketQuantiles, envelope_bucket_us

MINUTE_US = 60_000_000
EXTENT = (1_000 * MINUTE_US, 1_030 * MINUTE_US)


@given(
    st.dictionaries(st.integers(1, 1800), st.floats(0, 1e12), min_size=1, max_size=200),
    st.lists(st.integers(0, 200), max_size=5),
)
def test_it_is_numpys_quantile_of_every_bucket_and_the_same_in_any_parts(
    ticks: dict[int, float], cuts: list[int]
) -> None:
    ends_us = EXTENT[0] + np.array(sorted(ticks)) * 1_000_000
    values = np.array([ticks[second] for second in sorted(ticks)])
    quantiles = BucketQuantiles.over(EXTENT, 5 * MINUTE_US)
    places = sorted(min(cut, len(values)) for cut in cuts)
    for part in zip(np.split(ends_us, places), np.split(values, places), strict=True):
        quantiles.add(*part)
    spread = quantiles.finish()
    assert spread is not None
    for bucket, start_us in enumerate(quantiles.starts_us):
        mine = values[(ends_us > start_us) & (ends_us <= start_us + 5 * MINUTE_US)]
        levels = [spread.median[bucket], spread.p5[bucket], spread.p95[bucket], spread.max[bucket]]
        if mine.size:
            assert levels == pytest.approx(list(np.quantile(mine, [0.5, 0.05, 0.95, 1.0])), rel=1e-9, abs=1e-3)
        else:
            assert np.isnan(levels).all()


def test_only_ticks_of_the_last_bucket_are_held() -> None:
    quantiles = BucketQuantiles.over((0, 10_000 * MINUTE_US), 10 * MINUTE_US)
    for first in range(0, 10_000, 1_000):
        ends_us = np.arange(first + 1, first + 1_001) * MINUTE_US
        quantiles.add(ends_us, np.ones(1_000))
        assert len(quantiles._values) == 10


def test_nothing_has_no_spread() -> None:
    assert BucketQuantiles.over(EXTENT, MINUTE_US).finish() is None


@pytest.mark.parametrize(("ticks", "has_envelope"), [(MOST_TICKS, False), (MOST_TICKS + 1, True), (1_000_000, True)])
def test_a_window_has_an_envelope_once_its_ticks_cannot_be_seen_apart(ticks: int, has_envelope: bool) -> None:
    extent = 0, ticks * MINUTE_US
    width_us = envelope_bucket_us(extent, MINUTE_US)
    assert (width_us is not None) is has_envelope
    if width_us is not None:
        assert ticks * MINUTE_US / width_us <= MOST_BUCKETS or width_us == 86_400_000_000
