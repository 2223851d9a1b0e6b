"""What is said against an answer is seen wherever the answer is: a contract of every view and every renderer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest

from iolens.analyses.calibration.state import RestsOnCalibration
from iolens.analyses.results import OverIntervals
from iolens.models.transaction_time import CalibrationState, FsuCategory
from iolens.plans.plausibility import PlanWarning
from iolens.views.dashboard import shell
from iolens.views.dashboard.shell import BlockAnswer, block_html, in_page_words
from iolens.views.render.doubts import _core, _texts, notes, unsaid, warned, warnings
from iolens.views.render.escaped_text import with_commands
from iolens.views.render.formats import figures_of, tables_of
from iolens.views.render.json_text import to_json
from iolens.views.render.tables import TableView, to_csv, to_terminal
from iolens.views.render.view_names import view_name, view_of
from iolens.views.report.centre import _chapters
from iolens.views.report.page import ReportInfo
from iolens.web.pages import PAGES
from iolens.web.questions import QUESTIONS
from tests.flash_centre import NULL_WITHOUT_LEVELS, levels_in

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
WARNING = "made up to be believed less"
NOTE = "made up in a test"
_CODE = re.compile(r"</?code>")
BLOCKS = {
    (QUESTIONS[block.question].name.replace("/", "_"), block.shows)
    for page in PAGES
    for block in (*page.blocks, *page.each, *page.glance)
}


def doubted(answer: Any) -> Any:
    """The answer with a warning, a note and a rollup, as far as it may have them."""
    names = {field.name for field in fields(answer)}
    changes: dict[str, Any] = {}
    if "warnings" in names:
        is_plan = view_name(answer).startswith("plan_")
        changes["warnings"] = [PlanWarning("capacity", "made_up", WARNING, {}) if is_plan else WARNING]
    if "notes" in names:
        changes["notes"] = [*answer.notes, NOTE]
    if hasattr(getattr(answer, "coverage", None), "notes"):
        changes["coverage"] = replace(answer.coverage, notes=[*answer.coverage.notes, NOTE])
    if isinstance(answer, OverIntervals):
        changes["resolution"] = "1h"
    return replace(answer, **changes)


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from strings(member)


def lacking(lines: list[str], text: str) -> list[str]:
    """Those that a text does not have, however it is wrapped."""
    plain = " ".join(unescape(text).replace("\N{NO-BREAK SPACE}", " ").split()).casefold()
    return [line for line in lines if " ".join(_core(line).split()) not in plain]


def in_report(result: Any) -> str:
    """The texts of its chapters in the report of a centre; empty where it has none."""
    if not hasattr(view_of(result, "report", "tables"), "report_sections"):
        return ""
    chapters = list(_chapters([result], ReportInfo("0", NOW), full=False))
    said = [line for chapter in chapters for line in chapter.warnings]
    parts = [part for chapter in chapters for part in chapter.opening]
    parts += [part for chapter in chapters for section in chapter.sections for part in section.parts]
    kept = [chapter for chapter in chapters if chapter.kind in ("question", "centre")]
    return "\n".join([*said, *(text for part in parts for text in _texts(part))]) if kept else ""


def blocks_of(result: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every block of a page that asks for such an answer, as HTML without figures; else one with all tables."""
    monkeypatch.setattr(shell, "_figure", lambda figure: {"kind": "words", "text": figure.title})
    mine = sorted(shows for name, shows in BLOCKS if name == view_name(result))
    for shows in mine or [("tables",)]:
        yield shows, block_html(BlockAnswer(result, shows, NOW, "/json", {}, ""))


def places(result: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str, bool]]:
    """Where an answer is shown: the place, its text, and whether notes stand there too."""
    tables = tables_of(result)
    yield "tables", to_terminal(tables), True
    yield "JSON", "\n".join(strings(json.loads(to_json(result)))), True
    for shows, html in blocks_of(result, monkeypatch):
        if "Nothing is stored of it" not in html:
            yield f"block {shows}", _CODE.sub("", html), shows != ("now",)
    if getattr(result, "filesystem", None) is not None and (text := in_report(result)):
        yield "report", text, True


def check(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every warning and every note of an answer in every place."""
    result = doubted(answer)
    cautions, remarks = warnings(result), notes(result)
    for place, text, with_notes in places(result, monkeypatch):
        expected = [*cautions, *(remarks if with_notes else [])]
        if place == "JSON":  # notes on dropped rows are numbers there
            expected = [line for line in expected if not line.startswith("The raw rows of")]
        if place.startswith("block"):  # commands stand there as code, options as fields
            expected = [_CODE.sub("", unescape(with_commands(line, in_page_words))) for line in expected]
        assert lacking(expected, text) == [], place


def table(**more: Any) -> TableView:
    return TableView("Title", (), [], **more)


def test_what_is_said_already_is_not_said_again() -> None:
    lines = ["too little data: 1 day of 7", "One clock.", "other"]
    parts = ["It is full; too little data: 1 day of 7.", table(note="One clock. Two tables.")]
    assert unsaid(lines, parts) == ["other"]
    assert unsaid(["x"], [table(warnings=("Warning: x.",))]) == []
    assert unsaid([warned("x")], [table(warnings=("x",))]) == []


def test_a_table_alone_begins_with_the_warnings_of_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    from iolens.views.render.formats import render
    from tests.views.test_capacity import filled

    result = replace(filled(), warnings=[WARNING])
    render(result, "table", table="events")
    out = capsys.readouterr().out
    assert out.startswith("Purges and surges\nWarning: made up to be believed less\n")
    assert WARNING not in to_csv(tables_of(result)[0])


def test_an_alert_says_what_its_answer_warns_of() -> None:
    from iolens.alerts.kinds import get_kind
    from iolens.alerts.rule import Condition, default_rule
    from iolens.api.alerts import _doubted
    from tests.views.test_capacity import filled

    answers = {"capacity": replace(filled(), warnings=[WARNING])}
    date, level = (default_rule(name, get_kind(name)) for name in ("full-date", "fullness"))
    full = Condition("bytes", "reached", "It will be full.")
    assert _doubted(date, full, answers).why == f"It will be full. Warning: {WARNING}."
    assert _doubted(date, replace(full, why=f"So: {WARNING}"), answers).why == f"So: {WARNING}"
    assert _doubted(level, full, answers).why == full.why  # how full it is now is no forecast


def uncalibrated(answer: Any) -> Any:
    """The answer as it is by the shipped default, which nobody chose."""
    names = {field.name for field in fields(answer)}
    nulls: dict[str, Any] = {name: None for name in NULL_WITHOUT_LEVELS if name in names}
    if "categories" in names:
        nulls["categories"] = [replace(item, observations_pct=None) for item in answer.categories]
    if getattr(answer, "compare", None) is not None:
        nulls["compare"] = uncalibrated(answer.compare)
    return replace(
        answer,
        **nulls,
        calibration_state=CalibrationState.ASSUMED,
        calibration_evidence="none",
        fsu_band_pct=None,
        fsu_is_upper_bound=False,
        calibration_refuted=None,
    )


def check_levels(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every place an FSU or disk time without a calibration is said to be so, first, and no level is named."""
    if not isinstance(answer, RestsOnCalibration):
        return
    bare = uncalibrated(answer)
    first, second = to_terminal(tables_of(bare)).splitlines()[:2]
    assert first.removesuffix(".").endswith("(not calibrated)"), first
    assert second.startswith("Warning: Not calibrated: "), second
    plain = json.loads(to_json(bare))
    assert (next(iter(plain)), plain["calibration_state"]) == ("calibration_state", "assumed")
    for place, text, _ in places(bare, monkeypatch):
        assert "not calibrated" in text.casefold(), place
        said = [line for line in text.splitlines() if line not in list(FsuCategory)]  # names of categories in JSON
        assert levels_in(re.sub("<[^>]*>", " ", "\n".join(said))) == [], place
    has_figures = hasattr(view_of(bare, "figures", "tables"), "figures")
    for name, figure in figures_of(bare).items() if has_figures else ():
        drawn = figure()
        for panel in drawn.panels:
            labels = [axis.label for axis in (panel.x, panel.y)]
            assert all(label.endswith("not calibrated") for label in labels if label.startswith("FSU")), name
            words = [drawn.title, panel.title, *labels, *(getattr(mark, "label", "") for mark in panel.marks)]
            assert levels_in("\n".join(words)) == [], name
