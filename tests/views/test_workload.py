"""The workload as tables, figures and sections of the report."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import iolens
from iolens.analyses.workload.analysis import SECTIONS, Censored, Workload, _envelope
from iolens.analyses.workload.bandwidth import Maintenance
from iolens.analyses.workload.request_sizes import RequestSize, SizePeak
from iolens.models.heavy_tail import FittedFamily
from iolens.views.render import figures as f
from iolens.views.render.tables import to_csv, to_terminal
from iolens.views.report.centre import report_html
from iolens.views.workload.figures import figures
from iolens.views.workload.report import report_answers, report_methods, report_sections
from iolens.views.workload.tables import named, tables, verdict
from tests.analyses.telemetry import made_up
from tests.analyses.workload_rows import made_up_centre
from tests.views.documented import undocumented
from tests.views.test_report import ABOUT, Page

NAMES = [
    "bandwidth", "percentiles", "bandwidth-model", "peak-vs-sum", "mix", "sizes-pdf", "sizes-cdf", "size-bandwidth",
    "interarrival", "interarrival-model", "idle", "idle-model", "rhythm-week", "rhythm-day", "throughput-cdf",
]  # fmt: skip


@pytest.fixture(scope="module")
def result() -> Workload:
    centre = made_up_centre(1, targets=5, ticks=4000, missing=0.02)
    return iolens.workload(filesystem="spider", resamples=5, **centre.tables)


@pytest.fixture(scope="module")
def osts() -> Workload:
    """Lustre: sizes in powers of two, a gap, and only reads."""
    part = made_up(2, ticks=300, targets=60)
    table = part.table("target_io").drop_columns(["write_ops", "write_bytes", "read_ops"])
    late = pa.compute.add(table["time"], pa.scalar(timedelta(hours=5)))
    started = pa.compute.add(table["start"], pa.scalar(timedelta(hours=5)))
    later = table.set_column(table.column_names.index("time"), "time", late)
    later = later.set_column(later.column_names.index("start"), "start", started)
    both = pa.concat_tables([table, later])
    return iolens.workload(filesystem="scratch", target_io=both, target_sizes=part.table("target_sizes"))


@pytest.fixture(scope="module")
def still() -> Workload:
    """Nothing was moved at all."""
    return iolens.workload(filesystem="spider", **made_up_centre(1, targets=2, ticks=200, idle=1.0).tables)


def table_called(result: Workload, words: str):
    return next(table for table in tables(result) if words in table.title)


def marks(figure: f.Figure, kind: type) -> list:
    return [mark for panel in figure.panels for mark in panel.marks if isinstance(mark, kind)]


# Words.


def test_the_verdict_says_mix_burstiness_and_peaks(result: Workload) -> None:
    reported = verdict(result)
    assert result.aggregate is not None
    assert f"Writes are {result.aggregate.write_requests_pct:.1f} % of the requests" in reported
    assert "of the time it is below a third of the largest minute" in reported
    assert result.throughput is not None
    known = replace(result, throughput=replace(result.throughput, peak_bytes_per_s=35e9, peak_origin="given"))
    assert "of the time it is below a third of the peak (35 GB/s, given)" in verdict(known)
    assert "All targets together reach" in reported
    assert "% (reads) and" in reported


def test_nothing_moved_is_said(still: Workload) -> None:
    assert "Nothing was moved at all." in verdict(still)
    assert "Writes are" not in verdict(still)


def test_bytes_per_day_are_marked_as_a_rate_over_what_was_observed(result: Workload) -> None:
    assert result.throughput is not None
    minutes = result.throughput.observed_minutes
    assert minutes < 1440
    note = table_called(result, "throughput").note
    assert (
        note
        == f"Bytes per day are a rate: the mean of the {minutes} observed minutes, less than a day, scaled to 24 h."
    )
    longer = replace(result, throughput=replace(result.throughput, observed_minutes=2000))
    assert "the mean of the 2,000 observed minutes, scaled to 24 h" in table_called(longer, "throughput").note


def test_models_have_names_for_people() -> None:
    assert named("read_interarrival") == "read inter-arrival time"
    assert named("write_idle") == "write idle time"
    assert named("read_bandwidth") == "read bandwidth"


# Tables.


def test_all_sections_make_all_tables(result: Workload) -> None:
    shown = to_terminal(tables(result))
    for words in (
        "spider: bandwidth by target", "Peaks at once", "spider: reads and writes", "spider: heavy tails",
        "spider: request sizes", "Peaks of the request sizes", "The week of spider", "The day of spider",
        "spider: throughput", "Idle periods: below", "Coverage",
    ):  # fmt: skip
        assert words in shown
    assert "None" not in shown
    assert "nan" not in shown


@pytest.mark.parametrize(
    ("section", "first"),
    [
        ("bandwidth", "bandwidth by target"),
        ("mix", "reads and writes"),
        ("sizes", "request sizes"),
        ("arrivals", "heavy tails"),
        ("idle", "heavy tails"),
        ("rhythm", "The week"),
        ("throughput", "throughput"),
    ],
)
def test_a_section_alone_has_its_own_first_table(section: str, first: str) -> None:
    answer = iolens.workload(filesystem="spider", sections=[section], **made_up_centre(1, 2, 300).tables)
    assert first in tables(answer)[0].title
    assert to_csv(tables(answer)[0]).count("\n") > 1
    assert list(figures(answer))


def test_the_last_line_is_all_targets(result: Workload) -> None:
    table = table_called(result, "bandwidth by target")
    assert [row[0] for row in table.rows] == [*(line.target for line in result.targets), "total"]


def test_many_targets_are_cut_to_those_that_moved_most(result: Workload) -> None:
    cut = replace(result, top=2)
    most = sorted(result.targets, key=lambda line: line.read_bytes + line.write_bytes)[-2:]
    table = table_called(cut, "bandwidth by target")
    assert [row[0] for row in table.rows] == [*sorted(line.target for line in most), "total"]
    assert "The 2 of 5 targets that moved most (--top)" in table.note


def test_every_model_has_a_verdict_and_both_fits(result: Workload) -> None:
    table = table_called(result, "heavy tails")
    assert len(table.rows) == 6
    assert table.note.count("\n") >= 5
    columns = [column.name for column in table.columns]
    for row, model in zip(table.rows, result.models.values(), strict=True):
        assert row[columns.index("mle_alpha")] == model.mle.alpha
        assert row[columns.index("paper_r2")] == model.paper.r2
        quantised = None if model.quantised is None else model.quantised.alpha
        assert row[columns.index("quantised_alpha")] == quantised
        assert row[columns.index("mle_p_value")] is not None
        assert model.verdict in table.note


def test_what_no_model_has_is_said_with_its_number(result: Workload) -> None:
    """Samples whose interval is off the tick; idle runs that touch a gap or an end of the window."""
    models = {name: replace(model, off_tick_samples=0) for name, model in result.models.items()}
    models["read_interarrival"] = replace(models["read_interarrival"], off_tick_samples=1234)
    censored = [Censored("read", 3, 40.0, 17, 120.0), Censored("write", 0, 0.0, 0, 0.0)]
    note = table_called(replace(result, models=models, censored_idle=censored), "heavy tails").note
    assert f"1,234 samples are left out of the read inter-arrival time: they are not {result.tick_s:g} s long." in note
    assert "Read idle runs that touch an end of the window: 3, the longest of at least 40 s" in note
    assert "Read idle runs that touch a gap in the samples: 17, the longest of at least 120 s" in note
    assert "Write idle runs" not in note
    assert "left out of the write" not in note


def test_sizes_of_many_bins_show_the_largest(result: Workload) -> None:
    many = [RequestSize("read", 16384 * number, number, number / 5050, 0.5) for number in range(1, 101)]
    table = table_called(replace(result, sizes=many, top=3), "request sizes")
    assert [row[0] for row in table.rows] == [16384 * number for number in (98, 99, 100)]
    assert "The 3 of 100 bins" in table.note
    assert table.rows[0][-1] is None  # nothing is known of writes


def test_peaks_of_sizes_in_words(result: Workload) -> None:
    table = table_called(replace(result, size_peaks=[SizePeak("read", 4096, 40.0)]), "Peaks of the request")
    assert table.note == "They hold 40 % of the reads."


def test_periods_without_a_byte_are_shown_where_there_are_any(result: Workload, still: Workload) -> None:
    assert not any("without a byte" in table.title for table in tables(result))
    assert any("without a byte" in table.title for table in tables(still))


def test_what_could_not_be_reported_is_a_dash(still: Workload) -> None:
    shown = to_terminal(tables(still))
    assert "too few to tell" in shown
    assert "No request sizes in this window." in shown


# Figures.


@pytest.mark.parametrize("which", ["result", "osts", "still"])
def test_every_figure_is_drawn(which: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    answer = figures(request.getfixturevalue(which))
    assert list(answer) == NAMES
    for name, describe in answer.items():
        f.draw(describe(), tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.svg").read_bytes().lstrip().startswith(b"<?xml")


@pytest.mark.parametrize("name", ["bandwidth", "percentiles", "bandwidth-model", "sizes-pdf", "rhythm-week"])
def test_figures_are_drawn_for_browsers_too(result: Workload, name: str, tmp_path: Path) -> None:
    f.draw(figures(result)[name](), tmp_path / "figure.html")
    assert (tmp_path / "figure.html").read_bytes().lstrip().startswith(b"<!DOCTYPE html>")


def test_a_section_alone_has_its_figures_only(result: Workload) -> None:
    assert list(figures(replace(result, sections=["idle"]))) == ["idle", "idle-model"]
    assert list(figures(replace(result, sections=["throughput"]))) == ["throughput", "throughput-cdf"]
    assert list(figures(replace(result, sections=list(SECTIONS)))) == NAMES


def test_the_series_is_every_minute_while_they_are_few(result: Workload) -> None:
    figure = figures(result)["bandwidth"]()
    lines = marks(figure, f.LineMark)
    assert [line.label for line in lines] == ["read", "write"]
    assert result.series is not None
    assert lines[0].x.size == result.series.end_us.size
    assert figure.panels[0].y.label.startswith("bandwidth (")


def test_a_long_series_shows_the_spread_of_each_bucket_and_zoomed_in_the_largest_minutes(result: Workload) -> None:
    assert result.series is not None
    minutes = 20_000
    rates = np.random.default_rng(1).pareto(1.2, minutes) * 1e6
    end_us = 1_600_041_600_000_000 + np.arange(1, minutes + 1) * 60_000_000
    envelope = _envelope(end_us, 60_000_000, {"read": rates})
    series = replace(result.series, end_us=end_us, bytes_per_s={"read": rates}, envelope=envelope)
    end = datetime(2020, 9, 14, tzinfo=UTC) + timedelta(minutes=minutes)
    (panel,) = figures(replace(result, series=series, window_end=end))["bandwidth"]().panels
    median, line = [mark for mark in panel.marks if isinstance(mark, f.LineMark)]
    (dots,) = [mark for mark in panel.marks if isinstance(mark, f.PointsMark)]
    assert median.x.size <= 400 < line.x.size <= 5000
    assert [mark.zoom[0] for mark in (median, dots, line) if mark.zoom] == ["out", "out", "in"]
    factor = {"MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}[panel.y.label.rpartition("(")[2].rstrip(")")]
    assert line.y.max() * factor == np.nanmax(dots.y) * factor == pytest.approx(rates.max())
    assert line.label == "read, largest minute"


def test_maintenance_is_shaded_and_missing_is_grey(osts: Workload) -> None:
    start = osts.window_start
    assert start is not None
    window = Maintenance(start, start + timedelta(hours=1), "new disks", "configured")
    spans = marks(figures(replace(osts, maintenance=[window]))["bandwidth"](), f.Span)
    assert [span.label for span in spans] == ["maintenance", "no data"]
    assert spans[0].text == "new disks"
    assert spans[1].end - spans[1].start > 4 * 3_600_000_000


def test_maintenance_left_out_is_not_called_missing(osts: Workload) -> None:
    start = osts.window_start
    assert start is not None
    window = Maintenance(start, start + timedelta(hours=5), "no activity", "found")
    left_out = replace(osts, maintenance=[window], maintenance_left_out=True)
    assert [span.label for span in marks(figures(left_out)["bandwidth"](), f.Span)] == ["no activity"]


def test_the_model_figure_shows_what_was_observed_and_both_curves(result: Workload) -> None:
    figure = figures(result)["bandwidth-model"]()
    assert [panel.title.rpartition(": ")[2] for panel in figure.panels] == [
        "read bandwidth", "write bandwidth", "The tails",
    ]  # fmt: skip
    reads = figure.panels[0]
    assert [mark.label.partition(" ")[0] for mark in reads.marks] == ["observed", "paper:", "likelihood:"]
    observed = reads.marks[0]
    assert observed.y[-1] == pytest.approx(100)
    assert np.all(np.diff(observed.y) >= 0)
    model = result.models["read_bandwidth"]
    paper = reads.marks[1]
    assert f"alpha {model.paper.alpha:.3g}" in paper.label
    assert 0 <= paper.y[0] < 5
    assert np.all(np.diff(paper.y) > 0)


def test_percentiles_have_a_dot_for_every_target(osts: Workload, result: Workload) -> None:
    reads, writes = figures(osts)["percentiles"]().panels
    assert [mark.label for mark in reads.marks] == ["95 %", "99 %", "largest"]
    assert len(reads.marks[0].x) == 60
    assert writes.message
    assert len(reads.x.ticks) < 60  # names only as dense as can be read
    assert "1 in" in reads.x.label
    assert len(figures(result)["percentiles"]().panels[0].x.ticks) == 5


def test_sizes_in_powers_of_two_are_categories_and_linear_ones_a_scale(result: Workload, osts: Workload) -> None:
    linear, doubling = (figures(ost)["sizes-pdf"]().panels[0] for ost in (result, osts))
    assert linear.x.label == "request size (KiB)"
    assert linear.x.ticks == ()
    assert [name for _, name in doubling.x.ticks][::5] == ["4 KiB", "128 KiB", "4 MiB"]
    bars = next(mark for mark in linear.marks if mark.label == "reads")
    assert bars.ends - bars.starts == pytest.approx(8.0)  # half of 16 KiB
    assert sum(bars.heights) == pytest.approx(100)
    steps = next(mark for mark in figures(result)["sizes-cdf"]().panels[0].marks if mark.label == "reads")
    assert (steps.y[0], steps.y[-1]) == (0.0, pytest.approx(100))


def test_what_is_not_known_says_so(osts: Workload, still: Workload) -> None:
    answer = figures(osts)
    assert answer["interarrival"]().panels[0].message == "requests are not counted here"
    assert answer["size-bandwidth"]().panels[0].message == "sizes are not known by minute"
    assert figures(still)["sizes-pdf"]().panels[0].message == "no request sizes in this window"
    assert figures(still)["mix"]().panels[0].message


def test_never_observed_is_not_nothing(result: Workload) -> None:
    week = figures(result)["rhythm-week"]()
    assert len(marks(week, f.Span)) == 6  # all but Monday
    assert marks(week, f.Bars)[0].names[0] == "Mon"


def test_a_third_of_the_peak_is_marked(result: Workload) -> None:
    figure = figures(result)["throughput-cdf"]()
    (line,), (rule,) = marks(figure, f.LineMark), marks(figure, f.Rule)
    assert result.throughput is not None
    below = line.y[line.x < rule.at]
    assert below[-1] == pytest.approx(result.throughput.below_third_of_peak_pct, abs=1.0)


# The report.


@pytest.mark.usefixtures("undrawn")
def test_the_report_tells_all_of_it(result: Workload) -> None:
    page = Page(report_html([result], ABOUT, full=True))
    for heading in (
        "Bandwidth", "Reads and writes", "Heavy tails", "Request sizes", "The week and the day",
        "Throughput and idle periods", "What the workload rests on", "Workload",
    ):  # fmt: skip
        assert page.headings.count(heading) == 1, heading
    assert "does not make a tail a Pareto tail" in page.text
    drawn = [part for section in report_sections(result) for part in section.parts if isinstance(part, f.Figure)]
    assert [figure.name for figure in drawn] == [
        "bandwidth", "percentiles", "peak-vs-sum", "mix", "bandwidth-model", "interarrival", "interarrival-model",
        "idle", "idle-model", "sizes-pdf", "sizes-cdf", "size-bandwidth", "rhythm-week", "rhythm-day", "throughput-cdf",
    ]  # fmt: skip


def test_the_report_leaves_out_what_it_cannot_draw(still: Workload) -> None:
    sections = report_sections(still)
    assert "Request sizes" not in [section.title for section in sections]
    drawn = [part for section in sections for part in section.parts if isinstance(part, f.Figure)]
    assert all(any(panel.marks for panel in figure.panels) for figure in drawn)
    assert report_answers(still)
    assert report_methods([]) == []


def test_every_key_is_documented() -> None:
    assert undocumented(Workload, "workload.md") == []
    assert undocumented(FittedFamily, "workload.md") == []
