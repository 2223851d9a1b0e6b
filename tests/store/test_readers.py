"""Many captures at once: in order, and one that kills its reader is refused alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from iolens.errors import InputError, UsageError
from iolens.records import Capture, Item, Problem, Row
from iolens.sources.contents.find import parse_format
from iolens.store import readers
from iolens.store.readers import guarded, read_ahead
from iolens.store.store import Store


def fullness(path: Path):
    number = int(path.read_text())
    if number == 13:
        os.abort()
    if number == 14:
        raise InputError(str(path), "nonsense", "a number", 1)
    if number == 15:
        raise OverflowError("int too large to convert to C long")
    values = {"time": number * 1_000_000, "filesystem": "scratch", "target": "OST0000", "used_bytes": number}
    yield Row("target_capacity", values)


def captures(folder: Path, count: int) -> list[Capture]:
    for number in range(count):
        (folder / str(number)).write_text(str(number))
    return [Capture(str(folder / str(n)), f"file/{n}", partial(fullness, folder / str(n))) for n in range(count)]


def test_captures_come_in_their_order_and_a_dead_reader_costs_one(tmp_path: Path) -> None:
    readings = list(read_ahead(captures(tmp_path, 60), lambda capture: not capture.origin.endswith("/20"), 2))
    result = {
        int(Path(reading.capture.origin).name): None if reading.items is None else list(reading.items)
        for reading in readings
    }
    assert list(result) == list(range(60))
    assert result[20] is None
    assert [item.values["used_bytes"] for item in result[59]] == [59]
    assert isinstance(result[13][0], Problem)
    assert "died" in result[13][0].reason
    assert "nonsense" in result[14][0].reason
    assert result[15][0].reason.startswith("not read on; please report this: OverflowError at ")
    assert sum(isinstance(items[0], Row) for items in result.values() if items) == 56


@pytest.mark.parametrize("workers", [1, 2])
def test_the_store_is_the_same_however_many_read(tmp_path: Path, monkeypatch, workers: int) -> None:
    monkeypatch.setattr(readers, "LARGEST_BYTES", 1)  # numbers of two digits are too large for a worker
    (tmp_path / "in").mkdir()
    store = Store(tmp_path / "store")
    wanted = [capture for capture in captures(tmp_path / "in", 40) if Path(capture.origin).name != "13"]
    tally = store.ingest(wanted, "test", workers=workers)
    assert (tally.captures, tally.rows["target_capacity"], tally.refused) == (39, 37, 2)
    again = store.ingest(wanted, "test", workers=workers)
    assert (again.already_present, again.refused, again.rows) == (37, 2, {})


def fails_within_a_source(path: Path) -> Iterator[Item]:
    """As a source of ours would: the report names the place in iolens."""
    yield Row("target_capacity", {"time": 1_000_000, "filesystem": "scratch", "target": "OST0000", "used_bytes": 1})
    parse_format(None, str(path))  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [IndexError("index 0"), RecursionError(), MemoryError(), ValueError("9" * 9000)])
def test_whatever_a_source_raises_costs_its_capture_alone(tmp_path: Path, error: Exception) -> None:
    def broken() -> Iterator[Item]:
        raise error
        yield

    good = captures(tmp_path, 2)
    store = Store(tmp_path / "store")
    tally = store.ingest([good[0], Capture("/data/bad", "file/bad", broken), good[1]], "test")
    assert (tally.rows["target_capacity"], tally.refused, tally.captures) == (2, 1, 3)
    (problem,) = tally.problems
    assert problem.place == "/data/bad"
    assert problem.reason.startswith(f"not read on; please report this: {type(error).__name__} at ")
    assert len(problem.reason) < 300


def test_the_report_names_the_place_in_our_own_code(tmp_path: Path) -> None:
    items = list(guarded(Capture("/data/bad", "file/bad", partial(fails_within_a_source, tmp_path))))
    assert isinstance(items[0], Row)
    assert re.search(r"TypeError at sources/contents/find\.py:\d+: ", items[1].reason)


def test_a_list_of_captures_that_breaks_off_keeps_those_before_it(tmp_path: Path) -> None:
    def breaking_off() -> Iterator[Capture]:
        yield from captures(tmp_path, 3)
        raise ZeroDivisionError("in the middle of the list")

    tally = Store(tmp_path / "store").ingest(breaking_off(), "test")
    assert (tally.rows["target_capacity"], tally.refused) == (3, 1)
    assert "please report this: ZeroDivisionError" in tally.problems[0].reason


def test_a_refusal_while_listing_keeps_what_was_loaded_and_its_count(tmp_path: Path) -> None:
    def refusing() -> Iterator[Capture]:
        yield from captures(tmp_path, 3)
        raise InputError("/data/x", "nothing here", "something")

    tally = Store(tmp_path / "store").ingest(refusing(), "test")
    assert (tally.rows["target_capacity"], [str(problem) for problem in tally.problems]) == (
        3,
        ["/data/x: nothing here; expected something"],
    )


def test_a_wrong_question_ends_the_call(tmp_path: Path) -> None:
    def wrong() -> Iterator[Capture]:
        raise UsageError("name the database")
        yield

    with pytest.raises(UsageError):
        Store(tmp_path / "store").ingest(wrong(), "test")


def test_what_a_damaged_file_holds_is_quoted_in_part() -> None:
    problem = Problem("/data/x", 3, "not a line: " + "[" * 100_000)
    (short,) = guarded(Capture("/data/x", "file/x", partial(iter, (problem,))))
    assert (short.line, len(short.reason)) == (3, 1000)


def test_a_few_captures_start_no_process(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(readers, "_Worker", None)
    assert len(list(read_ahead(captures(tmp_path, 5), lambda capture: True, 2))) == 5
