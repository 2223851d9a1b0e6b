"""Resolution (DEFINITIONS): every answer from intervals names what it read, and a rollup is warned of beside it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import iolens
from iolens.analyses.results import OverIntervals
from iolens.store.rollup import retain_raw, roll_up
from iolens.store.store import Store
from iolens.views.render.figures import Figure
from iolens.views.render.formats import figures_of, tables_of
from iolens.views.render.tables import to_csv, to_terminal
from iolens.views.report.centre import report_html
from iolens.views.report.page import ReportInfo
from tests.analyses.telemetry import table_of
from tests.chosen_calibration import choose_grace
from tests.cli.command import iolens as command

DAY = datetime(2020, 9, 14, tzinfo=UTC)
TICK_US = 5_000_000
ANALYSES = ("utilization", "workload", "imbalance", "latency", "metadata")


def bursts(day: int, hours: int = 2) -> dict[str, list[dict[str, Any]]]:
    """Two OSTs and an MDT, busy for one minute in ten: 10 % of the samples, no hour as a whole."""
    rows: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("target_io", "target_sizes", "target_histograms", "metadata_ops")
    }
    begin = int((DAY + timedelta(days=day)).timestamp()) * 1_000_000
    for tick in range(hours * 720):
        start = begin + tick * TICK_US
        is_busy = tick % 120 < 12
        common = {"time": start + TICK_US, "start": start, "duration_s": 5.0, "date": begin // 86_400_000_000,
                  "filesystem": "scratch", "source": "made-up"}  # fmt: skip
        for number in range(2):
            head = {**common, "target": f"scratch-OST000{number}", "target_kind": "ost"}
            ios = (4000 if is_busy else 5) + number
            moved = {"write_bytes": ios * 4096, "write_ops": ios, "read_bytes": 0, "read_ops": 0}
            rows["target_io"].append({**head, **moved})
            rows["target_sizes"].append({**head, "write_ios_4096": ios})
            rows["target_histograms"].append(
                {**head, "histogram": "io_time_ms", "direction": "write", "bin": 64 if is_busy else 2, "count": ios}
            )
        rows["metadata_ops"].append({**common, "target": "scratch-MDT0000", "open": 900 if is_busy else 9})
    return rows


def filled(url: Path, *days: int) -> Store:
    store = Store(url)
    choose_grace(store)
    for day in days:
        for name, rows in bursts(day).items():
            store.append(name, table_of(name, rows))
    roll_up(store)
    return store


@pytest.fixture(scope="module")
def rolled_up(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return filled(tmp_path_factory.mktemp("store"), 0, 1)


@pytest.fixture(scope="module")
def dropped(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store whose raw rows are gone."""
    store = filled(tmp_path_factory.mktemp("dropped"), 0)
    assert retain_raw(store, 86400.0).rows > 0
    return store


def test_hourly_means_change_the_share_of_time_and_say_so(rolled_up: Store) -> None:
    """9.4 % became 0.6 % without a word; here 10 % becomes nothing."""
    with iolens.open(rolled_up.url) as opened:
        raw, hourly = (opened.utilization(resolution=item) for item in (None, "1h"))
    assert (raw.resolution, hourly.resolution) == ("raw", "1h")
    assert raw.busy_time_pct == pytest.approx(10, abs=0.01)
    assert hourly.busy_time_pct == 0
    assert hourly.mean_fsu_pct == pytest.approx(raw.mean_fsu_pct)
    assert (raw.plateaus, hourly.plateaus) == ([], None)


@pytest.mark.parametrize("resolution", ["60s", "1h"])
@pytest.mark.parametrize("name", ANALYSES)
def test_every_analysis_of_intervals_warns_in_table_figure_and_report(
    rolled_up: Store, name: str, resolution: str
) -> None:
    with iolens.open(rolled_up.url) as opened:
        raw, result = (opened.analyse(name, resolution=item) for item in ("raw", resolution))
    assert isinstance(result, OverIntervals)
    assert (raw.resolution, result.resolution) == ("raw", resolution)
    warning = f"Warning: computed from the {resolution} rollup of scratch."
    tables = tables_of(result)
    assert to_terminal(tables[:1]).count(warning) == 1
    assert warning not in to_csv(tables[0])
    assert "rollup" not in to_terminal(tables_of(raw))
    mark = f"(from the {resolution} rollup)"
    assert all(describe().title.endswith(mark) for describe in figures_of(result).values())
    assert not [figure for figure in figures_of(raw).values() if "rollup" in figure().title]


def test_the_report_warns_in_the_summary_and_in_every_section(rolled_up: Store) -> None:
    with iolens.open(rolled_up.url) as opened:
        results = [opened.analyse(name, resolution="1h") for name in ANALYSES]
    from iolens.views.report.centre import _chapters

    about = ReportInfo("1.2.3", DAY)
    summary, *chapters = list(_chapters(results, about, full=True))
    warning = "Warning: computed from the 1h rollup of scratch."
    assert [str(part)[: len(warning)] for part in summary.sections[0].parts].count(warning) == 1
    sections = [section for chapter in chapters if chapter.kind == "question" for section in chapter.sections]
    assert len(sections) > 6
    for section in sections:
        assert str(section.parts[0]).startswith(warning), section.title
        for part in section.parts:
            assert not isinstance(part, Figure) or part.title.endswith("(from the 1h rollup)")
    openings = [part for chapter in chapters for part in chapter.opening if isinstance(part, Figure)]
    assert openings
    assert all(figure.title.endswith("(from the 1h rollup)") for figure in openings)
    captions = re.findall(r"<figcaption><b>Figure \d+\.</b> (.*?) <span", report_html(results[:1], about))
    assert captions
    assert all(caption.endswith("(from the 1h rollup).") for caption in captions)


@pytest.mark.parametrize("name", ANALYSES)
def test_where_the_raw_rows_were_dropped_the_finest_rollup_answers_and_says_so(dropped: Store, name: str) -> None:
    with iolens.open(dropped.url) as opened:
        result = opened.analyse(name)
    assert result.resolution == "60s"
    assert result.samples > 0
    assert "computed from the 60s rollup" in to_terminal(tables_of(result)[:1])


def test_asked_for_raw_rows_that_were_dropped_it_does_not_take_others(dropped: Store) -> None:
    with iolens.open(dropped.url) as opened:
        result = opened.utilization(resolution="raw")
    assert (result.resolution, result.samples, result.days_only_in_rollups) == ("raw", 0, 1)
    assert "the raw rows of 1 day of this window of scratch were dropped" in to_terminal(tables_of(result))


def test_where_some_days_were_dropped_raw_rows_answer_and_the_others_are_counted(tmp_path: Path) -> None:
    store = filled(tmp_path / "store", 0, 1)
    for name in ("target_io", "target_sizes", "target_histograms", "metadata_ops"):
        handle = store.tables.load(name)
        assert handle is not None
        handle.delete("date = '2020-09-14'")
    with iolens.open(store.url) as opened:
        result = opened.utilization()
        narrow = opened.utilization(since=DAY + timedelta(days=1))
        early = opened.utilization(until=DAY + timedelta(days=1))
    assert (result.resolution, result.days_only_in_rollups, len(result.daily)) == ("raw", 1, 1)
    assert "the raw rows of 1 day of this window of scratch were dropped" in to_terminal(tables_of(result)[:1])
    assert (narrow.days_only_in_rollups, early.resolution) == (0, "60s")


def test_the_command_line_does_the_same(rolled_up: Store, dropped: Store) -> None:
    warning = "Warning: computed from the 1h rollup of scratch."
    assert warning in command("fsu", "--store", rolled_up.url, "--resolution", "1h").out
    assert "Warning" not in command("fsu", "--store", rolled_up.url).out
    assert '"resolution": "60s"' in command("fsu", "--store", dropped.url, "--format", "json").out
