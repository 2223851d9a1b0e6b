"""IOR's `summaryFormat=JSON`, also as standard output with warnings between its lines, and cut off by a kill."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from iolens.records import Item, Note, Problem
from iolens.sources.benchmarks.ior_command import has_fsync, is_direct, stripe_bytes, stripe_count
from iolens.sources.benchmarks.ior_results import SAME, IorResult, IorTest, is_collective, result_row
from iolens.sources.benchmarks.results import ResultFile, bytes_in_words, date_in_words, finite
from iolens.sources.reading.parsed_numbers import count_in_json, shown

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
