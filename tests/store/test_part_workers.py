"""Worker processes that make parts: in order, with the errors of a part, and gone when they are not wanted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

import iolens
from iolens.errors import StoreError, UsageError
from iolens.store import selection as selections
from iolens.store.parts import FEWEST_ROWS, Days, Ends, made_by_workers, pays
from iolens.store.selection import StoreSelection, TickDays
from iolens.store.store import Store
from tests.analyses.telemetry import made_up

TICK_US = 5_000_000


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> list[TickDays]:
    """Six days of a store."""
    store = Store(tmp_path_factory.mktemp("store"))
    for day in range(6):
        store.append("target_io", made_up(day, ticks=20, targets=2, first_tick=day * 17_280).table("target_io"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selections, "ROWS_OF_DAYS", 1)
        listed = list(StoreSelection(store.tables, store.engine, "scratch").tick_days(["target_io"], TICK_US))
    assert len(listed) == 6
    return listed


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    before = active_children()
    yield
    deadline = time.monotonic() + 60
    while active_children() != before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert active_children() == before


@dataclass(frozen=True)
class Maker:
    """Makes parts by a function."""

    made: Callable[[Days], Any]


def first_end(days: Days) -> tuple[int, int]:
    """A part: its first end, and the process that made it."""
    ends = days.frame("target_io").select("epoch_us").collect(backend="pyarrow").to_native().column("epoch_us")
    return min(ends.to_pylist()), os.getpid()


def refused(days: Days) -> None:
    raise UsageError("not this one")


def killed(days: Days) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def endless(days: Days) -> None:
    time.sleep(600)


def test_parts_come_in_the_order_of_time_from_other_processes(days: list[TickDays]) -> None:
    parts = list(made_by_workers(Maker(first_end), days, 2))
    ends = [end for end, _ in parts]
    assert ends == sorted(ends)
    assert ends == [first_end(item)[0] for item in days]
    assert os.getpid() not in {process for _, process in parts}


def test_an_error_of_a_part_is_that_of_the_question(days: list[TickDays]) -> None:
    with pytest.raises(UsageError, match="not this one"):
        list(made_by_workers(Maker(refused), days, 2))


def test_a_worker_that_is_killed_is_one_message(days: list[TickDays]) -> None:
    with pytest.raises(StoreError, match="worker process was ended"):
        list(made_by_workers(Maker(killed), days, 2))


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C means what it means by default, whatever this process was started with."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_workers_at_once(days: list[TickDays]) -> None:
    started, is_over = active_children(), threading.Event()

    def interrupt() -> None:
        """As a user does: again, where once was not noticed."""
        while active_children() == started:
            time.sleep(0.05)
        while not is_over.wait(5):
            os.kill(os.getpid(), signal.SIGINT)

    beside = threading.Thread(target=interrupt)
    beside.start()
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            list(made_by_workers(Maker(endless), days, 2))
    finally:
        is_over.set()
    beside.join()
    assert time.monotonic() - began < 120  # not the ten minutes of a part


def test_who_stops_taking_parts_ends_the_workers(days: list[TickDays]) -> None:
    parts = made_by_workers(Maker(first_end), days, 2)
    next(parts)
    parts.close()  # type: ignore[attr-defined]


def test_the_script_that_asks_is_not_run_again_by_the_workers(tmp_path: Path, days: list[TickDays]) -> None:
    """A script of four lines has no `if __name__ == "__main__"`."""
    script = tmp_path / "script.py"
    url = str(days[0].selection.tables.folder)
    script.write_text(
        "import iolens\nfrom iolens.store import parts as part_workers\npart_workers.FEWEST_ROWS = 0\n"
        "from iolens.store import selection\nselection.ROWS_OF_DAYS = 1\n"
        f"print(iolens.open({url!r}, workers=2).imbalance().samples)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.stdout == f"{iolens.open(url).imbalance().samples}\n", done.stderr


def test_where_the_engine_sums_workers_are_for_the_cores_it_leaves_idle() -> None:
    day = date(2020, 9, 14)
    days = [TickDays(None, day, day, Ends(0, 1), FEWEST_ROWS)] * 2  # type: ignore[arg-type]
    for cores, apart, summed in ((1, False, False), (8, True, False), (9, True, True)):
        assert (pays(days, cores, by_engine=False), pays(days, cores, by_engine=True)) == (apart, summed)
