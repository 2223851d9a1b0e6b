"""Many captures at once: in order, and one that kills its reader is refused alone."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from iolens.errors import InputError
from iolens.records import Capture, Problem, Row
from iolens.store import readers
from iolens.store.readers import read_ahead
from iolens.store.store import Store


def fullness(path: Path):
    number = int(path.read_text())
    if number == 13:
        os.abort()
    if number == 14:
        raise InputError(str(path), "nonsense", "a number", 1)
    values = {"time": number * 1_000_000, "filesystem": "scratch", "target": "OST0000", "used_bytes": number}
    yield Row("target_capacity", values)


def captures(folder: Path, count: int) -> list[Capture]:
    for number in range(count):
        (folder / str(number)).write_text(str(number))
    return [Capture(str(folder / str(n)), f"file/{n}", partial(fullness, folder / str(n))) for n in range(count)]


def test_captures_come_in_their_order_and_a_dead_reader_costs_one(tmp_path: Path) -> None:
    readings = list(read_ahead(captures(tmp_path, 60), lambda capture: not capture.origin.endswith("/20"), 2))
    found = {int(Path(one.capture.origin).name): None if one.items is None else list(one.items) for one in readings}
    assert list(found) == list(range(60))
    assert found[20] is None
    assert [item.values["used_bytes"] for item in found[59]] == [59]
    assert isinstance(found[13][0], Problem)
    assert "died" in found[13][0].reason
    assert "nonsense" in found[14][0].reason
    assert sum(isinstance(items[0], Row) for items in found.values() if items) == 57


@pytest.mark.parametrize("workers", [1, 2])
def test_the_store_is_the_same_however_many_read(tmp_path: Path, monkeypatch, workers: int) -> None:
    monkeypatch.setattr(readers, "LARGEST_BYTES", 1)  # numbers of two digits are too large for a worker
    (tmp_path / "in").mkdir()
    store = Store(tmp_path / "store")
    wanted = [one for one in captures(tmp_path / "in", 40) if Path(one.origin).name != "13"]
    tally = store.ingest(wanted, "test", workers=workers)
    assert (tally.captures, tally.rows["target_capacity"], tally.refused) == (39, 38, 1)
    again = store.ingest(wanted, "test", workers=workers)
    assert (again.already_present, again.refused, again.rows) == (38, 1, {})


def test_a_few_captures_start_no_process(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(readers, "_Worker", None)
    assert len(list(read_ahead(captures(tmp_path, 5), lambda capture: True, 2))) == 5
