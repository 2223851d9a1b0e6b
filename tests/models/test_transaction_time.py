"""The transaction model against the paper's printed values (SPEC U, check values)."""

import pytest

from iolens.models.transaction_time import GRACE_2012, achievable_bytes_per_s, fsu_pct
from iolens.units import MIB


def test_table_one_rates_are_mebibytes() -> None:
    assert GRACE_2012.write.bytes_per_s_limit / MIB == pytest.approx(551, abs=0.5)
    assert GRACE_2012.read.bytes_per_s_limit / MIB == pytest.approx(775, abs=0.5)


def test_check_value_of_the_specification() -> None:
    ios = {("write", 4096): 100, ("read", MIB): 50}
    assert fsu_pct(ios, 1.0, GRACE_2012) == pytest.approx(20.93, abs=0.005)
    by_hand = 100 * (100 * (1.04e-3 + 1.73e-9 * 4096) + 50 * (8.02e-4 + 1.23e-9 * 1048576))
    assert fsu_pct(ios, 1.0, GRACE_2012) == pytest.approx(by_hand, rel=1e-12)


def test_iops_limit_is_the_inverse_latency() -> None:
    assert GRACE_2012.write.iops_limit == pytest.approx(961.5, abs=0.1)


def test_achievable_bandwidth_of_one_size_is_equation_two() -> None:
    size = 65536
    expected = size / (1.04e-3 + 1.73e-9 * size)
    assert achievable_bytes_per_s({("write", size): 7}, GRACE_2012) == pytest.approx(expected, rel=1e-12)


def test_optimal_time_leaves_large_ios_as_they_are() -> None:
    write = GRACE_2012.write
    assert write.seconds_as_optimal(4 * MIB) == write.seconds(4 * MIB)
    assert write.seconds_as_optimal(MIB) == pytest.approx(write.seconds(MIB), rel=1e-12)
    assert 256 * write.seconds_as_optimal(4096) == pytest.approx(write.seconds(MIB), rel=1e-12)
