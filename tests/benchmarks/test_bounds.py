"""What made-up load keeps to."""

from __future__ import annotations

import pytest

from iolens.benchmarks.synthetic_fio import TrafficBounds
from iolens.errors import UsageError
from iolens.units import MIB
from tests.benchmarks.made_models import model


def test_without_a_scale_it_is_one_target() -> None:
    assert TrafficBounds().targets(model(targets=8)) == 1.0
    assert TrafficBounds().share_of(model(targets=8)) == 0.125
    assert TrafficBounds(share=0.5).targets(model(targets=8)) == 4.0
    assert TrafficBounds(share=0.5).share_of(model(targets=8)) == 0.5


def test_every_process_has_a_part_of_the_space() -> None:
    assert TrafficBounds(max_bytes=100 * MIB, jobs=3).file_bytes(MIB) == 100 * MIB // 3 // 4096 * 4096
    with pytest.raises(UsageError, match=r"4 files that hold a request of 4 MiB each need 16 MiB"):
        TrafficBounds(max_bytes=8 * MIB, jobs=4).file_bytes(4 * MIB)


@pytest.mark.parametrize(
    "wrong",
    [{"share": 0.0}, {"share": -1.0}, {"ssi": float("nan")}, {"max_s": float("inf")}, {"jobs": 0}, {"queue_depth": 0},
     {"block_bytes": 100}, {"block_bytes": 1000}],
)  # fmt: skip
def test_senseless_bounds_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        TrafficBounds(**wrong)  # type: ignore[arg-type]
