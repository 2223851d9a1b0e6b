"""Parts of answers that are remembered: never a stale one, whatever happens to the store between two questions."""

from __future__ import annotations

import gc
import json
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iolens
from iolens.analyses.workload import analysis as workload_analysis
from iolens.analyses.workload.part import WorkloadParts
from iolens.api.retention import retain
from iolens.errors import IolensError
from iolens.records import Capture
from iolens.store import selection as selections
from iolens.store.maintenance import compact_store, store_info, vacuum_store
from iolens.store.part_memory import PartMemory
from iolens.store.parts import streams_of
from iolens.store.rollup import roll_up
from iolens.store.selection import TickDays
from iolens.store.store import Store
from iolens.units import DAY_US, from_epoch_us
from iolens.views.render.doubts import notes
from iolens.views.render.json_text import to_json
from tests.analyses.telemetry import T0_US, made_up
from tests.soak import IS_SOAK
from tests.store.samples import T0, io_sample

DAY_TICKS = 17_280
QUESTIONS = ("workload", "imbalance", "utilization")
Window = tuple[datetime | None, datetime | None]


@pytest.fixture(autouse=True)
def remembers_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selections, "FEWEST_REMEMBERED", 1)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The parts that are made from here on: their form, and the first day."""
    listed: list[tuple[str, str]] = []
    original = TickDays.made

    def noted(self: TickDays, maker: Any) -> Any:
        listed.append((maker.form.name, str(self.first)))
        return original(self, maker)

    monkeypatch.setattr(TickDays, "made", noted)
    return listed


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Three days."""
    store = Store(tmp_path / "store")
    for day in range(3):
        add_day(store, day)
    return store


def add_day(store: Store, day: int, *, targets: int = 3, first_tick: int = 0, seed: int = 0) -> None:
    telemetry = made_up(day + seed, 40, targets, first_tick=day * DAY_TICKS + first_tick)
    for table in ("target_io", "target_sizes"):
        store.append(table, telemetry.table(table))


def answer(store: Store, question: str, window: Window = (None, None), *, fresh: bool = False) -> Any:
    """Every number to nine digits, as the engine adds up in any order; or the refusal."""
    try:
        with iolens.open(store.url, fresh=fresh) as opened:
            text = to_json(opened.analyse(question, since=window[0], until=window[1]))
        return json.loads(text, parse_float=lambda number: float(f"{float(number):.9g}"))
    except IolensError as error:
        return f"{type(error).__name__}: {error}"


def entries(store: Store) -> list[Path]:
    return [store.tables.folder / entry.path for entry in PartMemory(store.tables).entries()]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_that_is_asked_again_makes_nothing(store: Store, question: str, made: list[Any]) -> None:
    first = answer(store, question)
    assert question in {form for form, _ in made}
    made.clear()
    assert answer(store, question) == first == answer(store, question, fresh=True)
    assert question in {form for form, _ in made}  # for the fresh one
    made.clear()
    answer(store, question)
    assert made == []


@pytest.mark.parametrize("question", ["workload", "imbalance"])
def test_a_whole_answer_is_remembered_by_all_that_it_depends_on(
    store: Store, question: str, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selections, "FEWEST_ANSWERED", 1)
    first = answer(store, question)
    kept = {entry for entry in entries(store) if f"answer-{question}-" in str(entry)}
    assert len(kept) == 1
    for entry in set(entries(store)) - kept:
        entry.unlink()
    made.clear()
    assert answer(store, question) == first
    assert made == []
    cut = (from_epoch_us(T0_US + DAY_US), None)
    assert answer(store, question, cut) == answer(store, question, cut, fresh=True) != first
    add_day(store, 1, first_tick=300)
    late = answer(store, question)
    assert late == answer(store, question, fresh=True) != first
    with iolens.open(store.url) as opened:
        options = {"timezone": "Asia/Tokyo"} if question == "workload" else {"percentiles": (50.0,)}
        assert to_json(opened.analyse(question, **options)) != to_json(opened.analyse(question))


@pytest.mark.parametrize("question", ["workload", "imbalance"])  # a heat map of few days has buckets by their number
def test_one_more_day_costs_one_day(store: Store, question: str, made: list[Any]) -> None:
    answer(store, question)
    add_day(store, 3, targets=4)
    made.clear()
    remembered = answer(store, question)
    assert {day for _, day in made} == {"2020-09-17"}
    assert remembered == answer(store, question, fresh=True)


@pytest.mark.parametrize("question", QUESTIONS)
def test_late_data_are_in_the_answer_and_cost_their_day(store: Store, question: str, made: list[Any]) -> None:
    before = answer(store, question)
    add_day(store, 1, first_tick=100, seed=50)
    made.clear()
    remembered = answer(store, question)
    assert {day for _, day in made} == {"2020-09-15"}
    assert before != remembered == answer(store, question, fresh=True)


@pytest.mark.parametrize("ends", [(1, None), (None, 2), (1, 2)])
def test_another_window_uses_the_same_days(store: Store, made: list[Any], ends: tuple[int | None, int | None]) -> None:
    answer(store, "workload")
    made.clear()
    since, until = (None if end is None else from_epoch_us(T0_US + end * DAY_US) for end in ends)
    remembered = answer(store, "workload", (since, until))
    assert made == []
    assert remembered == answer(store, "workload", (since, until), fresh=True)


def test_a_day_that_the_window_cuts_is_not_remembered(store: Store, made: list[Any]) -> None:
    window = from_epoch_us(T0_US + 100_000_000), from_epoch_us(T0_US + DAY_US + 100_000_000)
    first = answer(store, "workload", window)
    assert {file.parent.parent.name for file in entries(store)} <= {"tails-1"}  # which depend on their values alone
    assert answer(store, "workload", window) == first == answer(store, "workload", window, fresh=True)


def test_a_day_that_is_not_over_is_not_remembered(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: (T0_US + DAY_US // 2) / 1e6)
    answer(store, "imbalance")
    assert entries(store) == []


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "foreign", "gone"])
def test_a_damaged_entry_is_made_again(store: Store, damage: str, made: list[Any]) -> None:
    first = answer(store, "imbalance")
    listed = entries(store)
    for file in listed:
        data = file.read_bytes()
        if damage == "cut":
            file.write_bytes(data[: len(data) // 2])
        elif damage == "flipped":
            file.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
        elif damage == "empty":
            file.write_bytes(b"")
        elif damage == "foreign":
            file.write_bytes(listed[0].read_bytes() if file != listed[0] else listed[-1].read_bytes())
        else:
            file.unlink()
    made.clear()
    assert answer(store, "imbalance") == first
    assert made
    made.clear()
    assert answer(store, "imbalance") == first
    assert made == []


def test_a_store_that_cannot_be_written_works_without(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(PartMemory, "_put", refused)
    assert answer(store, "workload") == answer(store, "workload", fresh=True)
    assert entries(store) == []


def test_another_order_of_sources_is_another_answer(store: Store) -> None:
    add_day(store, 1, seed=9)
    rows = made_up(77, 40, 3, first_tick=DAY_TICKS).table("target_io")
    other = rows.set_column(rows.column_names.index("source"), "source", [["other"] * rows.num_rows])
    store.append("target_io", other)
    answers = set()
    for order in ("['made-up', 'other']", "['other', 'made-up']"):
        config = store.tables.folder.parent / "iolens.toml"
        config.write_text(f"[filesystems.scratch]\nsources = {order}\n")
        for fresh in (False, False, True):
            with iolens.open(store.url, config=str(config), fresh=fresh) as opened:
                answers.add((order, to_json(opened.workload())))
    assert len(answers) == 2


KILLED = """
import os, signal, sys
from pathlib import Path
import iolens
from iolens.store import selection
selection.FEWEST_REMEMBERED = 1
def write_bytes(path, data, count=[0]):
    count[0] += 1
    with path.open("wb") as stream:
        stream.write(data[: len(data) // 2] if sys.argv[2] == "within" else data)
    if count[0] == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    with path.open("wb") as stream:
        stream.write(data)
Path.write_bytes = write_bytes
iolens.open(sys.argv[1]).imbalance()
"""


@pytest.mark.parametrize("when", ["within", "after"])
def test_a_killed_question_leaves_nothing_wrong(store: Store, when: str) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, store.url, when], capture_output=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert len(entries(store)) == 4
    assert answer(store, "imbalance") == answer(store, "imbalance", fresh=True)
    assert answer(store, "imbalance") == answer(store, "imbalance", fresh=True)


def test_store_info_and_vacuum(store: Store) -> None:
    answer(store, "imbalance")
    listed = store_info(store)["remembered"]
    assert {item["form"] for item in listed} == {"survey-1", "imbalance-2"}
    assert sum(item["parts"] for item in listed) == len(entries(store))
    assert vacuum_store(store, 24.0, most_bytes=0, dry_run=True) == len(entries(store))
    largest = max(file.stat().st_size for file in entries(store))
    vacuum_store(store, 24.0, most_bytes=largest)
    assert 0 < sum(file.stat().st_size for file in entries(store)) <= largest
    vacuum_store(store, 24.0, most_bytes=0)
    assert entries(store) == []


# Days whose raw rows are dropped.


def drop_before(store: Store, day: int) -> None:
    roll_up(store)
    with iolens.open(store.url) as opened:
        retain(opened, time.time() - (T0_US / 1e6 + day * 86_400))


def result_of(store: Store, question: str, window: Window = (None, None), **narrowing: Any) -> dict[str, Any]:
    with iolens.open(store.url) as opened:
        result = opened.analyse(question, since=window[0], until=window[1], **narrowing)
    return dict(json.loads(to_json(result)))


def same(left: Any, right: Any) -> None:
    """To 1e-9."""
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for name, value in left.items():
            same(value, right[name])
    elif isinstance(left, list):
        assert len(left) == len(right)
        for item, other in zip(left, right, strict=True):
            same(item, other)
    else:
        assert left == (pytest.approx(right, rel=1e-9) if isinstance(left, float) else right)


@pytest.mark.parametrize("question", QUESTIONS)
def test_days_whose_raw_rows_were_dropped_stay_in_the_answer(
    store: Store, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload_analysis, "EXACT_AT_MOST", 0)  # in bins before and after
    before = result_of(store, question)
    drop_before(store, 2)
    for _ in range(2):
        after = result_of(store, question)
        assert after.pop("days_from_parts") == 2
        same(after, before)
    add_day(store, 0, first_tick=500, seed=3)  # too late
    after = result_of(store, question)
    assert after.pop("days_from_parts") == 2
    same(after, before)
    drop_before(store, 3)
    alone = result_of(store, question)
    assert alone.pop("days_from_parts") == 3
    assert alone["resolution"] == "raw"
    left_out = {"coverage": None, "envelope": None}  # sources by their rows; buckets by the hours of the first and last
    same({**alone, **left_out}, {**before, **left_out})


def test_percentiles_of_dropped_and_raw_days_together_are_from_bins(store: Store) -> None:
    before = result_of(store, "workload")
    drop_before(store, 2)
    after = result_of(store, "workload")
    assert before["coverage"]["percentile_error_pct"] == 0.0
    assert after["coverage"]["percentile_error_pct"] == 0.5
    for old, new in zip(before["targets"], after["targets"], strict=True):
        assert new["read_max_bytes_per_s"] == old["read_max_bytes_per_s"]
        assert new["write_p99_bytes_per_s"] <= new["write_max_bytes_per_s"] == old["write_max_bytes_per_s"]
    assert after["aggregate"] == before["aggregate"]


def test_what_parts_cannot_answer_is_said(store: Store) -> None:
    drop_before(store, 2)
    result = result_of(store, "workload", targets=["OST0001"])
    assert result["days_only_in_rollups"] == 2
    assert "days_from_parts" not in result
    cut = from_epoch_us(T0_US + 3_600_000_000), None
    result = result_of(store, "imbalance", cut)
    assert (result["days_only_in_rollups"], result["days_from_parts"]) == (1, 1)
    with iolens.open(store.url) as opened:
        lines = notes(opened.workload())
    assert lines[0].startswith("The raw rows of 2 days of this window of scratch were dropped. They are in this answer")


def test_days_of_a_zone_are_those_of_utc_where_only_sums_by_utc_day_are_left(store: Store) -> None:
    local = result_of(store, "utilization", timezone="Asia/Tokyo")
    assert local["daily_summary"]["timezone"] == "Asia/Tokyo"
    utc = result_of(store, "utilization")
    drop_before(store, 2)
    after = result_of(store, "utilization", timezone="Asia/Tokyo")
    assert (after["daily_summary"]["timezone"], after["days_from_parts"]) == ("UTC", 2)
    assert after["daily"] == utc["daily"]
    assert "days are UTC days: of some only sums by UTC day are left" in after["coverage"]["notes"]


def test_vacuum_leaves_what_is_kept_for_good(store: Store) -> None:
    drop_before(store, 2)
    vacuum_store(store, 1.0, most_bytes=0)
    assert result_of(store, "workload")["days_from_parts"] == 2
    kept = {item["form"]: item["parts"] for item in store_info(store)["kept"]}
    assert (kept["workload-2"], kept["utilization-1"], kept["imbalance-2"]) == (2, 2, 4)  # with background and without


def test_a_new_revision_makes_what_is_remembered_anew_and_reads_what_is_kept(
    store: Store, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    drop_before(store, 2)
    result_of(store, "workload")
    made.clear()
    result_of(store, "workload")
    assert "workload" not in {form for form, _ in made}
    monkeypatch.setattr(WorkloadParts, "form", replace(WorkloadParts.form, revision=WorkloadParts.form.revision + 1))
    assert result_of(store, "workload")["days_from_parts"] == 2
    assert [day for form, day in made if form == "workload"] == ["2020-09-16"]


def test_a_damaged_kept_part_is_a_day_that_only_the_rollup_has(store: Store) -> None:
    drop_before(store, 2)
    for file in store.tables.folder.glob("kept/imbalance-*/2020-09-14/*.part"):
        file.write_bytes(file.read_bytes()[:-1])
    result = result_of(store, "imbalance")
    assert (result["days_only_in_rollups"], result["days_from_parts"]) == (1, 1)


# Random histories.


class History:
    """What may happen to a store; every step is drawn from one seed."""

    def __init__(self, folder: Path, chance: Random) -> None:
        self.store, self.chance = Store(folder), chance
        self.captures = 0
        self.counts = {f"OST{number:04x}": 0 for number in range(4)}

    def append(self) -> None:
        first_tick = self.chance.choice([0, 20, DAY_TICKS - 20])
        targets = self.chance.randrange(1, 4)
        seed = self.chance.randrange(1 << 20)
        add_day(self.store, self.chance.randrange(4), targets=targets, first_tick=first_tick, seed=seed)

    def ingest(self) -> None:
        self._load(rebuild=False)

    def rebuild(self) -> None:
        self._load(rebuild=True)

    def _load(self, *, rebuild: bool) -> None:
        """Raw samples of some minutes, perhaps before others that are there."""
        begin = self.chance.randrange(3 * 86_400)
        samples = []
        for number in range(self.chance.randrange(2, 30)):
            for name in self.counts:
                self.counts[name] += self.chance.choice([0, 0, 4096, 1 << 20])
                samples.append(io_sample(begin + 5 * number, self.counts[name], 0, target=name))
        self.captures += 1
        capture = Capture(str(self.captures), f"agent/oss1/run/{self.captures}", lambda: iter(samples))
        self.store.ingest([capture], "agent", rebuild=rebuild)

    def compact(self) -> None:
        compact_store(self.store)

    def retain(self) -> None:
        drop_before(self.store, self.chance.randrange(4))

    def vacuum(self) -> None:
        vacuum_store(self.store, 1.0, most_bytes=self.chance.choice([0, 20_000]))

    def damage(self) -> None:
        for file in entries(self.store):
            if self.chance.random() < 0.3:
                file.write_bytes(self.chance.choice([b"", file.read_bytes()[:-1], b"x" * 100]))

    def ask(self) -> None:
        start = from_epoch_us((T0 * 1_000_000) // DAY_US * DAY_US)
        days = [start + timedelta(days=number) for number in range(6)]
        first, last = sorted(self.chance.sample(days, 2))
        window = self.chance.choice([None, first, first + timedelta(hours=3)]), self.chance.choice([None, last])
        question = self.chance.choice(QUESTIONS)
        assert answer(self.store, question, window) == answer(self.store, question, window, fresh=True)


@given(st.integers(0, 1 << 30))
@settings(max_examples=40 if IS_SOAK else 2, deadline=None)
def test_the_remembered_answer_is_the_fresh_one_in_any_history(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    chance = Random(seed)
    history = History(tmp_path_factory.mktemp("store") / "store", chance)
    history.append()
    steps = [history.append, history.ingest, history.rebuild, history.compact, history.retain, history.vacuum,
             history.damage]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selections, "FEWEST_REMEMBERED", 1)
        patch.setattr(selections, "ROWS_OF_DAYS", chance.choice([1, 200, 1_000_000]))
        history.ask()
        for step in chance.sample(steps, k=5):
            step()
            history.ask()


class Piece:
    """A part that can be watched."""


def test_parts_of_several_questions_are_let_go_as_soon_as_all_have_taken_them() -> None:
    """`itertools.tee` holds up to 57 of them, which was 200 MiB for 500 targets over 30 days."""
    made: list[weakref.ref[Piece]] = []

    def parts() -> Iterator[Any]:
        for _ in range(20):
            pieces = (Piece(), Piece())
            made.extend(map(weakref.ref, pieces))
            yield pieces
            del pieces

    first, second = streams_of(parts(), 2)
    for left, right in zip(first, second, strict=True):
        assert left is not right
        del left, right
        gc.collect()
        assert sum(piece() is not None for piece in made) <= 4  # those of this turn, and of the one before
    assert len(made) == 40
