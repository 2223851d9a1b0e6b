"""The light probe asks the store whether its target is idle."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from iolens.api.calibration import check_target_is_idle, one_target
from iolens.errors import OptionError, UsageError
from iolens.store.store import Store
from tests.store.samples import T0, capture, io_sample

NOW = datetime.fromtimestamp(T0 + 600, UTC)


def store_with(folder: Path, ops_per_s: float) -> Store:
    """Two intervals of a minute before NOW at so many reads per second, of one target; another one is quiet."""
    store = Store(str(folder))
    moved = [round(ops_per_s * second) * 4096 for second in (0, 60, 120)]
    samples = [io_sample(480 + 60 * place, read, 0) for place, read in enumerate(moved)]
    quiet = [io_sample(480 + 60 * place, 0, 0, target="OST0001") for place in range(3)]
    store.ingest([capture([*samples, *quiet], "a")], "test")
    return store


def test_a_target_at_work_is_refused(tmp_path: Path) -> None:
    store = store_with(tmp_path, 11)
    with pytest.raises(UsageError, match="scratch-OST0000 is at work: 11 operations per second"):
        check_target_is_idle(store, "scratch", "scratch-OST0000", NOW)
    said = check_target_is_idle(store, "scratch", "scratch-OST0001", NOW)
    assert said == "scratch-OST0001 was idle in the last 10 minutes: 0.0 operations per second"


def test_a_nearly_idle_target_is_taken(tmp_path: Path) -> None:
    said = check_target_is_idle(store_with(tmp_path, 10), "scratch", "scratch-OST0000", NOW)
    assert said.startswith("scratch-OST0000 was idle in the last 10 minutes: 10.0 operations")


def test_old_samples_tell_nothing(tmp_path: Path) -> None:
    later = datetime.fromtimestamp(T0 + 6000, UTC)
    said = check_target_is_idle(store_with(tmp_path, 1000), "scratch", "scratch-OST0000", later)
    assert "no sample of scratch-OST0000 of the last 10 minutes: not checked" in said


def test_a_probe_is_of_one_target() -> None:
    assert one_target(None) is None
    assert one_target(("a",)) == "a"
    with pytest.raises(OptionError, match="--target names 2"):
        one_target(("a", "b"))
