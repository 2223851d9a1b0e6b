"""Several analyses of the same rows: what each says alone, from one reading."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iolens
from iolens.analyses.imbalance.part import ImbalanceParts
from iolens.analyses.intervals.tick_matrix import PartsTogether, ticks_of
from iolens.analyses.workload.part import WorkloadParts
from iolens.errors import UsageError
from iolens.store import selection as selections
from iolens.store.selection import StoreSelection
from iolens.store.store import Store
from iolens.units import DAY_US
from iolens.views.render.json_text import to_json
from tests.analyses.telemetry import made_up

DAY_TICKS = 17_280
BOTH: dict[str, dict[str, Any]] = {
    "workload": {"sections": ("bandwidth", "idle")},
    "imbalance": {"percentiles": (70.0,)},
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Three days of four targets, the last of which reports on the last day alone."""
    store = Store(tmp_path / "store")
    for day, targets in enumerate((3, 3, 4)):
        telemetry = made_up(day, 60, targets, first_tick=day * DAY_TICKS)
        for table in ("target_io", "target_sizes"):
            store.append(table, telemetry.table(table))
    return store


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each reading of columns gives from here on."""
    sizes: list[int] = []
    original: Callable[..., pa.Table | None] = StoreSelection.columns

    def noted(self: StoreSelection, *arguments: Any) -> pa.Table | None:
        rows = original(self, *arguments)
        sizes.append(-1 if rows is None else rows.num_rows)
        return rows

    monkeypatch.setattr(StoreSelection, "columns", noted)
    return sizes


@pytest.mark.parametrize("fresh", [True, False])
def test_each_says_what_it_says_alone_of_one_reading(
    store: Store, read: list[int], fresh: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selections, "FEWEST_REMEMBERED", 1)
    monkeypatch.setattr(selections, "ROWS_OF_DAYS", 1)
    with iolens.open(store.url, fresh=fresh) as opened:
        together = {name: to_json(answer) for name, answer in opened.together(BOTH)}
    assert sum(read) == store.select().snapshot("target_io").rows
    with iolens.open(store.url, fresh=True) as opened:
        alone = {name: to_json(opened.analyse(name, **options)) for name, options in BOTH.items()}
    assert together == alone


def test_days_that_one_of_them_remembers_are_not_read_for_it(
    store: Store, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selections, "FEWEST_REMEMBERED", 1)
    monkeypatch.setattr(selections, "ROWS_OF_DAYS", 1)
    with iolens.open(store.url) as opened:
        alone = to_json(opened.analyse("workload", **BOTH["workload"]))
        read.clear()
        together = {name: to_json(answer) for name, answer in opened.together(BOTH)}
    assert together["workload"] == alone
    assert sum(read) == store.select().snapshot("target_io").rows  # for imbalance


def test_parts_that_are_made_together_have_a_written_form(store: Store) -> None:
    selection = store.select()
    ticks = ticks_of(selection)
    assert ticks is not None
    maker = PartsTogether((WorkloadParts(ticks), ImbalanceParts(ticks, True, DAY_US)))
    days = next(selection.tick_days(["target_io"], ticks.tick_us))
    written = maker.form.written(maker.made(days))
    assert written == maker.form.written(maker.form.read(written))
    alone = tuple(each.made(days) for each in maker.makers)
    assert written == maker.form.written(alone)


def test_what_one_of_them_refuses_does_not_keep_the_other_from_answering(store: Store) -> None:
    asked: dict[str, Any] = {"workload": {"sections": ("nothing",)}, "imbalance": {}}
    with iolens.open(store.url) as opened:
        answers = dict(opened.together(asked))
        expected = opened.imbalance()
    assert isinstance(answers["workload"], UsageError)
    assert to_json(answers["imbalance"]) == to_json(expected)


def test_a_file_that_cannot_be_read_is_the_error_of_those_that_need_it(store: Store) -> None:
    damaged = next(Path(store.url).glob("target_io/date=*/*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
    with iolens.open(store.url, fresh=True) as opened:
        answers = dict(opened.together({"drives": {}, "workload": {}, "imbalance": {}}))
    assert answers["drives"].drives == 0
    for name in ("workload", "imbalance"):
        assert "store verify" in str(answers[name])
