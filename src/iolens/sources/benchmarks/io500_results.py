"""What IO500 writes of its phases: the lines of `result_summary.txt`, and the sections of `result.txt`.

A line such as `[RESULT] find 2872.215129 kIOPS : time 24.132 seconds` has [INVALID] at its end where a rule was
broken, and so has the line of the score. Rates of IOR are in GiB/s, all others in thousand operations per second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from iolens.records import Item, Problem
from iolens.sources.benchmarks.results import ResultFile, finite
from iolens.sources.reading.parsed_numbers import LARGEST_SMALL, count_or_none, shown

INVALID: Final = "[INVALID]"
MOST_PHASES: Final = 200
MOST_REASONS: Final = 5
MOST_PROBLEMS: Final = 20
UNSCORED: Final = frozenset({"timestamp", "SCORE", "SCOREX", "run"})
_NAME: Final = r"[a-z][A-Za-z0-9-]{0,60}"
_LINE: Final = re.compile(
    rf"\[(RESULT|      )\]\s++({_NAME})\s++(\S++) (GiB/s|kIOPS)\s*+: time\s++(\S++) seconds\s*+(\[INVALID\])?+\s*+"
)
_SCORE: Final = re.compile(
    r"\[SCORE ?\] Bandwidth \S++ GiB/s\s*+: IOPS \S++ kiops\s*+: TOTAL \S++\s*+(\[INVALID\])?+\s*+"
)
_EXTENDED: Final = re.compile(r"\[SCOREX\]\s")  # of phases that are no part of the list
_SECTION: Final = re.compile(rf"\[({_NAME}|SCOREX?)\]\s*+")
_PAIR: Final = re.compile(r"([A-Za-z][\w-]{0,60})\s*+=\s?+(.*+)")
_REASON: Final = re.compile(r"; ERROR INVALID (?:\([^)]*+\) )?+(.*+)")


@dataclass(frozen=True, slots=True)
class Io500Phase:
    """One phase: GiB/s or thousand operations per second, and the seconds it took with all that it prepares."""

    name: str
    line: int
    rate: float
    seconds: float
    is_scored: bool = True
    is_invalid: bool = False
    end: datetime | None = None  # in the zone of the machine
    tasks: int | None = None
    operations: int | None = None  # of find: files looked at


@dataclass(slots=True)
class Io500Results:
    """All phases of a run by name, and whether IO500 calls the run as a whole invalid."""

    phases: dict[str, Io500Phase] = field(default_factory=dict)
    tasks: int | None = None
    has_score: bool = False
    is_invalid: bool = False
    reasons: list[str] = field(default_factory=list)

    def is_complete(self, name: str) -> bool:
        """Whether IO500 finds nothing wrong with the phase, nor with the run."""
        phase = self.phases.get(name)
        return not self.is_invalid and not (phase is not None and phase.is_invalid)


def read_summary(file: ResultFile, results: Io500Results) -> Iterator[Item]:
    """The phases of `result_summary.txt`; what `result.txt` says of them beside is kept."""
    text, trouble = file.text()
    seen: set[str] = set()
    problems: list[Problem] = []
    for number, content in enumerate(text.split("\n"), 1):
        match = _LINE.fullmatch(content)
        rate, seconds = (finite(match[3]), finite(match[5])) if match else (None, None)
        if match and rate is not None and seconds is not None and match[2] not in seen and len(seen) < MOST_PHASES:
            seen.add(match[2])
            _take_line(results, number, match, rate, seconds)
        elif match and match[2] in seen:
            problems.append(Problem(file.place, number, f"{match[2]} for the second time: the first counts"))
        elif score := _SCORE.fullmatch(content):
            results.has_score = True
            results.is_invalid |= score[1] is not None
        elif content.startswith("[") and not _EXTENDED.match(content):
            problems.append(Problem(file.place, number, f"line not understood: {shown(content)}"))
    yield from problems[:MOST_PROBLEMS]
    if trouble:
        yield Problem(file.place, None, trouble)


def _take_line(results: Io500Results, number: int, match: re.Match[str], rate: float, seconds: float) -> None:
    name = match[2]
    if name in UNSCORED:
        return
    known = results.phases.get(name, Io500Phase(name, number, rate, seconds))
    results.phases[name] = replace(
        known,
        line=number,
        rate=rate,
        seconds=seconds,
        is_scored=match[1] == "RESULT",
        is_invalid=known.is_invalid or match[6] is not None,
    )


def read_results(file: ResultFile, results: Io500Results) -> Iterator[Item]:
    """The sections of `result.txt`: times, tasks, what find counted, and why a run is invalid."""
    text, trouble = file.text()
    sections: dict[str, tuple[int, dict[str, str]]] = {"run": (1, {})}
    name, invalid = "run", set[str]()
    for number, content in enumerate(text.split("\n"), 1):
        if section := _SECTION.fullmatch(content):
            name = section[1]
            if name in sections and name != "run":
                yield Problem(file.place, number, f"[{name}] for the second time: the first counts")
                name = f"{name} again"
            if len(sections) < MOST_PHASES:
                sections.setdefault(name, (number, {}))
        elif reason := _REASON.match(content):
            invalid.add(name)
            if len(results.reasons) < MOST_REASONS:
                results.reasons.append(reason[1].strip() if name == "run" else f"{name}: {reason[1].strip()}")
        elif (pair := _PAIR.fullmatch(content)) and name in sections:
            sections[name][1].setdefault(pair[1], pair[2].strip())
    results.tasks = count_or_none(sections["run"][1].get("procs", ""), LARGEST_SMALL)
    results.is_invalid |= "run" in invalid
    for name, (line, pairs) in sections.items():
        yield from _take_section(file, results, name, line, pairs, name in invalid)
    if trouble:
        yield Problem(file.place, None, trouble)


def _take_section(
    file: ResultFile, results: Io500Results, name: str, line: int, pairs: dict[str, str], is_invalid: bool
) -> Iterator[Item]:
    if name == "SCORE" and "SCORE" in pairs:
        results.has_score = True
        results.is_invalid |= INVALID in pairs["SCORE"]
    if name in UNSCORED or name.endswith(" again") or "score" not in pairs:
        return
    rate, seconds = finite(pairs["score"]), finite(pairs.get("t_delta", "0"))
    if rate is None or seconds is None:
        yield Problem(file.place, line, f"[{name}]: score {shown(pairs['score'])} is not a number: left out")
        return
    results.phases[name] = Io500Phase(
        name,
        line,
        rate,
        seconds,
        is_invalid=is_invalid,
        end=_local_time(pairs.get("t_end", "")),
        tasks=count_or_none(pairs.get("nproc", ""), LARGEST_SMALL),
        operations=count_or_none(pairs.get("total-files", "")),
    )


def _local_time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S")  # the zone is the user's to tell
    except ValueError:
        return None
