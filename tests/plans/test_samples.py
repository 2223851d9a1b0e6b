"""Statistics of samples as inputs."""

from __future__ import annotations

import numpy as np
import pytest

from iolens.errors import UsageError
from iolens.plans.cases import statistic

WAFS = [1.4, 2.0, 2.5, 2.6, 2.7, 2.8, 3.0, 3.2, 9.9]


@pytest.mark.parametrize(
    ("which", "expected"),
    [("mean", np.mean(WAFS)), ("median", 2.7), ("p95", np.percentile(WAFS, 95)), ("max", 9.9)],
)
def test_a_statistic_and_its_ends(which: str, expected: float) -> None:
    result = statistic("waf", which, WAFS, "9 drives")
    assert result.expected == pytest.approx(expected)
    assert result.low <= result.expected <= result.high
    assert result.origin == f"{which} of 9 drives"
    drawn = result.draws(np.random.default_rng(1), 300)
    assert len(drawn) == 300
    assert drawn.min() >= min(WAFS)
    assert len(set(drawn.tolist())) > 2
    assert drawn.tolist() == result.draws(np.random.default_rng(1), 300).tolist()


def test_a_drive_weighs_in_the_fleet_by_what_was_written_to_it() -> None:
    result = statistic("waf", "fleet", [2.0, 10.0], "2 drives", [990.0, 10.0])
    assert result.expected == pytest.approx(2.08)
    assert (result.low, result.high) == (2.0, 10.0)


def test_what_is_unknown_is_refused() -> None:
    with pytest.raises(UsageError, match="'fleet' is neither a number"):
        statistic("fswpd", "fleet", [1.0], "days")
    with pytest.raises(UsageError, match="no samples"):
        statistic("waf", "median", [], "0 drives")


def test_inputs_can_be_distinguished() -> None:
    item, other = (statistic("waf", which, WAFS, "drives", WAFS) for which in ("median", "fleet"))
    assert len({item, other}) == 2
