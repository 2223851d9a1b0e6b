"""Activity: the same numbers however they are asked for, the truth beside them, and the shape of the paper's tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from iolens.models.transaction_time import fsu_pct
from iolens.schema import DIRECTIONS
from iolens.simulator.activity import (
    MOST_PCT,
    Activity,
    dealt_out,
    jobs_between,
    normal_cdf,
    running_jobs,
    truncated_pareto,
)
from iolens.simulator.truth import Truth
from iolens.simulator.workload import SIZES, Tail, load_workload

MONDAY = 1350864000 // 5  # tick of 2012-10-22T00:00:00Z


def test_block_size_does_not_change_the_numbers() -> None:
    first, ticks = MONDAY + 333, 2000
    whole = Activity(load_workload("scratch"), 3, seed=5).block(first, ticks)
    for length in (1999, 720, 77):
        parts = list(Activity(load_workload("scratch"), 3, seed=5).blocks(first, ticks, length))
        assert np.array_equal(np.concatenate([part.counts for part in parts], axis=2), whole.counts)
        assert np.array_equal(np.concatenate([part.fsu_pct for part in parts]), whole.fsu_pct)


def test_any_hour_can_be_made_first() -> None:
    late_first = Activity(load_workload("scratch"), 3, seed=5)
    late = late_first.block(MONDAY + 7200, 10)
    assert np.array_equal(late.counts, Activity(load_workload("scratch"), 3, 5).block(MONDAY, 7210).counts[:, :, 7200:])


def test_the_seed_decides() -> None:
    item, same, other = (Activity(load_workload("scratch"), 4, seed).block(MONDAY, 720) for seed in (1, 1, 2))
    assert np.array_equal(item.counts, same.counts)
    assert not np.array_equal(item.counts, other.counts)


def test_true_utilization_is_equation_7() -> None:
    workload = load_workload("scratch2")
    block = Activity(workload, 3, seed=9).block(MONDAY, 50)
    ios = {
        (direction, size): int(block.counts[w, s, 17, 2])
        for w, direction in enumerate(DIRECTIONS)
        for s, size in enumerate(SIZES)
    }
    assert block.fsu_pct[17, 2] == pytest.approx(fsu_pct(ios, 5.0, workload.disks), rel=1e-12)
    assert (block.counts >= 0).all()


def test_no_disk_does_much_more_than_it_can() -> None:
    workload = load_workload("scratch")
    heavy = {direction: replace(burst, every_s=60.0, length_s=3600.0) for direction, burst in workload.bursts.items()}
    large = dict.fromkeys(workload.sizes, (0.0,) * 10 + (1.0,))  # a few large I/Os: chance weighs most
    block = Activity(replace(workload, bursts=heavy, sizes=large, tick_s=1), 8, seed=1).block(5 * MONDAY, 3600)
    assert 90 < block.fsu_pct.mean() < 105
    assert block.fsu_pct.max() <= MOST_PCT
    again = np.einsum("dstn,ds->tn", block.counts, Activity(replace(workload, tick_s=1), 8, 1).seconds) * 100
    assert np.allclose(again, block.fsu_pct)


def test_correlation_and_skew() -> None:
    workload = load_workload("scratch")

    def spread(correlation: float) -> float:
        block = Activity(replace(workload, correlation=correlation, skew=0.0), 12, seed=2).block(MONDAY, 17280)
        return float(block.fsu_pct.std(axis=1).mean() / block.fsu_pct.mean())

    assert spread(1.0) < 0.5 * spread(0.5) < 0.5 * spread(0.0)
    per_target = Activity(replace(workload, skew=1.0), 12, seed=2).block(MONDAY, 17280).fsu_pct.mean(axis=0)
    assert per_target.max() > 2 * per_target.min()


def test_levels_have_a_pareto_tail() -> None:
    tail = Tail(1.24, 2.0, 1e6)
    levels = truncated_pareto(np.random.default_rng(1).random(200_000), tail)
    assert 1 / np.log(levels / 2.0).mean() == pytest.approx(1.24, rel=0.01)
    assert truncated_pareto(np.array([0.0, 1.0]), Tail(1.0, 2.0, 50.0)) == pytest.approx([2.0, 50.0])


def test_the_normal_distribution_function() -> None:
    assert normal_cdf(np.array([-1.959964, 0.0, 1.0, 1.959964])) == pytest.approx(
        [0.025, 0.5, 0.8413447, 0.975], abs=1e-6
    )


# Observations in per cent (idle, moderate, busy), and optimal I/Os in percent when busy.
TABLES = {"scratch": ((26, 65, 9), 23), "scratch2": ((62, 34, 4), 95)}


@pytest.mark.parametrize("name", TABLES)
def test_two_days_of_24_osts_look_like_the_paper(name: str) -> None:
    truth = Truth()
    for block in Activity(load_workload(name), 24, seed=1).blocks(MONDAY, 2 * 17280, 2880):
        truth.add(block)
    observations, optimal_when_busy = TABLES[name]
    result = truth.summary()["categories"]
    assert [item["observations_pct"] for item in result] == pytest.approx(observations, abs=6)
    assert result[2]["optimal_pct"] == pytest.approx(optimal_when_busy, abs=6)
    assert truth.most_pct <= MOST_PCT


def test_metadata_follows_its_rates() -> None:
    workload = load_workload("scratch")
    day = np.concatenate([Activity(workload, 1, 1).metadata(375240 + hour, 2) for hour in range(24)], axis=1)
    assert day.shape[2] == 2
    assert day[0].sum() / 86400 == pytest.approx(workload.metadata["open"], rel=0.1)


def test_ios_are_dealt_out_to_the_jobs_by_weight() -> None:
    workload = load_workload("scratch")
    counts = np.random.default_rng(1).integers(0, 50, (11, 400))
    dealt = dealt_out(counts, workload, np.arange(400))
    assert np.array_equal(dealt.sum(axis=0), counts)
    assert (dealt >= 0).all()
    weights = np.array([job.weight for job in workload.jobs])
    assert dealt.sum(axis=(1, 2)) / counts.sum() == pytest.approx(weights / weights.sum(), abs=0.01)


def test_jobs_follow_one_another() -> None:
    workload = load_workload("scratch")
    now = running_jobs(workload, 1350864000)
    assert len({job.job_id for job in now}) == len(workload.jobs)
    ended = list(jobs_between(workload, 1350864000, 1350864000 + 86400))
    assert sum(job.user == "chandra" for job in ended) == 12
    assert len({job.job_id for job in ended}) == len(ended)
