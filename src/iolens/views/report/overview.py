"""The first page of a file system: what it is, how busy, how full, what is wrong, what changed, what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

from iolens.views.render.doubts import level_unknown
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
)
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
