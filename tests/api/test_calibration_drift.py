"""Slow targets at a time: by whole days before it, and said in imbalance of those targets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.limited_centre import CentreOrder

import iolens
from iolens.analyses.calibration_drift import SlowTarget, SlowTargets
from iolens.api import calibration_estimate as calibration_drift
from iolens.api.calibration_estimate import slow_targets_at, slow_targets_if_known, with_slow_targets
from iolens.store.selection import StoreSelection
from iolens.units import from_epoch_us, iso
from iolens.views.imbalance.tables import verdict
from tests.cli.command import iolens as run
from tests.cli.test_calibrate_estimate import made_store
from tests.views.test_imbalance import of

WORDS = "scratch-OST0001 needs 1.8 times (1.6 to 2.0) as long for an I/O as its class"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[datetime, datetime]]:
    """Windows that were asked for, with an answer in place of a computed one."""
    windows = []

    def answer(selection: Any, configured: Mapping[str, Any]) -> SlowTargets:
        windows.append(selection.window)
        return SlowTargets([SlowTarget("other", 3.0, "x"), SlowTarget("scratch-OST0001", 1.8, WORDS)])

    monkeypatch.setattr(calibration_drift, "slow_now", answer)
    return windows


def test_imbalance_begins_with_the_slow_targets_of_whole_days(
    tmp_path: Path, asked: list[tuple[datetime, datetime]]
) -> None:
    made_store(tmp_path / "store", CentreOrder(1, days=1, ticks_a_day=60, targets=1))
    result = of(np.random.default_rng(1).uniform(1e6, 9e6, (60, 3)))
    result = replace(result, filesystem="scratch", window_end=datetime(2026, 3, 30, 15, tzinfo=UTC))
    result = replace(result, peers=[replace(result.peers[0], target="scratch-OST0001"), *result.peers[1:]])
    with iolens.open(str(tmp_path / "store")) as opened:
        said = with_slow_targets(opened, result)
    assert asked[0] == (datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC))
    assert said.slow_targets == [f"{WORDS}, by the 28 days before 2026-03-30."]
    assert verdict(said) == f"{said.slow_targets[0]} {verdict(result)}"


def test_top_names_the_slow_targets_of_the_days_before(tmp_path: Path, asked: list[tuple[datetime, datetime]]) -> None:
    made_store(tmp_path / "store", CentreOrder(1, days=1, ticks_a_day=60, targets=1))
    with iolens.open(str(tmp_path / "store")) as opened:
        _, end_us = opened.store.select().extent_us("target_sizes")
    done = run("top", "--once", "--store", tmp_path / "store", "--at", iso(from_epoch_us(end_us)), "--format", "json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["notes"][:2] == ["x.", f"{WORDS}."]
    assert asked[0] == (datetime(2025, 12, 4, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))


def test_what_would_have_to_be_read_is_left_out(
    tmp_path: Path, asked: list[tuple[datetime, datetime]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StoreSelection, "answer_at", lambda *_: "parts/answer/any/absent.part")
    made_store(tmp_path / "store", CentreOrder(1, days=1, ticks_a_day=60, targets=1))
    with iolens.open(str(tmp_path / "store")) as opened:
        when = datetime(2026, 1, 2, tzinfo=UTC)
        assert slow_targets_if_known(opened.store, opened.config, "scratch", when) == SlowTargets([])
        assert asked == []
        known = slow_targets_at(opened, "scratch", when)
        assert slow_targets_if_known(opened.store, opened.config, "scratch", when) == known
        assert len(asked) == 1
