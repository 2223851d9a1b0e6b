"""A store on object storage: the same verbs, the same answers, against a real S3 protocol peer on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import iolens
from iolens.store.maintenance import compact_store, export_table, store_info, vacuum_store, verify_store
from iolens.store.rollup import roll_up
from iolens.store.store import Store
from iolens.views.render.json_text import to_json
from tests.analyses.telemetry import made_up
from tests.analyses.utilization.test_utilization import assert_same
from tests.live.s3_emulator import S3Emulator
from tests.store.samples import capture, io_sample, size_sample

pytestmark = pytest.mark.live


@pytest.fixture
def url(emulator: S3Emulator, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A prefix of its own; credentials come from the environment only."""
    for name, value in emulator.environment.items():
        monkeypatch.setenv(name, value)
    return f"{emulator.url}/read_bytes=7/{request.node.name}"  # what stands above a table is nobody's column


def test_ingest_and_utilization_give_what_local_disk_gives(url: str, tmp_path: Path) -> None:
    items = [
        item for n in range(20) for item in (io_sample(5 * n, n << 20, 0), size_sample(5 * n, {("read", 1 << 20): n}))
    ]
    answers = []
    for place in (str(tmp_path), url):
        store = Store(place)
        assert store.ingest([capture(items, "a")], "test").rows == {"target_io": 19, "target_sizes": 19}
        assert store.ingest([capture(items, "a")], "test").already_present == 1
        answers.append(json.loads(to_json(iolens.open(place).utilization())))
    assert answers[0]["samples"] == 19
    assert_same(answers[1], answers[0])


def test_maintenance_works_on_object_storage(url: str, tmp_path: Path) -> None:
    store = Store(url)
    for number in range(3):
        part = made_up(number, ticks=30, targets=2, first_tick=30 * number)
        for name in ("target_sizes", "target_io"):
            store.append(name, part.table(name))
    before = json.loads(to_json(iolens.open(url).utilization()))
    assert compact_store(store).days == 2
    assert roll_up(store).days == 4
    assert verify_store(store).faults == []
    vacuum_store(store, 0, force=True)
    assert_same(json.loads(to_json(iolens.open(url).utilization())), before)
    rolled = iolens.open(url).utilization(resolution="60s")
    assert [line.count for line in rolled.io_sizes] == [line["count"] for line in before["io_sizes"]]
    rows = next(table["rows"] for table in store_info(store)["tables"] if table["name"] == "target_io")
    assert export_table(store, "target_io", tmp_path / "out.parquet") == rows
