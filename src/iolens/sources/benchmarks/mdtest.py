"""Results of mdtest (text): rates of each phase over the iterations.

A row is a summary over the iterations; its time and operations are those of one iteration on average. Up to three
iterations follow exactly from the largest, smallest and mean rate. The table "SUMMARY time" is headed ms/op but holds
seconds per phase (400 items at 788.41 per second are its 0.507), to three digits: it is used where rates do not do.
A run that was stopped by time (-W, or -x: as many as a run before) did fewer items than it was asked for.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

from iolens.records import Capture, Item, Problem
from iolens.sources.benchmarks.results import ResultFile, captures_of, date_in_words, finite, whole
from iolens.sources.reading.bounded_input import unpacked
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import LARGEST_SMALL, count_or_none, real_or_none, shown

TOOL: Final = "mdtest"
BANNER: Final = re.compile(r"^mdtest-(\S++) was launched with (\d++) total task\(s\) on (\d++) node\(s\)", re.MULTILINE)
_STARTED: Final = re.compile(r"-- started at (.+?) --")
_FINISHED: Final = re.compile(r"-- finished at (.+?) --")
_ITEMS: Final = re.compile(r"(\d++) tasks?, (\d++) files(?:/directories)?")
_SUMMARY: Final = re.compile(r"SUMMARY(?: (rate|time))?.*?: \(of (\d++) iterations?\)")
_PHASE_NAME: Final = re.compile(r"[A-Z][a-z]++(?: [a-z]++)++")
_PHASE_NUMBERS: Final = 4
_STOPPED_BY_TIME: Final = ("-W", "-x")
_STONEWALL: Final = re.compile(r"Continue stonewall hit min: \d++ max: (\d++) ")
_LAST_DIGIT: Final = 0.0005  # half of the third decimal, of rates and of seconds
_LONGEST_COMMAND: Final = 1 << 14
_COMMAND: Final = re.compile(r"Command line used: (.*)")
_USED: Final = re.compile(r"Used FS:\s*+([\d.]++)%")
_WITH_DATA: Final = {"file_creation": "-w", "file_read": "-e"}
_SAME: Final = 0.06  # three printed digits of a short time
_LONGEST_MESSAGE: Final = 160
_BANNER_BYTES: Final = re.compile(BANNER.pattern.encode(), re.MULTILINE)


class Mdtest:
    """Results of the mdtest benchmark."""

    name = "mdtest"
    summary = "results of mdtest: rates of metadata operations, text"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether some line says how mdtest was launched."""
        return bool(_BANNER_BYTES.search(unpacked(head)))

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per file."""
        return captures_of(paths, options, read_mdtest)


SOURCE: Final = Mdtest()


@dataclass(slots=True)
class _MdtestRun:
    """One invocation of mdtest as it is read."""

    number: int
    line: int
    tasks: int | None
    nodes: int | None
    items: int | None = None
    iterations: int | None = None
    started: datetime | None = None
    finished: datetime | None = None
    command: Mapping[str, str] = field(default_factory=dict)
    fullness_pct: float | None = None
    most_items: int | None = None  # of one task when time was up; all others then did as many
    table: str = ""  # which summary is being read
    rates: dict[str, tuple[float, ...]] = field(default_factory=dict)  # max, min, mean, standard deviation
    times: dict[str, tuple[float, ...]] = field(default_factory=dict)
    errors: list[tuple[int, str]] = field(default_factory=list)


def read_mdtest(file: ResultFile) -> Iterator[Item]:
    """Rows of one file, and what was not understood."""
    text, trouble = file.text()
    yield from read_mdtest_text(file, text)
    if trouble:
        yield Problem(file.place, None, trouble)


def read_mdtest_text(file: ResultFile, text: str) -> Iterator[Item]:
    """The same of a text."""
    run: _MdtestRun | None = None
    number = 0
    started: datetime | None = None
    for line, content in enumerate(text.split("\n"), 1):
        if banner := BANNER.match(content):
            if run is not None:
                yield from _finish(file, run)
            tasks, nodes = (count_or_none(banner[place], LARGEST_SMALL) for place in (2, 3))
            run = _MdtestRun(number, line, tasks, nodes, started=started)
            number += 1
        elif match := _STARTED.match(content):
            started = date_in_words(match[1])
        elif run is not None:
            yield from _take(file, run, line, content)
    if run is not None:
        yield from _finish(file, run)
    else:
        first = text.partition("\n")[0]
        yield Problem(file.place, None, f"not a result of mdtest: it begins with {shown(first)}")


def _take(file: ResultFile, run: _MdtestRun, line: int, content: str) -> Iterator[Item]:
    if match := _SUMMARY.match(content):
        run.table, run.iterations = match[1] or "rate", count_or_none(match[2], LARGEST_SMALL)
    elif run.table and (phase := _phase(content)):
        numbers = tuple(finite(text) for text in content.split()[-_PHASE_NUMBERS:])
        if None in numbers:
            yield Problem(file.place, line, f"line not understood: {shown(content)}")
            return
        table = run.rates if run.table == "rate" else run.times
        table[phase] = tuple(number or 0.0 for number in numbers)
    elif match := _ITEMS.match(content):
        run.items = count_or_none(match[2])
    elif match := _STONEWALL.match(content):
        run.most_items = count_or_none(match[1])
    elif match := _COMMAND.match(content):
        run.command = _options(match[1])
    elif match := _FINISHED.match(content):
        run.finished, run.table = date_in_words(match[1]), ""
    elif match := _USED.search(content):
        run.fullness_pct = real_or_none(match[1], largest=100.0)
    elif content.startswith("ERROR"):
        run.errors.append((line, content.removeprefix("ERROR: ")[:_LONGEST_MESSAGE]))


def _phase(content: str) -> str | None:
    """`directory_creation` of a line such as `   Directory creation    2000.0  1000.0  1600.0  500.0`, if it is one."""
    words = content.split()[:-_PHASE_NUMBERS]
    name = " ".join(words).removesuffix(":").rstrip()
    if not content[:1].isspace() or _PHASE_NAME.fullmatch(name) is None:
        return None
    return name.lower().replace(" ", "_")


def _options(text: str) -> dict[str, str]:
    """Options with a value on the command line."""
    try:
        words = shlex.split(text[:_LONGEST_COMMAND])  # which takes the square of the length
    except ValueError:
        return {}
    return {word: value for word, value in pairwise(words) if word.startswith("-")}


def _finish(file: ResultFile, run: _MdtestRun) -> Iterator[Item]:
    for phase, (largest, smallest, mean, deviation) in run.rates.items():
        if mean <= 0:  # mdtest prints zero for a phase that did not run
            continue
        items = _items_done(run, phase)
        seconds = _phase_seconds(run, phase, items)
        size = _data_bytes(run, phase)
        yield from file.rows(
            TOOL,
            run.line,
            run_id=file.run_id(run.number),
            time=file.time_us(run.finished or run.started),
            direction=phase,
            api=run.command.get("-a", "POSIX"),
            transfer_bytes=size,
            tasks=run.tasks,
            queue_depth=run.tasks,  # each task waits for its operation before the next
            duration_s=seconds,
            operations=items,
            bytes=size * items if size and items else None,
            repetitions=run.iterations,
            nodes=run.nodes,
            fullness_pct=run.fullness_pct,
            reported_ops_per_s=mean,
            ops_per_s_max=largest,
            ops_per_s_min=smallest,
            ops_per_s_stddev=deviation,
            complete=True,
        )
    for line, message in run.errors[:1]:
        more = f" (and {len(run.errors) - 1} more)" if len(run.errors) > 1 else ""
        yield Problem(file.place, line, f"mdtest failed: {message}{more}")
    if not run.errors and (not run.rates or run.finished is None):
        yield Problem(file.place, run.line, f"the run was cut off: {len(run.rates)} phases in its summary")


def _items_done(run: _MdtestRun, phase: str) -> int | None:
    """Items of one iteration; None for a tree, whose directories are not printed, and where time stopped several."""
    if phase.startswith("tree"):
        return None
    if not any(option in run.command for option in _STOPPED_BY_TIME):
        return run.items
    rate, seconds = run.rates[phase][2], run.times.get(phase, (0.0,) * _PHASE_NUMBERS)[2]
    if run.iterations != 1 or not seconds:
        return None
    done, rounding = rate * seconds, (rate + seconds) * _LAST_DIGIT + 1
    counted = run.most_items * run.tasks if run.most_items and run.tasks else None
    exact = (known for known in (counted, run.items) if known is not None and abs(known - done) <= rounding)
    return next(exact, whole(done))


def _phase_seconds(run: _MdtestRun, phase: str, items: int | None) -> float | None:
    """Mean time of one iteration of a phase, seconds.

    That is not its items at the mean rate: 400 at 33,311 and at 12,507 per second took 22 ms on average, not the 17.5
    that the mean rate would give.
    """
    longest, mean = (run.times[phase][0], run.times[phase][2]) if phase in run.times else (0.0, 0.0)
    largest, slowest, mean_rate, _ = run.rates[phase]
    if items is None and not phase.startswith("tree"):
        return mean or None
    if items is None:  # one tree: the reading as seconds holds
        return mean if mean and abs(longest * slowest - 1) <= _SAME else None
    if (rates := _each_rate(run.iterations, largest, slowest, mean_rate)) is not None:
        return sum(items / rate for rate in rates) / len(rates)
    return mean or items / mean_rate


def _each_rate(iterations: int | None, largest: float, smallest: float, mean: float) -> list[float] | None:
    """The rate of every iteration, where their number and three figures tell it; None for more than three."""
    if iterations == 1:
        return [mean]
    between = [iterations * mean - largest - smallest] if iterations == 3 else []
    if iterations not in (2, 3) or not all(0 < smallest <= value <= largest for value in (mean, *between)):
        return None
    return [largest, smallest, *between]


def _data_bytes(run: _MdtestRun, phase: str) -> int | None:
    size = run.command.get(_WITH_DATA.get(phase, ""), "")
    return count_or_none(size) or None
