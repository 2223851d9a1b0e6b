"""Parts of a page that is sent to a user: numbers in sentences, the verdict, advice, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from iolens.analyses.calibration.state import DISK_TIME_WITHOUT_LEVEL
from iolens.units import format_bytes_si
from iolens.views.explain import notes, tables, verdict_words
from iolens.views.render.section import Part, ReportSection
from iolens.views.render.tables import sentence, show_percent
from iolens.views.report.page import ReportChapter
from iolens.views.runs import shown_number
from iolens.views.runs_summary.words import gain_words
from iolens.visible_text import core_hours, counted, listed, shown_name

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation
    from iolens.analyses.job_page import DiskCost, MissingPart
    from iolens.analyses.runs.advise import AdviceLine


# Numbers in sentences -------------------------------------------------------------------------------------------------

LEAST_HOURS: Final = 0.01  # that are shown as a number
DISK_TIME: Final = "Disk time: the seconds for which the disks of the file system worked on what was asked for."
ASSOCIATED: Final = {
    "overlap": "The servers did not count by job: the share is by bytes that moved at the same time. That is"
    " association, not proof.",
    "both": "The servers did not count by job all the time: some of the share is by bytes that moved at the same time."
    " That is association, not proof.",
}


def hours(value: float) -> str:
    """`64 core-hours`."""
    if 0 < value < LEAST_HOURS:
        return f"less than {LEAST_HOURS:g} core-hours"
    return core_hours(plain_hours(value))


def plain_hours(value: float) -> str:
    """`1,504`, and three digits of fewer than a hundred."""
    return shown_number(value)


def moved_words(read_bytes: int | None, write_bytes: int | None) -> str | None:
    """`read 748 GB and wrote 808 GB`; None where neither is known."""
    said = [
        f"{verb} {format_bytes_si(count)}"
        for verb, count in (("read", read_bytes), ("wrote", write_bytes))
        if count is not None
    ]
    return listed(said, 2) if said else None


def cost_words(whose: str, filesystem: str, cost: DiskCost, when: str) -> str:
    """What share of the disk time it took; `when`: while it ran, in this window."""
    about = "" if cost.method == "job_stats" else " about"
    seconds = "" if cost.disk_seconds is None else f" ({plain_hours(cost.disk_seconds)} s)"
    busy = "" if cost.fsu_pct is None else f"; {_busy(cost, cost.fsu_pct)}"
    share = f"{show_percent(cost.share_pct)} % of the disk time of {filesystem} {when}"
    words = cost.calibration_words if cost.has_levels else DISK_TIME_WITHOUT_LEVEL
    is_said = words and cost.fsu_pct is not None
    return f"{whose} took{about} {share}{seconds}{busy}." + (f" {sentence(words.removesuffix('.'))}" if is_said else "")


def _busy(cost: DiskCost, fsu_pct: float) -> str:
    """How busy the disks were; their FSU alone where it has no level."""
    if not cost.has_levels:
        why = f" ({cost.calibration_words})" if cost.calibration_words else ""
        return f"FSU of all was {show_percent(fsu_pct)} %, which has no level{why}"
    return f"the disks were {show_percent(fsu_pct)} % busy in all"


def bytes_words(cost: DiskCost) -> str | None:
    """How the share of disk time compares with that of bytes."""
    if cost.bytes_share_pct is None or cost.method != "job_stats":
        return None
    share = show_percent(cost.bytes_share_pct)
    if cost.share_pct > 2 * cost.bytes_share_pct:
        return (
            f"It moved only {share} % of the bytes of all jobs: its bytes were expensive, as small or scattered I/O is."
        )
    return f"It moved {share} % of the bytes of all jobs."


# What the page cannot say, and why ------------------------------------------------------------------------------------


def missing_chapter(missing: Sequence[MissingPart], notes: Sequence[str] = ()) -> list[ReportChapter]:
    """The last chapter; none where nothing is missing."""
    said = [sentence(f"{item.what}: {item.reason}") for item in missing] + [sentence(note) for note in notes]
    return [ReportChapter("What is not known", "part", [ReportSection("", tuple(said))])] if said else []


# Was it me or the system ----------------------------------------------------------------------------------------------
# The verdict of one run as a sentence, and its factors.

SHORT: Final[Mapping[str, str]] = {
    "own": "It was slower than like runs because of what it did itself.",
    "system": "It was slower than like runs because of the system, not because of what it did.",
    "both": "It was slower than like runs, because of what it did itself and because of the system.",
    "unexplained": "It was slower than like runs, and nothing that was measured explains it.",
    "not slow": "It was not slow against like runs.",
}
NO_LOG: Final = "Whether it was slow cannot be said: that needs a Darshan log of it, and of like runs."
READING: Final = (
    "Percentile: its place among like runs, 50 is the middle. ρ: how the speed of like runs goes with the factor, from"
    " −1 (slower) to 1 (faster)."
)


def verdict_in_short(result: RunExplanation) -> str:
    """The verdict without its evidence."""
    return SHORT[result.verdict]


def verdict_sentence(result: RunExplanation) -> str:
    """`It was slow because of the system: …`."""
    if result.verdict == "no log":
        return NO_LOG
    words = verdict_words(result)
    return f"It was {words}" if result.verdict in SHORT else f"Whether it was slow cannot be said: {words}"


def verdict_parts(result: RunExplanation) -> tuple[Part, ...]:
    """The sentence, and the factors where any has a value."""
    own, system = ([line for line in lines if line.value is not None] for lines in (result.own, result.system))
    if not own and not system:
        return (verdict_sentence(result), *notes(result))
    factors = tables(replace(result, own=own, system=system))[0]
    return (
        verdict_sentence(result),
        replace(factors, title="Factors, its own and the system's", note=f"{READING}\n{factors.note}"),
    )


# What to change, the most expensive first, in words for the person who can change it ----------------------------------

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
