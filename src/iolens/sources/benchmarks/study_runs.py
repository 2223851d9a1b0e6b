"""Runs of a study that `iolens bench` made: `runs.jsonl` in its folder, a line for every point that was measured.

A line that a kill cut short is as if the point had not been measured. A point is loaded once, however often a file that
grows is loaded, and wherever it was copied.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from iolens.errors import InputError
from iolens.records import Capture, Item, Problem, Row
from iolens.schema import TABLES
from iolens.sources.benchmarks.results import TABLE
from iolens.sources.reading.bounded_input import DAMAGED, opened
from iolens.sources.reading.captures import read_each
from iolens.sources.reading.options import ReadOptions
from iolens.visible_text import shown_name

RUNS: Final = "runs.jsonl"
RUNS_FORMAT: Final = "iolens study runs, version 1"
LONGEST: Final = 256 << 20  # bytes of a file; a point takes about a thousand
_FIRST_LINE: Final = json.dumps({"format": RUNS_FORMAT}).encode()
_START: Final = _FIRST_LINE.removesuffix(b"}")
_PYTHON: Final = {"string": str, "int64": int, "float64": float, "bool": bool, "timestamp": int}

Values = dict[str, Any]


@dataclass(slots=True)
class StudyJournal:
    """What `runs.jsonl` says: rows by point, and directories that were made and are not known to be gone."""

    rows: dict[str, list[Values]] = field(default_factory=dict)
    directories: list[Path] = field(default_factory=list)
    whole_bytes: int = 0  # up to the end of the last complete line
    cut_bytes: int = 0  # after it

    def take(self, line: Mapping[str, Any]) -> bool:
        """One line, and whether it is of the format; a point that is there already is not counted again."""
        if isinstance(point := line.get("point"), str) and isinstance(rows := line.get("rows"), list):
            self.rows.setdefault(point, rows)
            return all(isinstance(row, dict) for row in rows)
        if isinstance(path := line.get("directory"), str):
            self.directories += [Path(path)] if Path(path) not in self.directories else []
            return True
        if isinstance(path := line.get("removed"), str):
            self.directories = [known for known in self.directories if known != Path(path)]
            return True
        return False


def read_journal(octets: bytes, place: str) -> StudyJournal:
    """The lines that are whole; a line that is not of the format is refused with its number."""
    journal = StudyJournal()
    *lines, cut = octets.split(b"\n")
    journal.cut_bytes = len(cut)
    for number, line in enumerate(lines, 1):
        known = _json_object(line)
        if known is None or not (known.get("format") == RUNS_FORMAT if number == 1 else journal.take(known)):
            raise _no_line_of_ours(line, place, number)
        journal.whole_bytes += len(line) + 1
    if not lines and not _FIRST_LINE.startswith(cut):  # whoever goes on with the study would cut it off
        raise _no_line_of_ours(cut, place, 1)
    return journal


def _json_object(line: bytes) -> dict[str, Any] | None:
    try:
        known = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return known if isinstance(known, dict) else None


def _no_line_of_ours(line: bytes, place: str, number: int) -> InputError:
    return InputError(place, shown_name(line[:60].decode("utf-8", "replace")), "a line of `iolens bench`", number)


class StudyRuns:
    """Runs of a study."""

    name = "study"
    summary = "runs of a study that `iolens bench` made: its folder, or runs.jsonl"
    whole_directories = True  # the plan beside the runs is none

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it is such a file, or a folder with one."""
        return (path / RUNS).is_file() if path.is_dir() else head.startswith(_START)

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per point."""
        journals, refused = read_each([file for path in paths for file in _files(path)], _placed_journal)
        yield from refused
        for place, journal in journals:
            if journal.cut_bytes or not journal.whole_bytes:
                trouble = "the last line was cut: its point was not measured" if journal.cut_bytes else "is empty"
                problem = Problem(place, None, trouble)
                yield Capture(place, f"file/{place}", partial(iter, [problem]))
            for key, rows in journal.rows.items():
                content = hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()
                yield Capture(f"{place}: {key}", f"study/{content}", partial(_items, place, rows, options))


SOURCE: Final = StudyRuns()


def journal_of(file: Path) -> StudyJournal:
    """What a file says; one that is longer than any study's is refused, not read in part."""
    try:
        with opened(file) as stream:
            octets = stream.read(LONGEST + 1)
    except DAMAGED as error:
        raise InputError(str(file), f"cannot be read: {error}") from error
    if len(octets) > LONGEST:
        raise InputError(str(file), f"is longer than {LONGEST >> 20} MiB", "runs of one study")
    return read_journal(octets, str(file))


def study_rows(journal: StudyJournal, place: str) -> list[Values]:
    """Rows of all points; a value that its column cannot hold is refused: nothing is computed from it."""
    checked = []
    for key, rows in journal.rows.items():
        for row in rows:
            known, wrong = _checked(row)
            if wrong:
                value = f"{shown_name(wrong[0])} = {shown_name(repr(row[wrong[0]])[:60])}"
                raise InputError(place, f"point {shown_name(key)}: {value}", "a column of benchmark_runs, and its type")
            checked.append(known)
    return checked


def _files(path: Path) -> list[Path]:
    """The file itself, that of a folder, or those of all folders in a directory of studies."""
    if not path.is_dir() or (path / RUNS).is_file():
        return [path / RUNS if path.is_dir() else path]
    return sorted(path.glob(f"*/{RUNS}")) or [path / RUNS]


def _placed_journal(file: Path) -> tuple[str, StudyJournal]:
    return str(file), journal_of(file)


def _items(place: str, rows: Sequence[Values], options: ReadOptions) -> Iterator[Item]:
    for row in rows:
        known, wrong = _checked(row)
        for name in wrong:
            yield Problem(place, None, f"{shown_name(name)}: not a column, or not a value of it: left out")
        if options.filesystem is not None:
            known["filesystem"] = options.filesystem
        if isinstance(known.get("run_id"), str) and isinstance(known.get("direction"), str):
            yield Row(TABLE, known)
        else:
            yield Problem(place, None, "a run without identity or direction: left out")


def _checked(row: Values) -> tuple[Values, list[str]]:
    """Values that the table's columns can hold, and names of those that are none."""
    known, wrong = {}, []
    columns = {column.name: column for column in TABLES[TABLE].columns if column.name != "source"}
    for name, value in row.items():
        wanted = _PYTHON[columns[name].type] if name in columns else None
        typed = float(value) if wanted is float and type(value) is int else value
        if wanted is None or type(typed) is not wanted or (isinstance(typed, int | float) and not 0 <= typed < 2**63):
            wrong.append(name)
        else:
            known[name] = typed
    return known, wrong
