"""Contents for people: tables that say what they mean, figures in every format, the report."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolens.analyses.contents.analysis import Contents, contents
from iolens.views.contents.report import report_answers, report_methods, report_sections
from iolens.views.contents.tables import show_age, verdict
from iolens.views.render import tables as t
from iolens.views.render.figures import BandMark, LineMark, Rule
from iolens.views.render.formats import draw_figures, figures_of, tables_of
from iolens.views.render.json_text import to_plain
from iolens.views.report.centre import report_html
from iolens.views.report.page import ReportInfo
from tests.analyses.contents_rows import DAY_US, JANUARY_US, MARCH_US, row, scanned, selection, total
from tests.views.documented import undocumented

DAY_S = 86_400
HOLDERS: dict[tuple[str | None, str | None], int] = {("ada", "earth"): 40, ("bob", "climate"): 60, ("eve", None): 10}


def usual(**options: Any) -> Contents:
    """Two scans; the project `earth` has come to hold most files."""
    grown = HOLDERS | {("ada", "earth"): 400}
    rows = [*scanned(JANUARY_US, HOLDERS), *scanned(MARCH_US, grown, seed=2)]
    return contents(selection(rows), **({"without_projects": ["earth"], "threshold_files": 5000} | options))


def nothing() -> Contents:
    return contents(selection([]))


def rough() -> Contents:
    """A histogram that tells no bytes, owners or times."""
    rows = [row("size", None, 0, 5), row("size", 0, 1 << 20, 10), row("size", 1 << 20, 1 << 30, 9)]
    return contents(selection([{**item, "owner": None} for item in rows]))


def totals() -> Contents:
    return contents(selection([total(5, 100), total(7, None, owner="bob")]))


def open_ended() -> Contents:
    return contents(selection([row("size", 0, 8, 1), row("size", 8, None, 5), row("mtime", 0, None, 6)]))


CASES = {
    "usual": usual,
    "empty": nothing,
    "rough": rough,
    "totals": totals,
    "open": open_ended,
    "one": lambda: contents(selection(scanned(MARCH_US, HOLDERS))),
}


def table(result: object, title: str) -> t.TableView:
    return next(item for item in tables_of(result) if item.title.startswith(title))


def test_the_verdict_says_how_many_how_large_and_how_old() -> None:
    rows = [
        row("size", None, 0, 1, bytes=0), row("size", 512, 1024, 18, bytes=18_000),
        row("size", 2**19, 2**20, 1, bytes=10**6), row("atime", 0, 90 * DAY_S, 15, bytes=18_000),
        row("atime", 90 * DAY_S, None, 5, bytes=10**6), row("size", 0, 1, 10, bytes=10, time=JANUARY_US),
    ]  # fmt: skip
    assert verdict(contents(selection(rows))) == (
        "20 files hold 1.02 MB. Half of them are at most 1 KiB; 95.0 % of them, up to 1 KiB, hold 1.8 % of the bytes. "
        "25.0 % of the files and 98.2 % of the bytes were not used for 90 days. Since 2010-01-25: files +100.0 %, "
        "bytes +10,179,900.0 %."
    )


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("empty", "No scan in this window."),
        ("rough", "24 files hold 9.44 MB to 9.67 GB, by their bins."),
        ("rough", "hold about 100.0 % of the bytes (100.0 … 100.0 %)"),
        ("totals", "12 files."),
        ("open", "6 files."),
    ],
)
def test_the_verdict_in_other_cases(case: str, says: str) -> None:
    assert says in verdict(CASES[case]())


def test_two_scans_stand_side_by_side() -> None:
    result = table(usual(), "From 2010-01-25 00:00:00 to 2010-03-28 00:00:00 UTC, 62.0 days")
    assert [cells[0] for cells in result.rows] == ["all", "without earth", "earth", "no project", "climate"]
    names = [column.name for column in result.columns]
    whole, _, earth, *_ = (dict(zip(names, cells, strict=True)) for cells in result.rows)
    assert (whole["files_before"], whole["files_after"]) == (110, 470)
    assert earth["files_change_pct"] == 900
    assert earth["files_share_pct"] == 100


def test_only_the_top_is_shown_and_the_rest_is_counted() -> None:
    holders = {(f"owner{n:02}", f"project{n:02}"): 5 + n for n in range(30)}
    result = contents(selection(scanned(MARCH_US, holders)), top=3)
    for title in ("Projects", "Owners"):
        assert len(table(result, title).rows) == 3
        assert table(result, title).note == "3 of 30; JSON has all."
    assert len(to_plain(result)["by_project"]) == 30


def test_the_rest_stands_beside_the_whole() -> None:
    result = usual()
    assert "Files without earth (%)" in [column.heading for column in table(result, "Small files").columns]
    assert len(table(result, "Files by size").columns) == 6
    assert len(table(result, "Files in use").columns) == 6
    assert len(table(result, "Files by age").columns) == 9
    assert len(table(usual(without_projects=[]), "Files by age").columns) == 5


def test_ages_before_the_first_bin_are_zero() -> None:
    rows = [row("size", 0, 8, 3, bytes=9), row("atime", 0, DAY_S, 1, bytes=3), row("atime", DAY_S, None, 2, bytes=6),
            row("mtime", DAY_S, 7 * DAY_S, 3, bytes=9)]  # fmt: skip
    result = table(contents(selection(rows)), "Files by age")
    third = pytest.approx(100 / 3)
    assert result.rows == [
        ("1 day", third, third, 0.0, 0.0), ("7 days", third, third, 100.0, 100.0), ("ever", 100.0, 100.0, 100.0, 100.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "not before the scan"), (3600, "1 hour"), (6 * 3600, "6 hours"), (DAY_S, "1 day"), (90 * DAY_S, "90 days"),
     (365 * DAY_S, "1 year"), (1825 * DAY_S, "5 years"), (540 * DAY_S, "540 days")],
)  # fmt: skip
def test_ages_in_words(seconds: int, words: str) -> None:
    assert show_age(seconds) == words


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_every_figure_is_drawn_in_every_case(case: str, suffix: str, tmp_path: Path) -> None:
    result = CASES[case]()
    names = list(figures_of(result))
    assert names == ["sizes", "ages", "projects", "widths", "history"]
    for path in draw_figures(result, [f"{name}={tmp_path / name}.{suffix}" for name in names]):
        assert path.stat().st_size > 1000
    assert t.to_terminal(tables_of(result), 100)
    assert t.to_markdown(tables_of(result)).startswith("## scratch: contents")
    assert t.to_parquet(tables_of(result)[0])


def test_the_figure_of_sizes_draws_both() -> None:
    (panel,) = figures_of(usual())["sizes"]().panels
    lines = {mark.label: mark for mark in panel.marks if isinstance(mark, LineMark)}
    assert list(lines) == ["files", "bytes", "files without earth", "bytes without earth"]
    for line in lines.values():
        assert line.y[-1] == 100
        assert (np.diff(line.y) >= 0).all()
    assert (lines["files"].x == lines["files without earth"].x).all()


def test_bytes_that_are_not_reported_are_a_band() -> None:
    (panel,) = figures_of(rough())["sizes"]().panels
    (band,) = (mark for mark in panel.marks if isinstance(mark, BandMark))
    assert (band.low <= band.high).all()
    assert [mark.label for mark in panel.marks if isinstance(mark, LineMark)] == ["files", "bytes, bins' middle"]


def test_the_figure_of_ages_has_both_clocks() -> None:
    accessed, modified = figures_of(usual())["ages"]().panels
    assert len(accessed.marks) == len(modified.marks) == 4
    only = figures_of(open_ended())["ages"]().panels
    assert only[0].message
    assert not only[1].message


def test_the_history_looks_ahead_to_the_limit() -> None:
    (panel,) = figures_of(usual(threshold_files=1000))["history"]().panels
    assert [mark.text for mark in panel.marks if isinstance(mark, Rule)] == ["last scan", "1,000 files"]
    assert panel.x.high is not None
    assert panel.x.high > MARCH_US + 62 * DAY_US
    (far,) = figures_of(usual(threshold_files=10**9))["history"]().panels
    assert [mark.text for mark in far.marks if isinstance(mark, Rule)] == ["last scan"]


def test_the_projection_is_tabled_with_its_limit() -> None:
    result = table(usual(), "Projection")
    assert [cells[:2] for cells in result.rows] == [
        ("files", "least squares"), ("files", "Theil–Sen"), ("inodes", "least squares"), ("inodes", "Theil–Sen"),
    ]  # fmt: skip
    assert result.rows[0][6:8] == ("5,000 (given)", "projected")
    assert "fewer than 8 scans" in result.note


@pytest.mark.usefixtures("undrawn")
def test_the_report_has_contents_where_there_is_a_scan() -> None:
    page = report_html([usual(), nothing()], ReportInfo("0", datetime(2020, 10, 14, tzinfo=UTC)), full=True)
    for words in ("Who holds what", "Contents over time", "Files and bytes by age", "470 files hold"):
        assert words in page
    assert report_answers(nothing()) == report_sections(nothing()) == report_methods([nothing()]) == []
    assert [section.title for section in report_sections(totals())] == ["Contents", "Who holds what"]
    assert [section.title for section in report_sections(rough())] == ["Contents"]


def test_every_key_is_documented() -> None:
    assert undocumented(Contents, "contents.md") == []
