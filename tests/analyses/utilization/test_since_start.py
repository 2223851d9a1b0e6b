"""A single sample has no interval, and so no FSU; what its counters hold since they began is an answer all the same."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import iolens
from iolens.records import CounterSet
from iolens.store.store import Store
from iolens.units import MIB
from iolens.views.render.json_text import to_json
from iolens.views.utilization.tables import since_start, tables
from tests.store.samples import T0, capture, sample, size_sample

IOS = {("read", 4096): 600, ("write", 4096): 150, ("write", MIB // 2): 50, ("read", MIB): 200}


def begun(second: float, began: float | None, target: str = "OST0000"):
    counters = size_sample(second, IOS).sets[""].counters
    start_us = None if began is None else round((T0 + began) * 1e6)
    return sample("target_sizes", second, {"": CounterSet(counters, start_us)}, target)


def answer(path: Path, *samples, **narrowing):
    Store(path).ingest([capture(samples, "a")], "test")
    return iolens.open(str(path)).utilization("scratch", **narrowing)


def test_the_sizes_since_counters_began_are_given_and_no_fsu(tmp_path: Path) -> None:
    result = answer(tmp_path / "store", begun(0, -5000), begun(0, -3000, "OST0001"))
    assert (result.samples, result.mean_fsu_pct) == (0, None)
    since = json.loads(to_json(result))["since_start"]
    assert {key: since[key] for key in since if key != "io_sizes"} == {
        "targets": 2,
        "first_start": "2020-09-13T11:03:20Z",
        "last_start": "2020-09-13T11:36:40Z",
        "first_sample": "2020-09-13T12:26:40Z",
        "last_sample": "2020-09-13T12:26:40Z",
        "ios": 2000,
        "suboptimal_pct": 80.0,
    }
    counts = {(size["direction"], size["size_bytes"]): size["count"] for size in since["io_sizes"] if size["count"]}
    assert counts == {key: 2 * count for key, count in IOS.items()}
    (table,) = [table for table in tables(result) if table.name == "since_start"]
    assert table.rows[0] == (4096, 1200, 60.0, 300, 15.0)


@pytest.mark.parametrize(
    ("began", "said"), [(-5000, "2020-09-13 11:03:20"), (None, "at a mount or a clear; they do not say when")]
)
def test_the_sentence_says_since_when(tmp_path: Path, began: float | None, said: str) -> None:
    sentence = since_start(answer(tmp_path / "store", begun(0, began)))
    assert f"since counters began ({said}" in sentence
    assert "80.0 % of 1,000 disk I/Os are smaller than 1 MiB" in sentence


def test_with_an_interval_there_is_no_such_answer(tmp_path: Path) -> None:
    result = answer(tmp_path / "store", begun(0, -5000), begun(5, -5000))
    assert result.samples == 1
    assert "since_start" not in json.loads(to_json(result))


def test_dumps_years_apart_are_single_samples_and_the_newest_counts(tmp_path: Path) -> None:
    result = answer(tmp_path / "store", begun(0, None), begun(10**8, None), begun(10**8 + 1, None, "OST0001"))
    assert result.since_start.targets == 2
    assert result.since_start.first_sample == datetime.fromtimestamp(T0 + 10**8, UTC)


def test_a_window_without_the_sample_has_no_answer(tmp_path: Path) -> None:
    assert answer(tmp_path / "store", begun(0, None), since="2021-01-01").since_start is None
