"""What targets ask for together: the model's own percentiles for one, less than the sum of peaks for many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from iolens.models.workload_model import Marginal, drawn_demand, normal_cdf
from iolens.simulator.synthetic import SyntheticActivity
from tests.benchmarks.made_models import model


def test_one_target_that_is_never_silent_has_the_percentiles_of_its_distribution() -> None:
    made = model(idle=False)
    demand = drawn_demand(made, 1)
    for percent in (50.0, 95.0):
        expected = float(made.read.bandwidth.quantile(np.array([percent / 100]))[0])
        assert demand.percentile("bytes", "read", percent) == pytest.approx(expected, rel=0.05)
    assert demand.silent_share == 0.0
    assert demand.requests_per_s["read"].max() <= 500 * 2  # one every 2 ms, before the mix


@pytest.mark.parametrize("targets", [1, 8])
def test_percentiles_are_those_of_synthetic_telemetry(targets: int) -> None:
    """Two ways from one model: times drawn at once, and series of busy runs and silences."""
    made = model()
    demand = drawn_demand(made, targets)
    blocks = list(SyntheticActivity(made, targets, seed=5, first_tick=0, ticks=80_000).blocks())
    for direction in ("read", "write"):
        moved = np.concatenate([block.bytes_[direction].sum(axis=1) for block in blocks]) / made.tick_s
        asked = np.concatenate([block.requests[direction].sum(axis=1) for block in blocks]) / made.tick_s
        for percent in (90.0, 95.0):
            assert demand.percentile("bytes", direction, percent) == pytest.approx(
                np.percentile(moved, percent), rel=0.1
            )
            assert demand.percentile("requests", direction, percent) == pytest.approx(
                np.percentile(asked, percent), rel=0.1
            )


def test_silences_are_part_of_the_time() -> None:
    made = model().balanced()
    shares = [made.of(direction).busy_share(made.tick_s) for direction in ("read", "write")]
    expected = (1 - shares[0]) * (1 - shares[1])
    assert drawn_demand(made, 1).silent_share == pytest.approx(expected, abs=0.015)
    assert drawn_demand(made, 8).silent_share < expected


@pytest.mark.parametrize("wanted", [42.2, 5.0, 95.0])
def test_the_share_of_reads_is_the_models(wanted: float) -> None:
    demand = drawn_demand(model(read_requests_pct=wanted), 3)
    reads, writes = (float(demand.requests_per_s[direction].sum()) for direction in ("read", "write"))
    assert 100 * reads / (reads + writes) == pytest.approx(wanted)


def test_peaks_of_many_targets_seldom_coincide_unless_they_are_alike() -> None:
    item, many = (drawn_demand(model(correlation=0.0), number) for number in (1, 64))
    alike = drawn_demand(model(correlation=0.99), 64)
    single = item.percentile("bytes", "read", 99.0)
    assert many.percentile("bytes", "read", 99.0) < 0.6 * 64 * single
    assert alike.percentile("bytes", "read", 99.0) > many.percentile("bytes", "read", 99.0)
    assert many.bytes_per_s["read"].mean() == pytest.approx(64 * item.bytes_per_s["read"].mean(), rel=0.1)


def test_a_part_of_a_target_is_as_bursty_as_the_whole() -> None:
    whole, part = drawn_demand(model(), 1), drawn_demand(model(), 0.25)
    assert part.requests_per_s["read"] == pytest.approx(0.25 * whole.requests_per_s["read"])
    assert part.silent_share == whole.silent_share


def test_both_directions_together_are_at_most_the_sum_of_their_percentiles() -> None:
    demand = drawn_demand(model(), 1)
    both = demand.percentile("requests", None, 100.0)
    assert both <= sum(demand.percentile("requests", direction, 100.0) for direction in ("read", "write"))
    assert both >= demand.percentile("requests", "read", 100.0)


def test_more_targets_than_are_drawn_ask_for_more() -> None:
    most, twice = drawn_demand(model(), 2_000), drawn_demand(model(), 4_000)
    assert twice.bytes_per_s["read"] == pytest.approx(2.0 * most.bytes_per_s["read"])
    assert len(most.bytes_per_s["read"]) == 2_000


def test_the_same_every_time() -> None:
    assert np.array_equal(drawn_demand(model(), 4).bytes_per_s["write"], drawn_demand(model(), 4).bytes_per_s["write"])


def test_a_direction_that_hardly_ever_comes_is_no_error() -> None:
    made = model()
    never = replace(made.read, idle=Marginal.pareto(1.0, 600_000.0, 604_800.0), busy_run_s=2.0)
    demand = drawn_demand(replace(made, read=never), 1, seed=3)
    assert np.isfinite(demand.requests_per_s["read"]).all()
    assert demand.requests_per_s["write"].sum() > 0


def test_normal_shares() -> None:
    assert normal_cdf(np.array([0.0, 1.0, -1.96])) == pytest.approx([0.5, 0.8413, 0.025], abs=1e-3)
