"""The oracles notice what they are there for: a source that fails on purpose is reported in each of its ways."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from iolens.records import Capture, Item, Row
from iolens.sources import ReadOptions
from tests.fuzz import long_inputs, oracles, runs
from tests.fuzz.corpus import Example
from tests.fuzz.oracles import TooLong, faults_of, time_limit

EXAMPLE = Example("made up", "made-up", {"a.txt": b"1\n2\n3\n"})
Reading = Callable[[Path], Iterator[Item]]


def fullness(**values: Any) -> Row:
    known = {"time": 1_000_000, "filesystem": "s", "target": "s-OST0000", "used_bytes": 1}
    return Row("target_capacity", known | values)


class MadeUp:
    """A source whose captures are read by `reading`; as the bad ones do, it may look at one file to read another."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def recognises(self, path: Path, head: bytes) -> bool:
        return True

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        for path in paths:
            yield Capture(str(path), str(path), partial(self.reading, path))


def use(monkeypatch: pytest.MonkeyPatch, reading: Reading) -> None:
    monkeypatch.setattr(oracles, "get_source", lambda name: MadeUp(reading))


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (fullness(), None),
        (fullness(used_bytes=-1), "target_capacity.used_bytes from -1 to -1"),
        (fullness(used_bytes=2**63), "cannot be stored"),
        (fullness(time=260_000_000_000_000_000), "target_capacity.time from"),
    ],
)
def test_an_impossible_value_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: Row, fault: str | None
) -> None:
    use(monkeypatch, lambda path: iter([row]))
    faults = faults_of(EXAMPLE, tmp_path)
    assert faults == [] if fault is None else len(faults) == 1 and fault in faults[0]


def test_an_exception_is_a_fault_though_the_store_makes_a_refusal_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumbling(path: Path) -> Iterator[Item]:
        raise IndexError("list index out of range")
        yield

    use(monkeypatch, stumbling)
    (fault,) = faults_of(EXAMPLE, tmp_path)
    assert fault.startswith("traceback: ")
    assert "IndexError" in fault


def test_what_does_not_end_is_ended() -> None:
    with pytest.raises(TooLong), time_limit(0.05):
        all(True for _ in itertools.count())


def test_a_row_lost_from_the_file_beside_a_damaged_one_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(path: Path) -> Iterator[Item]:
        """Reads nothing while a damaged copy lies beside it."""
        case = tmp_path / "case" / "a.txt"
        if not case.exists() or case.read_bytes() == b"1\n2\n3\n":
            yield from (fullness(used_bytes=int(line)) for line in path.read_text().splitlines())

    use(monkeypatch, forgetful)
    faults = [fault.what for report in runs.run_example(EXAMPLE, range(1), tmp_path) for fault in report.faults]
    assert faults == ["a row of the whole file beside it is lost"]


def test_time_that_grows_with_the_square_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def by(power: int) -> Callable[[Example, Path], list[str]]:
        def read(example: Example, folder: Path) -> list[str]:
            folder.mkdir(exist_ok=True)
            clock.append(clock[-1] + (len(example.files["a.txt"]) / 50_000) ** power)
            return []

        return read

    clock = [0.0]
    monkeypatch.setattr(long_inputs.time, "thread_time", lambda: clock[-1])
    monkeypatch.setattr(long_inputs, "examples_of", lambda source: [EXAMPLE])
    for power, count in ((1, 0), (2, 3)):
        monkeypatch.setattr(long_inputs, "faults_of", by(power))
        assert len(long_inputs.faults_of_long_inputs("made-up", 50_000, tmp_path / "long", (b" ",))) == count
