"""The first page of a file system: what it is, how busy, how full, what is wrong, what changed, what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from iolens.analyses.results import OverIntervals
from iolens.views.render import tables as t
from iolens.views.render.doubts import level_unknown, notes, on_figure, on_section, unsaid, warned, warnings
from iolens.views.render.figures import Figure
from iolens.views.render.section import (
    QUESTIONS,
    SEVERITIES,
    Answer,
    Fact,
    Facts,
    Notice,
    OverviewLine,
    OverviewLines,
    Part,
    Question,
    ReportSection,
)
from iolens.views.render.shown_times import shown_in, time_with_zone
from iolens.views.render.tables import TableView
from iolens.views.render.view_names import view_name, view_of
from iolens.views.report.page import ReportChapter, ReportInfo, page_html
from iolens.visible_text import listed

LABELS: Final[Mapping[Question, str]] = {"load": "How busy", "who": "Who", "capacity": "How full"}
MOST_NOTICES: Final = 6
MOST_FACTS: Final = 6
FINE: Final = "Nothing that needs a change was noticed."
RECORD_JOBS: Final = "Record job_stats, as `iolens collect` does, to see whose I/O it is."


def overview(filesystem: str, results: Sequence[tuple[Any, Any]], anchors: Mapping[Question, str]) -> Iterator[Part]:
    """Of views and their results; every line leads to the chapter of its question."""
    facts: list[Fact] = [fact for module, result in results for fact in _asked(module, "facts", result)]
    if facts:
        yield Facts(tuple(facts[:MOST_FACTS]))
    identity: list[str] = [words for module, result in results for words in _asked(module, "identity", result)]
    answers: list[Answer] = [answer for module, result in results for answer in _asked(module, "answers", result)]
    notices: list[Notice] = [notice for module, result in results for notice in _asked(module, "notices", result)]
    changes: list[OverviewLine] = [line for module, result in results for line in _asked(module, "changes", result)]
    notices.sort(key=lambda notice: SEVERITIES.index(notice.severity))
    lines = [
        ("What it is", (OverviewLine(_sentence(identity), anchors.get("data", "")),) if identity else ()),
        *((label, tuple(_of_question(answers, question, anchors))) for question, label in _labels(results)),
        ("What is wrong", tuple(_wrong(notices, answers, anchors, question_titles(result for _, result in results)))),
        ("What changed", tuple(changes)),
        ("What to do next", tuple(_next(filesystem, notices, {answer.question for answer in answers}))),
    ]
    yield OverviewLines(tuple((label, shown) for label, shown in lines if shown))


def _labels(results: Sequence[tuple[Any, Any]]) -> list[tuple[Question, str]]:
    """How busy it was is not known where FSU has no level."""
    labels = dict(LABELS)
    if any(level_unknown(result) for _, result in results):
        labels["load"] = "Utilization"
    return [*labels.items()]


def question_titles(results: Iterable[Any]) -> dict[Question, str]:
    """What the results of a file system are asked: not who made it busy where FSU has no level."""
    titles = dict(QUESTIONS)
    if any(map(level_unknown, results)):
        titles["who"] = "Whose I/O it was"
    return titles


def _asked(module: Any, what: str, result: Any) -> list[Any]:
    function = getattr(module, f"report_{what}", None)
    return [] if function is None else list(function(result))


def _sentence(words: Sequence[str]) -> str:
    return f"{listed(words, len(words))}."


def _of_question(
    answers: Sequence[Answer], question: Question, anchors: Mapping[Question, str]
) -> Iterator[OverviewLine]:
    """The first words of every answer: its conclusion."""
    for answer in answers:
        if answer.question == question and answer.words and not answer.is_detail:
            yield OverviewLine(answer.words[0], anchors.get(question, ""))


def _wrong(
    notices: Sequence[Notice],
    answers: Sequence[Answer],
    anchors: Mapping[Question, str],
    titles: Mapping[Question, str],
) -> Iterator[OverviewLine]:
    """Notices, the worst first; then which questions could not be looked at."""
    for notice in notices[:MOST_NOTICES]:
        yield OverviewLine(notice.words, anchors.get(notice.question, ""), severity=notice.severity)
    if len(notices) > MOST_NOTICES:
        yield OverviewLine(f"{len(notices) - MOST_NOTICES} more in the chapters below.")
    known = {answer.question for answer in answers}
    unknown = [
        f"{title[:1].lower()}{title[1:]}" for question, title in titles.items() if question not in (*known, "other")
    ]
    if not notices and known:
        yield OverviewLine(FINE)
    if unknown and known:
        yield OverviewLine(f"Not looked at (not recorded, or not asked for): {listed(unknown, len(unknown))}.")


def _next(filesystem: str, notices: Sequence[Notice], known: Set[Question]) -> Iterator[OverviewLine]:
    """Steps of the notices, each once; where nobody recorded who did it, that comes first."""
    steps: dict[tuple[str, str], None] = {}
    for notice in notices:
        if notice.command[:1] == ("blame",) and "who" not in known:
            steps[RECORD_JOBS, ""] = None
        elif notice.step:
            steps[notice.step, _command(notice, filesystem)] = None
    for words, command in list(steps)[:MOST_NOTICES]:
        yield OverviewLine(words, command=command)


def _command(notice: Notice, filesystem: str) -> str:
    return shlex.join(["iolens", *notice.command, "-f", filesystem]) if notice.command else ""


# The report of a centre -----------------------------------------------------------------------------------------------
# One page for each file system first, then a chapter for each question, then an appendix.
#
# Every analysis brings its own answers and sections, found by its name (`views.render.section`).

NO_RESULTS: Final = "This store holds no data to report on. Load some with `iolens ingest`."
USUAL_ORDER: Final = 100
NAMES_SHOWN: Final = 6

Details = Mapping[int, Sequence[ReportSection]]  # by the id of the result


def report_html(results: Sequence[Any], about: ReportInfo, *, full: bool = False) -> str:
    """The whole page, from results of any analyses and file systems; `full`: every figure, nothing closed."""
    names = filesystems_of(results)
    title = f"Storage report: {listed(names, NAMES_SHOWN)}" if names else "Storage report"
    with shown_in(about.timezone):
        return page_html(title, about, _title_block(results, names, about), _chapters(results, about, full))


def filesystems_of(results: Sequence[Any]) -> list[str]:
    """Those the results are about."""
    return list(dict.fromkeys(result.filesystem for result in results if result.filesystem is not None))


def _title_block(results: Sequence[Any], names: list[str], about: ReportInfo) -> list[tuple[str, str]]:
    """The window is that of the intervals: a reading or scan of another time is named beside it."""
    of_intervals = [result for result in results if isinstance(result, OverIntervals)]
    readings = [result for result in results if not isinstance(result, OverIntervals)]
    first, last = _extent(of_intervals)
    start, end = about.window[0] or first, about.window[1] or last
    if start is None or end is None:
        start, end = _extent(results)
    return [
        ("File systems" if len(names) != 1 else "File system", ", ".join(names) or "none"),
        ("Window", _window(start, end)),
        *_outside(readings, start, end),
        ("Generated", f"{time_with_zone(about.generated)} by iolens {about.version}"),
    ]


def _extent(results: Sequence[Any]) -> tuple[datetime | None, datetime | None]:
    """From the first start to the last end."""
    starts, ends = (
        [end for result in results if (end := getattr(result, name, None)) is not None]
        for name in ("window_start", "window_end")
    )
    return min(starts, default=None), max(ends, default=None)


def _outside(readings: Sequence[Any], start: datetime | None, end: datetime | None) -> list[tuple[str, str]]:
    """Readings and scans that reach beyond the window, by analysis."""
    windows: dict[str, list[str]] = {}
    for name in dict.fromkeys(map(view_name, readings)):
        first, last = _extent([result for result in readings if view_name(result) == name])
        if first and last and start and end and (first < start or last > end):
            windows.setdefault(_window(first, last), []).append(name)
    words = {window: " and ".join(names).replace("_", " ") for window, names in windows.items()}
    return [(f"Readings for {names}", window) for window, names in words.items()]


def _window(start: datetime | None, end: datetime | None) -> str:
    if start is None or end is None:
        return "no data"
    return f"{t.show_time(start)} to {time_with_zone(end)}"


# Which chapters there are.


def _chapters(results: Sequence[Any], about: ReportInfo, full: bool) -> Iterator[ReportChapter]:
    ordered = sorted(results, key=lambda result: getattr(_module(result), "REPORT_ORDER", USUAL_ORDER))
    names = filesystems_of(results)
    details = {id(result): _sections(result) for result in ordered if result.filesystem is not None}
    chapters = {name: list(_questions(ordered, details, name, full)) for name in names}
    yield ReportChapter("Overview", "summary", list(_overviews(ordered, names, chapters)), about.refused)
    if len(names) > 1:
        compared = [section for module, same in _by_analysis(ordered) for section in _call(module, "comparison", same)]
        if compared:
            yield ReportChapter("Side by side", "comparison", compared)
    for name in names:
        yield from chapters[name]
    for result in _of_the_centre(ordered):
        yield _centre_chapter(result, full)
    appendix = [*_of_appendix(ordered, details, full)]
    appendix += [section for module, same in _by_analysis(ordered) for section in _call(module, "methods", same)]
    if appendix:
        yield ReportChapter("Appendix: how it was measured", "methods", appendix, is_closed=not full)


def _of_appendix(ordered: Sequence[Any], details: Details, full: bool) -> Iterator[ReportSection]:
    """Fits and coverage of every file system."""
    is_single = len(filesystems_of(ordered)) == 1
    for result in ordered:
        for section in details.get(id(result), ()):
            kept = section if full else _without_figures(section)
            if section.question == "appendix" and kept.parts:
                yield kept if is_single else replace(kept, title=f"{result.filesystem}: {kept.title}")


def _overviews(
    ordered: Sequence[Any], names: Sequence[str], chapters: dict[str, list[ReportChapter]]
) -> Iterator[ReportSection]:
    if not ordered:
        yield ReportSection("Nothing to report", (NO_RESULTS,))
    for name in names:
        mine = [(_module(result), result) for result in ordered if result.filesystem == name]
        lines = _warned([result for _, result in mine])
        anchors = {chapter.question: chapter.anchor for chapter in chapters[name] if chapter.question is not None}
        shown = list(overview(name, mine, anchors))
        yield ReportSection(name, (*unsaid(lines, shown), *shown))
    for result in _of_the_centre(ordered):
        words = [line for answer in _answers(result) for line in answer.words]
        yield ReportSection(_module(result).REPORT_CHAPTER, (*unsaid(_warned([result]), words), *words))


def _questions(ordered: Sequence[Any], details: Details, name: str, full: bool) -> Iterator[ReportChapter]:
    """The chapters of one file system."""
    names = filesystems_of(ordered)
    mine = [result for result in ordered if result.filesystem == name]
    answers = [(result, answer) for result in mine for answer in _answers(result)]
    sections = [section for result in mine for section in details[id(result)]]
    for question, title in question_titles(mine).items():
        opening = _opening([pair for pair in answers if pair[1].question == question])
        about = [section for section in sections if section.question == question]
        kept = about if full else [section for section in map(_without_figures, about) if section.parts]
        if not opening and not kept:
            continue
        left_out = sum(map(_figures_of, about)) - sum(map(_figures_of, kept))
        yield ReportChapter(
            title if len(names) == 1 else f"{name}: {title[0].lower()}{title[1:]}",
            "question",
            kept,
            tuple(unsaid(_warned(_shown(mine, question, details)), opening)),
            opening=opening,
            anchor=f"{question}-{names.index(name) + 1}",
            is_closed=not full,
            figures_left_out=left_out,
            question=question,
        )


def _warned(results: Sequence[Any]) -> list[str]:
    """The warnings of all of them, and of the tables in their sections, each once."""
    lines = [line for result in results for line in (*warnings(result), *warnings(result, _tables(result)))]
    return list(dict.fromkeys(map(warned, lines)))


def _tables(result: Any) -> list[TableView]:
    return [part for section in _plain_sections(result) for part in section.parts if isinstance(part, TableView)]


def _shown(results: Sequence[Any], question: str, details: Details) -> list[Any]:
    """Those that say something to a question."""
    return [
        result
        for result in results
        if question in {answer.question for answer in _answers(result)}
        or question in {section.question for section in details[id(result)]}
    ]


def _opening(answers: Sequence[tuple[Any, Answer]]) -> tuple[Part, ...]:
    """Conclusions, and the first figure that shows one of them."""
    words = [line for _, answer in answers for line in answer.words if line]
    figures = [
        on_figure(result, answer.figure) for result, answer in answers if answer.figure and answer.figure.has_content
    ]
    return (*words[:1], *figures[:1], *words[1:])


def _without_figures(section: ReportSection) -> ReportSection:
    return replace(section, parts=tuple(part for part in section.parts if not isinstance(part, Figure)))


def _figures_of(section: ReportSection) -> int:
    return sum(isinstance(part, Figure) for part in section.parts)


def _centre_chapter(result: Any, full: bool) -> ReportChapter:
    """Of a result that belongs to no file system."""
    module, sections = _module(result), _sections(result)
    opening = _opening([(result, answer) for answer in _answers(result)])
    kept = sections if full else [section for section in map(_without_figures, sections) if section.parts]
    left_out = 0 if full else sum(map(_figures_of, sections))
    return ReportChapter(
        module.REPORT_CHAPTER, "centre", kept, tuple(unsaid(_warned([result]), opening)), opening,
        is_closed=not full, figures_left_out=left_out,
    )  # fmt: skip


def _of_the_centre(results: Sequence[Any]) -> list[Any]:
    """Results that belong to no file system; their view has a `REPORT_CHAPTER`."""
    return [result for result in results if result.filesystem is None]


def _by_analysis(ordered: Sequence[Any]) -> list[tuple[Any, list[Any]]]:
    results: dict[type, list[Any]] = {}
    for result in ordered:
        results.setdefault(type(result), []).append(result)
    return [(_module(same[0]), same) for same in results.values()]


def _module(result: object) -> Any:
    return view_of(result, "report", "tables")


def _call(module: Any, what: str, argument: object) -> list[Any]:
    function = getattr(module, f"report_{what}", None)
    return [] if function is None else list(function(argument))


def _answers(result: Any) -> list[Answer]:
    return _call(_module(result), "answers", result)


def _sections(result: Any) -> list[ReportSection]:
    """With contents; a figure without any is left out."""
    sections = [
        replace(section, parts=tuple(filter(_has_content, section.parts))) for section in _plain_sections(result)
    ]
    kept = [on_section(result, section) for section in sections if section.parts]
    said = [part for section in kept for part in section.parts]
    said += [line for answer in _answers(result) for line in answer.words]
    more = [t.sentence(note.rstrip(".")) for note in unsaid(notes(result), said)]
    return [*kept[:-1], replace(kept[-1], parts=(*kept[-1].parts, *more))] if kept else []


def _has_content(part: Part) -> bool:
    return part.has_content if isinstance(part, Figure) else True


def _plain_sections(result: Any) -> list[ReportSection]:
    module = _module(result)
    if hasattr(module, "report_sections"):
        return _call(module, "sections", result)
    title = view_name(result).replace("_", " ").capitalize()
    drawn = [describe() for describe in view_of(result, "figures", "tables").figures(result).values()]
    return [ReportSection(title, (*drawn, *module.tables(result)))]
