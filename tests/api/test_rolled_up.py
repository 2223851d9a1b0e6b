"""After a rollup the parts of long windows are remembered, and a page's question finds them."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.api import OpenStore
from iolens.api.store_state import remember_long_windows
from iolens.questions.asking import Ask
from iolens.store import selection as selections
from iolens.store.rollup import roll_up
from iolens.store.store import Store
from iolens.web.inquiry import Inquiry
from tests.analyses.telemetry import made_up


def test_a_page_over_all_days_finds_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selections, "FEWEST_REMEMBERED", 1)
    store = Store(tmp_path / "store")
    for day in range(6):
        rows = made_up(day, 40, 2, first_tick=day * 17_280, missing=0.0)
        for table in ("target_io", "target_sizes"):
            store.append(table, rows.table(table))
    roll_up(store)
    with OpenStore(str(tmp_path / "store")) as opened:
        remember_long_windows(opened)
    before = {path.name for path in (tmp_path / "store" / "parts").rglob("*.part")}
    with OpenStore(str(tmp_path / "store")) as opened:
        inquiry = Inquiry.of("utilization", {"filesystem": "scratch", "last": "365d", "resolution": "auto"})
        scope = inquiry.scope(opened)
        assert scope.resolution == "1h"
        answer = inquiry.question.ask(Ask(lambda: opened, scope), {})
    assert answer.samples > 0
    assert before
    assert {path.name for path in (tmp_path / "store" / "parts").rglob("*.part")} == before


def test_a_store_without_load_is_left_as_it_is(tmp_path: Path) -> None:
    Store(tmp_path / "store").append("target_io", made_up(0, 3, 1, missing=0.0).table("target_io"))
    with OpenStore(str(tmp_path / "store")) as opened:
        remember_long_windows(opened)  # there is no rollup
    assert not (tmp_path / "store" / "parts").exists()
