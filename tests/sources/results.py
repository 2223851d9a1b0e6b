"""Benchmark results read from made-up or captured text."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iolens.records import Note, Problem, Row
from iolens.sources import get_source, recognise
from iolens.sources.reading.options import ReadOptions


class Results:
    """What a file became."""

    def __init__(self, path: Path, source: str, options: ReadOptions | None = None) -> None:
        self.rows: list[Mapping[str, Any]] = []
        self.problems: list[Problem] = []
        self.notes: list[Note] = []
        for capture in get_source(source).captures([path], options or ReadOptions()):
            for item in capture.items():
                if isinstance(item, Row):
                    assert item.table == "benchmark_runs"
                    self.rows.append(item.values)
                elif isinstance(item, Note):
                    self.notes.append(item)
                else:
                    assert isinstance(item, Problem)
                    self.problems.append(item)

    def column(self, name: str) -> list[Any]:
        """One column of all rows."""
        return [row.get(name) for row in self.rows]


def read(folder: Path, source: str, text: str | bytes, options: ReadOptions | None = None) -> Results:
    """Results of a text; it must be recognised as what it is, also when packed."""
    path = folder / "result"
    content = text.encode() if isinstance(text, str) else text
    path.write_bytes(content)
    assert recognise(path).name == source
    packed = folder / "packed.gz"
    packed.write_bytes(gzip.compress(content))
    plain, unpacked = Results(path, source, options), Results(packed, source, options)
    assert [_without_identity(row) for row in plain.rows] == [_without_identity(row) for row in unpacked.rows]
    return plain


def _without_identity(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "run_id"}
