"""Busy time of a real disk: a loop device that fio loads at depth 1, sampled by the agent.

Only what is certain on a busy machine; how near the limit of telemetry comes to a sweep depends on the disk and its
host: `python -m bench.real_disk` shows that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from bench.loop_disk import FILESYSTEM, loop_disk, sampled, why_no_loop_disk

import iolens
from iolens.arrays import Booleans, Floats
from iolens.benchmarks.device_counters import Counts
from iolens.benchmarks.programs import may_raise_priority
from iolens.models.cost_estimate import HIGHEST_UTIL_PCT, LOWEST_UTIL_PCT, TERMS, BusySums, busy_time
from iolens.models.transaction_time import Calibration, Coefficients, fsu_bytes_pct
from iolens.schema import DIRECTIONS
from iolens.units import KIB, MIB

pytestmark = pytest.mark.live

PLACE = Path("/var/tmp")
SIZES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB)
TICK_S, SECONDS = 0.25, 1.6  # of a sample, and of each load


@dataclass(frozen=True)
class SampledDisk:
    """Rows of the device as the agent stored them, and what the kernel counted before and after."""

    device: str
    rows: pa.Table
    before: Counts
    after: Counts

    def column(self, name: str) -> Floats:
        return np.asarray(self.rows[name].to_numpy(), float)

    @property
    def util_pct(self) -> Floats:
        return 1e-4 * self.column("busy_us") / self.column("duration_s")


@pytest.fixture(scope="module")
def disk() -> Iterator[SampledDisk]:
    if (why := why_no_loop_disk(PLACE)) is not None:
        pytest.skip(why)
    with loop_disk(PLACE, 256 * MIB, may_raise_priority()) as loop:
        bursts = {(side, size): loop.burst(side, str(size)) for side in DIRECTIONS for size in SIZES}
        with sampled(loop, TICK_S) as store:
            before = loop.counters.read()
            for (side, size), burst in bursts.items():
                loop.load(side, str(size), 1, SECONDS, burst)
            after = loop.counters.read()
        with iolens.open(str(store)) as opened:
            frame = opened.frame("target_io", FILESYSTEM).sort("time").collect(backend="pyarrow")
            yield SampledDisk(loop.device, frame.to_native(), before, after)


def test_the_agent_stores_what_the_kernel_counts_of_a_loop_device(disk: SampledDisk) -> None:
    (target,) = set(disk.rows["target"].to_pylist())
    assert target.endswith(f":{disk.device}")
    for side in DIRECTIONS:
        moved = disk.after.ops[side] - disk.before.ops[side]
        assert moved > 0
        assert disk.column(f"{side}_ops").sum() == moved
    assert disk.before.busy_us is not None
    assert disk.after.busy_us is not None
    assert disk.column("busy_us").sum() == disk.after.busy_us - disk.before.busy_us


def test_fsu_by_busy_time_is_the_util_of_the_kernel(disk: SampledDisk) -> None:
    """Of the samples that it rests on; of others it is where the disk is steady, which the benchmark shows."""
    moved = disk.column("read_ops") + disk.column("write_ops") > 0
    usual = moved & (disk.util_pct > LOWEST_UTIL_PCT) & (disk.util_pct < HIGHEST_UTIL_PCT)
    sums = {name: disk.column(name)[usual].sum() for name in _COUNTERS}
    seconds = disk.column("duration_s")[usual].sum()
    fsu_pct = fsu_bytes_pct(**sums, duration_s=seconds, calibration=_by_busy_time(disk, usual))
    assert fsu_pct == pytest.approx(1e-4 * disk.column("busy_us")[usual].sum() / seconds, rel=0.1)


_COUNTERS = tuple(f"{side}_{what}" for side in DIRECTIONS for what in ("ops", "bytes"))


def _by_busy_time(disk: SampledDisk, chosen: Booleans) -> Calibration:
    names = {"ios": "ops", "bytes": "bytes"}
    terms = np.stack([disk.column(f"{side}_{names[what]}")[chosen] for side, what in TERMS], axis=1)
    estimates = busy_time(BusySums.of(terms, 1e-6 * disk.column("busy_us")[chosen], np.arange(chosen.sum()) // 4))
    costs = {}
    for side, estimate in estimates.items():
        assert estimate.coefficients is not None
        costs[side] = Coefficients(estimate.coefficients.latency_s, estimate.coefficients.s_per_byte)
    return Calibration("by busy time", costs["write"], costs["read"])
