from dataclasses import replace

import pytest

from iolens.analyses.utilization.analysis import DailySummary, DailyVolume, SizeCount
from iolens.views.render.tables import to_terminal
from iolens.views.utilization.tables import category_range, io_size_span, tables, verdict

from .results import busy_day, compared, empty, long_window


def table(result, title):
    return next(table for table in tables(result) if table.title.startswith(title))


def test_the_verdict_of_the_paper():
    hopper = replace(busy_day(), busy_time_pct=9.1, optimal_busy_time_pct=2.275, under_report_factor=4.0)
    assert verdict(hopper) == (
        "Busy 9.1 % of the time by FSU; the same bytes as 1 MiB I/Os would have kept it busy 2.3 % of the time, 4.0× "
        "less: the rest is due to smaller I/Os, which a count of bytes does not show."
    )


@pytest.mark.parametrize(
    ("busy", "optimal", "factor", "says"),
    [
        (None, None, None, "Bytes were moved, but nothing here counts disk I/Os by size (brw_stats)"),
        (0.0, 0.0, None, "Never busy by FSU (above 30 %) in this window."),
        (9.1, 0.0, None, "would never have kept it busy: all of this load is due to smaller I/Os."),
        (9.1, 9.1, 1.0, "would have kept it busy 9.1 % of the time: the load is the bytes"),
    ],
)
def test_the_verdict_without_a_factor(busy, optimal, factor, says):
    result = replace(busy_day(), busy_time_pct=busy, optimal_busy_time_pct=optimal, under_report_factor=factor)
    assert says in verdict(result)


def test_the_verdict_without_any_data():
    nothing = replace(busy_day(), busy_time_pct=None, under_report_factor=None, bandwidth_busy_time_pct=None)
    assert verdict(nothing) == "No data in this window."


def test_the_headline_names_the_peak_and_its_origin():
    result = replace(busy_day(), peak_bytes_per_s=35e9, peak_origin="given", bandwidth_busy_time_pct=2.1)
    assert "above 30 % of its peak (35 GB/s, given) 2.1 % of the time." in table(result, "scratch: file").note


def test_table_ii():
    rows = table(busy_day(), "Idle, moderate, busy").rows
    assert [row[:2] for row in rows] == [("idle", "F < 2"), ("moderate", "2 ≤ F ≤ 30"), ("busy", "F > 30")]
    assert [row[3:] for row in rows] == [(45.0, 55.0), (70.0, 30.0), (23.0, 77.0)]


def test_table_iii_puts_two_file_systems_side_by_side():
    result = table(compared(), "Idle, moderate, busy")
    headings = [column.heading for column in result.columns]
    assert headings[2:] == [
        "scratch: obs.", "optimal", "sub-optimal", "scratch2: obs.", "optimal", "sub-optimal",
    ]  # fmt: skip
    assert len(result.rows) == 3
    assert len({column.name for column in result.columns}) == len(result.columns)


def test_sizes_run_from_the_first_to_the_last_that_counted():
    counts = [("read", 4096, 0), ("read", 8192, 3), ("write", 16384, 0), ("write", 1 << 20, 1), ("write", 1 << 21, 0)]
    sizes = [SizeCount(*count) for count in counts]
    assert io_size_span(sizes) == [8192, 16384, 1 << 20]
    assert io_size_span([]) == []
    result = table(replace(busy_day(), io_sizes=sizes), "Disk I/Os by size")
    assert result.rows[0] == (8192, 3, 75.0, None, None)
    assert result.note == "25.0 % of 4 I/Os are optimal (1 MiB or larger)."


def test_a_fortnight_of_days_is_shown():
    result = table(long_window(), "Daily volume")
    assert len(result.rows) == 14
    assert "The last 14 of 240 days" in result.note


def test_daily_means_and_medians_are_the_papers():
    days = DailySummary(182, 0, 140e12, 70e12, 50e12, 50e12)
    daily = [DailyVolume(busy_day().daily[0].date, None, 5, 100.0, True)]
    text = to_terminal([table(replace(busy_day(), daily_summary=days, daily=daily), "Daily volume")])
    assert "Per UTC day over 182 complete days: mean read 140 TB, written 70 TB" in text
    assert "median read 50 TB, written 50 TB." in text
    assert "–       5 B" in text


def test_many_targets_are_cut_to_the_busiest_and_say_so():
    result = table(long_window(), "Targets of")
    means = [row[1] for row in result.rows]
    assert len(means) == 12
    assert means == sorted((target.mean_fsu_pct for target in long_window().per_target), reverse=True)[:12]
    assert "12 busiest of 156" in result.note
    assert len(table(busy_day(), "Targets of").rows) == 24


def test_coverage_names_what_is_missing():
    text = to_terminal([table(busy_day(), "Coverage"), table(busy_day(), "Targets of scratch with gaps")])
    assert "Missing targets         scratch-OST0018\n" in text
    assert "Targets without sizes   scratch-OST0001\n" in text
    assert "Counter resets          3\n" in text
    assert "I/Os outside bins       17\n" in text
    assert "one source lacks sizes" in text


def test_calibration_limits_of_table_i():
    text = to_terminal([table(busy_day(), "Calibration")])
    assert "551 MiB/s" in text
    assert "775 MiB/s" in text


def test_an_empty_window_says_so_and_prints_no_number_for_what_is_unknown():
    text = to_terminal(tables(empty()))
    assert text.count("No data in this window.") == 4
    assert "No I/O sizes were recorded in this window." in text
    assert "Mean FSU              –\n" in text
    assert "Missing targets         OST0000, OST0001\n" in text
    assert "nan" not in text
    assert "None" not in text


def test_ranges_of_categories():
    assert [category_range(category) for category in busy_day().categories] == ["F < 2", "2 ≤ F ≤ 30", "F > 30"]
