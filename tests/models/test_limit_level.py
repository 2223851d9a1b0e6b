"""The FSU of full disks by queued ticks, by coefficients that fit and by others."""

from __future__ import annotations

import pytest

from iolens.models.frontier import seen_ceiling
from iolens.models.transaction_time import Coefficients
from tests.models.test_frontier import LATENCY_S, S_PER_BYTE, centre, ticks_of


@pytest.mark.parametrize("off", [0.6, 1.0, 1.7])
def test_the_ceiling_is_as_far_off_as_the_coefficients(off: float) -> None:
    cost = Coefficients(LATENCY_S * off, S_PER_BYTE * off)
    seen = seen_ceiling([(ticks_of(centre()), cost), (ticks_of(centre(seed=2)), cost)])
    assert seen is not None
    assert seen.pct == pytest.approx(100 * off, rel=0.03)
    assert (seen.low_pct or 0.0) < 100 * off * 1.01
    assert (seen.low_pct or 0.0) <= seen.pct <= (seen.high_pct or 0.0)
    assert seen.note == ""


def test_coefficients_of_another_shape_have_no_one_ceiling() -> None:
    seen = seen_ceiling([(ticks_of(centre()), Coefficients(2 * LATENCY_S, S_PER_BYTE / 4))])
    assert seen is not None
    assert seen.pct is None
    assert "the coefficients have no one ceiling" in seen.note


def test_ticks_that_never_wait_have_none() -> None:
    idle = [row for row in centre() if row[3] < 2]
    assert seen_ceiling([(ticks_of(idle), Coefficients(LATENCY_S, S_PER_BYTE))]) is None
