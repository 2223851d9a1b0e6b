"""Results of IOR 3 and 4 as text, CSV or JSON: one row per operation and iteration.

Scripts with several tests, several runs in one file, warnings between the lines of JSON, and runs that failed or were
killed: what was completed is kept, what is missing is said. Per-operation and per-rank details are named and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from iolens.records import Capture, Item, Note, Problem
from iolens.sources.benchmarks.ior_json import read_json
from iolens.sources.benchmarks.ior_results import IorResult, IorTest, result_row
from iolens.sources.benchmarks.ior_text import BANNER, FAILURE, read_text
from iolens.sources.benchmarks.results import ResultFile, captures_of, finite, whole
from iolens.sources.reading.bounded_input import unpacked
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import shown
from iolens.sources.reading.saved_text import cells_of
from iolens.units import KIB

SUMMARY_HEADER: Final = "access,bw(MiB/s),"
DETAILS: Final = {
    "access,rank,runtime-with-openclose,": "per-rank details of an IOR run, which tell neither sizes nor when it ran",
    "time,runtime,tp": "per-operation details of an IOR run, which tell neither direction nor sizes",
}
_JSON: Final = re.compile(rb'\A(?:[^{\n]*+\n)*+[ \t]*+\{\s*+"Version"\s*+:\s*+"[^"]*+"\s*+,\s*+"Began"')
_MDTEST: Final = re.compile(rb"^mdtest-\S++ was launched with", re.MULTILINE)
_CSV_COLUMNS: Final = ("access", "bw(MiB/s)", "total(s)", "block(KiB)", "xfer(KiB)", "numTasks")


class Ior:
    """Results of the IOR benchmark."""

    name = "ior"
    summary = "results of IOR 3 and 4: text, CSV or JSON"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it begins like a text, JSON or CSV result of IOR, or is what IOR says when it fails."""
        text = unpacked(head)
        if b"mdtest-" in text and _MDTEST.search(text):
            return False
        if (b"IOR-" in text and BANNER.search(text)) or _JSON.match(text):
            return True
        if b"ERROR: " in text and FAILURE.search(text):
            return True
        first = text.partition(b"\n")[0].strip().decode("ascii", "replace")
        return first.startswith((SUMMARY_HEADER, *DETAILS))

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per file."""
        return captures_of(paths, options, read_ior)


SOURCE: Final = Ior()


def read_ior(file: ResultFile) -> Iterator[Item]:
    """Rows of one file, and what was not understood or left out."""
    text, trouble = file.text()
    yield from read_ior_text(file, text)
    if trouble:
        yield Problem(file.place, None, trouble)


def read_ior_text(file: ResultFile, text: str, *, has_summary: bool = True) -> Iterator[Item]:
    """The same of a text that is in memory already; IOR within another program (IO500) prints no summary."""
    data = text.encode("utf-8", "replace")
    first = text.partition("\n")[0].strip()
    for header, why in DETAILS.items():
        if first.startswith(header):
            yield Note(file.place, 1, f"{why}: left out; ingest the run's own text, CSV or JSON")
            return
    if first.startswith(SUMMARY_HEADER):
        yield from _read_csv(file, text)
    elif _JSON.match(data):
        yield from read_json(file, text)
    elif BANNER.search(data) or FAILURE.search(data):
        yield from read_text(file, text, has_summary=has_summary)
    else:
        yield Problem(file.place, None, f"not a result of IOR: it begins with {shown(first)}")


def _read_csv(file: ResultFile, text: str) -> Iterator[Item]:
    """`summaryFormat=CSV`: results alone, without the time or the options of the run."""
    first, *lines = text.split("\n")
    header = cells_of(first)
    if missing := [name for name in _CSV_COLUMNS if name not in header]:
        yield Problem(file.place, 1, f"the heading has no column {', '.join(missing)}")
        return
    for line, content in enumerate(lines, 2):
        if not content.strip():
            continue
        cells = cells_of(content)
        named = dict(zip(header, cells, strict=False))
        block, transfer, tasks = (finite(named.get(name)) for name in ("block(KiB)", "xfer(KiB)", "numTasks"))
        if len(cells) != len(header) or not block or not transfer or not tasks:
            yield Problem(file.place, line, f"line not understood: {shown(','.join(cells))}")
            continue
        test = IorTest(tasks=whole(tasks), block_bytes=whole(block * KIB), transfer_bytes=whole(transfer * KIB))
        result = IorResult(
            named["access"], named["bw(MiB/s)"], named.get("IOPS", ""), named["total(s)"], named.get("iter", ""), line
        )
        yield from result_row(file, 0, test, result)
