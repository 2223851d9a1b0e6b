"""Answers in a notebook: frames with the values of the CSV, and HTML that hostile names cannot change."""

from __future__ import annotations

import csv
import io
import sys
from dataclasses import replace
from datetime import date, datetime
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import iolens
from iolens.analyses.job_list import JobList
from iolens.analyses.utilization.analysis import Utilization
from iolens.api.notebook import LIBRARIES, MOST_ROWS, html_of
from iolens.errors import UsageError
from iolens.store.store import Store
from iolens.units import parse_time
from iolens.views.render.formats import tables_of
from iolens.views.render.tables import to_csv
from iolens.visible_text import shown_name
from tests.analyses.like_jobs import five_applications, stored_like_jobs
from tests.hostile_names import HOSTILE, SOURCES_OF_TROUBLE
from tests.views.results import busy_day


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    stored_like_jobs(Store(folder), five_applications())
    return folder


@pytest.fixture(scope="module")
def jobs(place: Path) -> JobList:
    with iolens.open(str(place), workers=1) as store:
        listed: JobList = store.job_list()
    return listed


@pytest.fixture(scope="module")
def day() -> Utilization:
    return busy_day()


def read(text: str, like: Any) -> Any:
    """A cell of a CSV as a value of the type of another; an empty one is None."""
    if isinstance(like, datetime):
        return parse_time(text)
    if isinstance(like, date):
        return date.fromisoformat(text)
    return None if like is None and text == "" else type(like)(text)


def test_tables_have_the_values_of_their_csv(day: Utilization, jobs: JobList, place: Path) -> None:
    with iolens.open(str(place), workers=1) as store:
        batches = store.store_log()
    for answer in (day, jobs, batches, iolens.plan("capacity", ssi=3, daily_growth="133TB")):
        frames = iolens.tables(answer)
        assert list(frames) == [table.name for table in tables_of(answer)]
        for table in tables_of(answer):
            names, *lines = csv.reader(io.StringIO(to_csv(table)))
            rows = frames[table.name].to_pylist()
            assert frames[table.name].column_names == names
            assert len(rows) == len(lines)
            for row, line in zip(rows, lines, strict=True):
                assert [read(cell, value) for cell, value in zip(line, row.values(), strict=True)] == list(row.values())


def test_a_frame_is_of_the_library_that_is_named(day: Utilization) -> None:
    per_target = iolens.tables(day)["per_target"].to_pydict()
    assert len(per_target["target"]) > 2
    assert iolens.frame(day, "per_target", "pyarrow").to_pydict() == per_target
    for library in ("pandas", "polars"):
        pytest.importorskip(library)
        frame = iolens.frame(day, "per_target", library)
        assert type(frame).__module__.startswith(library)
        assert list(frame["target"]) == per_target["target"]
        assert list(frame["mean_fsu_pct"]) == per_target["mean_fsu_pct"]
    assert iolens.frame(day, library="pyarrow").column_names == iolens.tables(day)["summary"].column_names


def test_what_is_not_there_is_named(day: Utilization, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="there is no 'per_targe' here; did you mean per_target"):
        iolens.frame(day, "per_targe")
    with pytest.raises(UsageError, match=f"there is no 'panda' here; did you mean pandas.*{', '.join(LIBRARIES)}"):
        iolens.frame(day, library="panda")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UsageError, match="polars is not installed: pip install polars"):
        iolens.frame(day, library="polars")


class Elements(HTMLParser):
    """What a page is made of, and what it says."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.kinds: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.kinds.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.mark.parametrize("name", SOURCES_OF_TROUBLE, ids=list(HOSTILE))
def test_hostile_names_are_shown_and_bring_no_element(name: str, jobs: JobList) -> None:
    hostile = replace(jobs, filesystem=name, jobs=[replace(jobs.jobs[0], user=name, name=name)])
    page = Elements(html_of(hostile))
    assert page.kinds <= {"div", "h4", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert page.attributes <= {"class", "tabindex", "role", "aria-label", "scope"}
    assert page.words.count(shown_name(name)) == 2


def test_a_long_table_is_cut_and_its_rest_is_named(jobs: JobList) -> None:
    assert html_of(jobs).count("<tr>") == 1 + len(jobs.jobs)
    many = [jobs.jobs[0]] * (MOST_ROWS + 1234)
    html = html_of(replace(jobs, jobs=many))
    assert html.count("<tr>") == 1 + MOST_ROWS
    assert "1,234 more rows: <code>iolens.frame(result)</code>" in html


def test_warnings_stand_before_the_rows_and_further_tables_are_named(day: Utilization) -> None:
    html = html_of(day)
    assert "Further tables" in html
    assert "per_target" in html
    for warning in tables_of(day)[0].warnings:
        assert html.index(warning[:20]) < html.index("<table>")


def test_ipython_shows_answers_as_html(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: dict[type, Any] = {}
    formatter = SimpleNamespace(for_type=lambda kind, function: shown.update({kind: function}))
    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": formatter}))
    for running in (None, shell):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda running=running: running))
        with iolens.open(str(place), workers=1) as store:
            answer = store.job_list()
    assert shown == {type(answer): html_of}
