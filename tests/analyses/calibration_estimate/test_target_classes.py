"""Classes of targets: configured, by a gap between rates, by a gap between sizes, or one."""

from __future__ import annotations

import numpy as np
import pytest

from iolens.analyses.calibration_estimate.part import (
    UNKNOWN_TRAITS,
    TargetTraits,
    by_capacity,
    by_rates,
    by_rotation,
    gapped,
    target_classes,
)
from iolens.arrays import Columns

NAMES = [f"scratch-OST{number:04x}" for number in range(6)]


def cells(speeds: list[float], depth: float = 16.0, size_bin: int = 48) -> Columns:
    """Ticks of each target with 500 I/Os per second times its speed."""
    count = len(speeds)
    ticks = np.full(count, 20.0)
    return {
        "target": np.arange(count),
        "direction": np.zeros(count, int),
        "size_bin": np.full(count, size_bin),
        "n": 500.0 * np.array(speeds) * ticks * 10,
        "duration_s": ticks * 10,
        "depth": depth * ticks,
        "ticks": ticks,
    }


def test_two_kinds_of_targets_are_separated_apart_by_the_rates_they_reach() -> None:
    assert by_rates(cells([1.0, 4.0, 1.1, 4.2, 0.95, 3.9]), NAMES) == [
        [NAMES[4], NAMES[0], NAMES[2]],
        [NAMES[5], NAMES[1], NAMES[3]],
    ]


@pytest.mark.parametrize(
    ("speeds", "depth"),
    [
        ([1.0, 1.05, 1.1, 0.9, 1.02, 0.97], 16.0),
        ([1.0, 4.0, 1.1, 4.2, 0.95, 3.9], 1.5),
        ([1.0, 1.1, 1.0, 0.9, 1.0, 4.0], 16.0),
    ],
    ids=["alike", "nobody waited", "one target alone"],
)
def test_else_all_are_one_class(speeds: list[float], depth: float) -> None:
    classes, notes = target_classes({}, cells(speeds, depth), NAMES, UNKNOWN_TRAITS)
    assert ([groups.name for groups in classes], notes) == ([None], [])
    assert classes[0].targets == NAMES


def test_without_rates_sizes_of_targets_tell() -> None:
    capacity = {name: 1e14 if place < 4 else 1e13 for place, name in enumerate(NAMES)}
    assert by_capacity(NAMES, capacity) == [NAMES[4:], NAMES[:4]]
    assert by_capacity(NAMES, dict.fromkeys(NAMES, 1e14)) is None
    assert by_capacity(NAMES, {}) is None


def test_disks_and_flash_are_apart_where_no_rate_tells() -> None:
    spins = {name: place % 2 == 0 for place, name in enumerate(NAMES)}
    assert by_rotation(NAMES, spins) == [NAMES[::2], NAMES[1::2]]
    assert by_rotation(NAMES, {**spins, NAMES[1]: True, NAMES[3]: True}) is None  # one flash target alone
    assert by_rotation(NAMES, {name: spins[name] for name in NAMES[:5]}) is None  # of one it is not known
    classes, notes = target_classes({}, cells([1.0] * 6), NAMES, TargetTraits({}, spins))
    assert [chosen.targets for chosen in classes] == [NAMES[::2], NAMES[1::2]]
    assert notes[0].startswith("classes of targets were found by whether their devices rotate;")


def test_configured_classes_go_first_and_strangers_are_together() -> None:
    configured = {"flash": ("*OST000[01]",), "disk": ("*OST000[23]",)}
    classes, notes = target_classes(configured, cells([1.0] * 6), NAMES, UNKNOWN_TRAITS)
    assert [(groups.name, len(groups.targets), groups.is_configured) for groups in classes] == [
        ("flash", 2, True),
        ("disk", 2, True),
        (None, 2, False),
    ]
    assert notes == []


def test_a_gap_must_be_wider_than_the_steps_within() -> None:
    assert gapped(np.array([0.0, 0.3, 0.7, 1.1, 1.5])) is None
    assert gapped(np.array([0.0, 0.1, np.nan, 1.0, 1.1])) == (pytest.approx(0.9), [[0, 1], [3, 4]])
