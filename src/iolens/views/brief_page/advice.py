"""What to change, the most expensive first, in words for the person who can change it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolens.views.brief_page.numbers import hours
from iolens.views.render.section import Part, ReportSection
from iolens.views.render.tables import sentence
from iolens.views.runs_summary.words import gain_words
from iolens.visible_text import counted, shown_name

if TYPE_CHECKING:
    from iolens.analyses.runs.advise import AdviceLine

MOST_SHOWN: Final = 3  # in full
MOST_NAMED: Final = 5  # beyond those
NOTHING: Final = "Nothing was found that needs a change."
NOTHING_COUNTED: Final = (
    "Nothing was found that needs a change; without a Darshan log only what the nodes counted could be judged."
)
EXPLAINED: Final = "`iolens findings explain NAME` says what to do."
NOT_JUDGED: Final = "What could be better is not known: there is neither a Darshan log nor a count of the nodes."


def advice_sections(lines: Sequence[AdviceLine], is_judged: bool, runs: int) -> list[ReportSection]:
    """One for each finding, and a word on those beyond the first; `runs`: how many logs could be judged."""
    if not lines:
        return [ReportSection("", (_nothing(is_judged, runs),))]
    sections = [
        ReportSection(f"{number}. {sentence(line.message)}", tuple(_parts(line)))
        for number, line in enumerate(lines[:MOST_SHOWN], 1)
    ]
    rest = lines[MOST_SHOWN:]
    if rest:
        shown = [f"{line.message} ({line.code})" for line in rest[:MOST_NAMED]]
        more = f"; and {len(rest) - MOST_NAMED:,} more" if len(rest) > MOST_NAMED else ""
        sections.append(ReportSection("Less important", (f"{sentence('; '.join(shown) + more)} {EXPLAINED}",)))
    return sections


def _nothing(is_judged: bool, runs: int) -> str:
    return NOT_JUDGED if not is_judged else NOTHING if runs else NOTHING_COUNTED


def first_advice(lines: Sequence[AdviceLine], is_judged: bool, runs: int) -> str:
    """What to change first, in a sentence."""
    if not lines:
        return _nothing(is_judged, runs)
    first = lines[0]
    gain = gain_words(first.estimated_gain, first.gain_from)
    if first.subject:
        return f"Not of the program's making: {first.message} (what to do: see below)."
    return f"What to change first: {first.message}{f'; {gain}' if gain else ''} (how: see below)."


def _parts(line: AdviceLine) -> Iterator[Part]:
    yield f"What to do: {line.remedy}"
    said = [*_seen(line), *_gain(line)]
    if said:
        yield " ".join(sentence(words) for words in said)


def _seen(line: AdviceLine) -> Iterator[str]:
    if line.runs > 1:
        program = f" of {shown_name(line.executable)}" if line.executable else ""
        yield f"seen in {counted(line.runs, 'run')}{program}"
    elif not line.runs:
        yield "seen in the counters of the nodes"
    if line.core_hours:
        shared = f", in part the same time as of {', '.join(line.shares_time_with)}" if line.shares_time_with else ""
        yield f"{hours(line.core_hours)} went into this part of the I/O{shared}"


def _gain(line: AdviceLine) -> Iterator[str]:
    if gain := gain_words(line.estimated_gain, line.gain_from):
        lost = f": about {hours(line.core_hours_lost)} could be saved" if line.core_hours_lost else ""
        yield f"estimated gain {gain}{lost}"
