"""What holds of the tables of all views: names to ask for them by, and how they look in a terminal of 80 columns."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.cells import cell_len

import iolens
from iolens.errors import UsageError
from iolens.views.render import tables as t
from iolens.views.render.doubts import unsaid, warnings
from iolens.views.render.formats import render, tables_of
from iolens.views.render.shown_times import shown_in
from tests.views.answers import ANSWERS
from tests.views.results import busy_day, compared
from tests.views.test_doubts import check as check_doubts
from tests.views.test_doubts import check_levels, lacking

WIDTH = 80
VIEWS = Path(iolens.__file__).parent / "views"


def test_no_view_is_forgotten() -> None:
    packages = {path.parent.name for path in VIEWS.glob("*/tables.py")} - {"render"}
    modules = {path.stem for path in VIEWS.glob("*.py") if "\ndef tables(" in path.read_text("utf-8")}
    assert set(ANSWERS) == packages | modules


@pytest.fixture(scope="module", params=sorted(ANSWERS))
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return list(ANSWERS[request.param](tmp_path_factory.mktemp("answers")))


def each_table(answers: list[Any]) -> Iterator[t.TableView]:
    return (table for answer in answers for table in tables_of(answer))


def test_warnings_and_notes_stand_wherever_the_answer_does(answers: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    check_doubts(answers[0], monkeypatch)


def test_what_has_no_level_without_a_calibration_says_so_first(
    answers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for answer in answers:
        check_levels(answer, monkeypatch)


def test_every_table_has_a_name_of_its_own(answers: list[Any]) -> None:
    for answer in answers:
        names = [table.name for table in tables_of(answer)]
        assert len(set(names)) == len(names) > 0
        assert all(re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) for name in names), names
        assert "table" not in names  # what a table without a name would be called
        assert "list" not in names  # which asks for the names


def test_columns_that_are_kept_exist(answers: list[Any]) -> None:
    names: dict[str, set[str]] = {}
    for table in each_table(answers):
        names.setdefault(table.name, set()).update(column.name for column in table.columns)
    for table in each_table(answers):
        assert set(table.keep) <= names[table.name], table.name


def test_every_table_can_be_had_alone(answers: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With every warning of the whole answer that its own words do not give; CSV and Parquet have rows only."""
    answer = answers[0]
    tables = tables_of(answer)
    said = warnings(answer, tables)
    for table in tables:
        render(answer, "csv", table=table.name)
        assert capsys.readouterr().out == t.to_csv(table)
        render(answer, "markdown", table=table.name)
        alone = replace(table, warnings=(*unsaid(said, [table]), *table.warnings))
        text = capsys.readouterr().out
        assert text == t.to_markdown([alone])
        assert lacking(said, text.replace("\\", "")) == []  # Markdown escapes what it would read
        render(answer, "parquet", tmp_path / "table.parquet", table=table.name)
        frame = pq.read_table(io.BytesIO((tmp_path / "table.parquet").read_bytes()))
        assert (frame.num_rows, frame.column_names) == (len(table.rows), [column.name for column in table.columns])


def test_no_line_is_longer_than_the_terminal_is_wide(answers: list[Any]) -> None:
    for table in each_table(answers):
        lines = t.to_terminal([table], WIDTH).splitlines()
        assert max(map(cell_len, lines)) <= WIDTH, table.name


def test_only_sentences_are_broken_over_lines(answers: list[Any]) -> None:
    """Of a table without sentences every row is one line; of others every cell that is none stands on one line."""
    for table in each_table(answers):
        if not table.rows:
            continue
        shown, _ = t.fitting(table, WIDTH)
        rows, short = t.body(shown), 24 if table.sideways else 40
        text = t.to_terminal([replace(table, note="", warnings=())], WIDTH)
        lines = text.splitlines()[text.splitlines().index(rule(text)) + 1 :]
        if all(len(cell) <= short for row in rows for cell in row):
            of_rows = [line for line in lines if not line.endswith("not shown: --wide")]
            assert len(of_rows) == len(rows), table.name
        for row in rows:
            whole = [cell for cell in row if len(cell) <= short]
            assert all(any(cell.strip() in line for line in lines) for cell in whole), table.name


def rule(text: str) -> str:
    return next(line for line in text.splitlines() if set(line) == {"─"})


def test_what_is_left_out_is_counted_and_wide_shows_all(answers: list[Any]) -> None:
    for table in each_table(answers):
        if not table.rows:
            continue
        shown, left_out = t.fitting(table, WIDTH)
        of = len(table.rows) if table.sideways else len(table.columns)
        assert (len(shown.rows) if table.sideways else len(shown.columns)) + left_out == of
        said = re.findall(r"(\d+) columns? not shown: --wide", t.to_terminal([table], WIDTH))
        assert said == ([str(left_out)] if left_out else [])
        bare = replace(table, title="", note="", warnings=())
        assert t.to_terminal([bare], WIDTH, wide=True) == t.to_terminal([bare])


def test_times_are_those_of_the_reader(answers: list[Any]) -> None:
    with shown_in("Asia/Tokyo"):
        text = t.to_terminal(list(each_table(answers)))
    assert "UTC" not in re.sub(
        r"UTC days?\b|Day \(UTC\)|In UTC; per hour", "", text
    )  # which days are meant is another matter


def test_the_second_file_system_has_tables_of_its_own() -> None:
    names = [table.name for table in tables_of(compared())]
    assert {"per_target", "per_target_2", "per_day", "per_day_2"} <= set(names)


def test_a_table_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"no table 'per_targe' here; did you mean per_target"):
        render(busy_day(), "csv", table="per_targe")


def test_a_very_long_word_is_broken_and_not_cut_off() -> None:
    path = "/scratch/" + "x" * 100
    table = t.TableView("", (t.text("path", "Path"), t.count("files", "Files")), [(path, 5)])
    text = t.to_terminal([table], WIDTH)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "".join(text.split()).replace("5", "").endswith(path)


def test_columns_that_matter_stay_longest() -> None:
    columns = tuple(t.text(name, name) for name in ("key", "b", "c", "d"))
    table = t.TableView("", columns, [("x" * 10,) * 4], keep=("d",))
    shown = [[column.name for column in t.fitting(table, width)[0].columns] for width in (50, 40, 30, 23, 5)]
    assert shown == [["key", "b", "c", "d"], ["key", "b", "d"], ["key", "d"], ["key", "d"], ["key", "d"]]
