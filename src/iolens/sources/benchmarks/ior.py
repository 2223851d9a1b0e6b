"""Results of IOR 3 and 4 as text, CSV or JSON: one row per operation and iteration."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from iolens.records import Capture, Item, Note, Problem
from iolens.sources.benchmarks.ior_text import (
    BANNER,
    FAILURE,
    SAME,
    IorResult,
    IorTest,
    has_fsync,
    is_collective,
    is_direct,
    read_text,
    result_row,
    stripe_bytes,
    stripe_count,
)
from iolens.sources.benchmarks.results import ResultFile, bytes_in_words, captures_of, date_in_words, finite, whole
from iolens.sources.reading.bounded_input import unpacked
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import count_in_json, shown
from iolens.sources.reading.saved_text import cells_of
from iolens.units import KIB

# IOR's `summaryFormat=JSON`, also as standard output with warnings between its lines ----------------------------------
# And cut off by a kill.

_JSON_STARTS: Final = frozenset('{}[],"-0123456789')
_MOST_MESSAGES: Final = 3
_TRIED: Final = 4  # ends of objects before the place at which a document breaks off
_DEEPEST: Final = 100  # brackets within brackets: a document of IOR has four


def read_json(file: ResultFile, text: str) -> Iterator[Item]:
    """Every result of the document; what stood between its lines is said."""
    lines = text.split("\n")
    messages = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and not _is_json(line)]
    cleaned = "\n".join(line for line in lines if not line.strip() or _is_json(line))
    document, whole = _decoded(cleaned)
    for number, line in messages[:_MOST_MESSAGES]:
        kind = Problem if line.startswith("ERROR") else Note
        yield kind(file.place, number, f"message between the results: {shown(line)}")
    if document is None:
        yield Problem(file.place, None, "not a JSON document, nor the beginning of one")
        return
    samples = list(_rows(file, document))
    yield from samples
    if not whole or "Finished" not in document:
        yield Problem(file.place, None, f"the run was cut off: {len(samples)} results, no summary")
    yield from _check_summary(file, document)


def _is_json(line: str) -> bool:
    return line.lstrip()[:1] in _JSON_STARTS


def _decoded(text: str) -> tuple[dict[str, Any] | None, bool]:
    """The document, and whether it was whole; of one that is cut, what can be closed again."""
    try:
        document = json.loads(text)
        return (document, True) if isinstance(document, dict) else (None, False)
    except json.JSONDecodeError as error:
        end = error.pos
    except (ValueError, RecursionError):  # a number of thousands of digits, brackets within brackets
        return None, False
    for closed in _closed_before(text, end):
        try:
            document = json.loads(closed)
        except (ValueError, RecursionError):
            continue
        return (document, False) if isinstance(document, dict) else (None, False)
    return None, False


def _closed_before(text: str, end: int) -> Iterator[str]:
    """The text up to the last objects that are complete before `end`, with the brackets that close it there."""
    open_: list[str] = []
    ends: deque[tuple[int, str]] = deque(maxlen=_TRIED)
    in_string = escaped = False
    for place, character in enumerate(islice(text, end)):
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character in "{[":
            open_.append("}" if character == "{" else "]")
            if len(open_) > _DEEPEST:
                return
        elif character in "}]":
            if not open_ or open_.pop() != character:
                break
            ends.append((place + 1, "".join(reversed(open_))))
    for place, closers in reversed(ends):
        yield text[:place] + closers


def _rows(file: ResultFile, document: dict[str, Any]) -> Iterator[Item]:
    for test in _dictionaries(document.get("tests")):
        known = _test(file, document, test)
        seen: Counter[str] = Counter()
        for result in _dictionaries(test.get("Results")):
            access = str(result.get("access"))
            rate, operations, seconds = (str(result.get(name, "")) for name in ("bwMiB", "iops", "totalTime"))
            printed = IorResult(access, rate, operations, seconds, str(seen[access]), None)
            yield from result_row(file, 0, known, printed)
            seen[access] += 1


def _test(file: ResultFile, document: dict[str, Any], test: dict[str, Any]) -> IorTest:
    asked, said = _dictionary(test.get("Parameters")), _dictionary(test.get("Options"))
    command = _text(document.get("Command line"))
    api = _text(said.get("api")) or _text(asked.get("api"))
    syncs = [_count(asked.get(name)) for name in ("fsync", "fsyncperwrite")]
    collective = _count(asked.get("collective"))
    ordering, access, used = said.get("ordering in a file"), said.get("access"), str(test.get("Used Capacity", ""))
    return IorTest(
        number=_count(test.get("TestID")) or 0,
        time_us=file.time_us(date_in_words(str(test.get("StartTime", document.get("Began", ""))))),
        api=api,
        tasks=_count(said.get("tasks")),
        nodes=_count(said.get("nodes")),
        segments=_count(asked.get("segmentCount")) or _count(said.get("segments")),
        repetitions=_count(said.get("repetitions")),
        block_bytes=_count(asked.get("blockSize")),
        transfer_bytes=_count(asked.get("transferSize")),
        access=None if ordering is None else "random" if str(ordering).startswith("random") else "sequential",
        file_per_process=None if access is None else access == "file-per-process",
        direct=is_direct(command),
        fullness_pct=finite(used.rstrip("%")) if used.endswith("%") else None,
        collective=is_collective(api, None if collective is None else bool(collective)),
        fsync=has_fsync(command) if None in syncs else any(syncs),
        stripe_count=bytes_in_words(str(said.get("stripe count", ""))) or stripe_count(command),
        stripe_bytes=bytes_in_words(str(said.get("Lustre stripe size", ""))) or stripe_bytes(command),
    )


def _check_summary(file: ResultFile, document: dict[str, Any]) -> Iterator[Item]:
    """The summary's mean bandwidth must be that of the results."""
    rates: dict[tuple[str, str], list[float]] = {}
    for test in _dictionaries(document.get("tests")):
        for result in _dictionaries(test.get("Results")):
            if (rate := finite(result.get("bwMiB"))) is not None:
                rates.setdefault((str(test.get("TestID")), str(result.get("access"))), []).append(rate)
    for summary in _dictionaries(document.get("summary")):
        said = finite(summary.get("bwMeanMIB"))
        values = rates.get((str(summary.get("TestID")), str(summary.get("operation"))), [])
        mean = sum(values) / len(values) if values else 0.0
        if said is not None and abs(mean - said) > SAME * said:
            name = shown(str(summary.get("operation")))
            yield Problem(file.place, None, f"the summary says {said:g} MiB/s for {name}, its results {mean:.5g}")


def _dictionaries(value: Any) -> list[dict[str, Any]]:
    return [by_name for by_name in value if isinstance(by_name, dict)] if isinstance(value, list) else []


def _dictionary(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    return count_in_json(value)


# Results of IOR 3 and 4 as text, CSV or JSON --------------------------------------------------------------------------
# One row per operation and iteration.
#
# Scripts with several tests, several runs in one file, warnings between the lines of JSON, and runs that failed or were
# killed: what was completed is kept, what is missing is said. Per-operation and per-rank details are named and left
# out.

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
