"""What the sentences, cards and tables of utilization say are the numbers of the result, and they agree."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from iolens.analyses.utilization.analysis import DailySummary, DailyVolume
from iolens.views.render import figures as f
from iolens.views.render.json_text import to_json
from iolens.views.render.section import Facts
from iolens.views.render.tables import TableView, to_terminal
from iolens.views.utilization.figures import figures
from iolens.views.utilization.report import (
    report_answers,
    report_comparison,
    report_facts,
    report_methods,
    report_sections,
)
from iolens.views.utilization.tables import tables, verdict

from .results import START, busy_day, plateau_of

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
RESULT = busy_day("scratch", 300, targets=4)


def numbers(text: str) -> list[float]:
    return [float(result.replace(",", "")) for result in NUMBER.findall(text)]


def shown(value: float) -> float:
    """A percentage as people see it: one decimal, two digits where that is nothing, more where it would be all."""
    if 0 < value < 0.1:
        return float(f"{value:.2g}")
    digits = 1
    while value < 100.0 and digits < 9 and float(f"{value:.{digits}f}") == 100.0:
        digits += 1
    return float(f"{value:.{digits}f}")


def words_of(*parts) -> str:
    reported = []
    for part in parts:
        if isinstance(part, Facts):
            reported += [f"{fact.value} {fact.label} {fact.remark}" for fact in part.facts]
        elif isinstance(part, TableView):
            reported.append(to_terminal([part]))
        else:
            reported.append(str(part))
    return "\n".join(reported)


def everything(result) -> str:
    """All words about a result: table, summary, sections, comparison and method."""
    sections = [*report_sections(result), *report_comparison([result, result]), *report_methods([result])]
    parts = [part for section in sections for part in section.parts if not isinstance(part, f.Figure)]
    return words_of(*tables(result), *summary_of(result), *parts)


def cards(result):
    return report_facts(result)


def summary_of(result) -> list[object]:
    """Facts of the first page, and the words of all answers."""
    return [Facts(tuple(report_facts(result))), *(words for answer in report_answers(result) for words in answer.words)]


# Busy by FSU, the same bytes as 1 MiB I/Os, and the factor.


@settings(derandomize=True, max_examples=200, deadline=None)
@given(busy=st.floats(0.02, 100), share=st.floats(0.001, 1))
@example(busy=99.96875, share=1.0)  # Hypothesis also tries constants of modules that other tests have loaded
def test_the_verdict_holds_the_pair_and_the_factor_between_them(busy: float, share: float) -> None:
    optimal = busy * share
    result = replace(RESULT, busy_time_pct=busy, optimal_busy_time_pct=optimal, under_report_factor=1 / share)
    said = verdict(result)
    answer = numbers(said.replace("1 MiB", ""))
    assert answer[:2] == [shown(busy), shown(optimal)]
    assert "andwidth" not in said
    if 1 / share >= 1.05:
        assert answer[2:] == [round(1 / share, 1)]
    else:
        assert answer[2:] == []
        assert "less" not in said


def test_a_card_shows_the_factor_beside_its_own_denominator() -> None:
    """Three cards said 9.4 % busy by FSU, 9.8 % busy by bandwidth, 2.8 × under-reported by bandwidth."""
    result = replace(
        RESULT, busy_time_pct=9.4, optimal_busy_time_pct=3.36, under_report_factor=9.4 / 3.36,
        bandwidth_busy_time_pct=9.8, peak_bytes_per_s=5.38e9, peak_origin="largest tick",
    )  # fmt: skip
    busy, optimal, *rest = cards(result)
    assert (busy.value, optimal.value, optimal.remark) == ("9.4 %", "3.4 %", "2.8× less")
    assert "1 MiB I/Os" in optimal.label
    assert not [card for card in rest if "andwidth" in f"{card.label} {card.remark}"]
    assert "9.8" not in words_of(*summary_of(result))
    assert "under-reported by" not in everything(result).lower()


@pytest.mark.parametrize("origin", ["given", "configured"])
def test_bandwidth_against_a_known_peak_has_a_name_of_its_own(origin: str) -> None:
    result = replace(RESULT, bandwidth_busy_time_pct=2.1, peak_bytes_per_s=35e9, peak_origin=origin)
    (card,) = [card for card in cards(result) if "andwidth" in card.label]
    assert (card.value, card.label) == ("2.1 %", "of the time above 30 % of peak bandwidth")
    assert card.remark == f"peak 35 GB/s, {origin}"
    said = f"Bandwidth was above 30 % of its peak (35 GB/s, {origin}) 2.1 % of the time."
    assert said in tables(result)[0].note
    assert said in summary_of(result)


def test_every_format_has_the_same_share_of_the_largest_tick() -> None:
    """JSON had a number for which the terminal and CSV had none."""
    result = replace(RESULT, bandwidth_busy_time_pct=9.8, peak_bytes_per_s=5.38e9, peak_origin="largest tick")
    of_json = json.loads(to_json(result))
    for view in (tables(result)[0], report_comparison([result, RESULT])[0].parts[0]):
        assert isinstance(view, TableView)
        row = dict(zip([column.name for column in view.columns], view.rows[0], strict=True))
        for key in ("bandwidth_busy_time_pct", "peak_bytes_per_s", "peak_origin"):
            assert row[key] == of_json[key]
    said = (
        "Bandwidth was above 30 % of its peak (5.38 GB/s, largest tick) 9.8 % of the time. The true peak is not known"
    )
    assert said in tables(result)[0].note


def test_never_busy_as_1_mib_ios_has_no_factor() -> None:
    result = replace(RESULT, busy_time_pct=9.1, optimal_busy_time_pct=0.0, under_report_factor=None)
    assert cards(result)[1].value == "0.0 %"
    assert "×" not in f"{cards(result)[1].remark}{verdict(result)}"


def test_the_main_table_has_the_pair_in_neighbouring_columns() -> None:
    names = [column.name for column in tables(RESULT)[0].columns]
    place = names.index("busy_time_pct")
    assert names[place : place + 3] == ["busy_time_pct", "optimal_busy_time_pct", "under_report_factor"]
    row = dict(zip(names, tables(RESULT)[0].rows[0], strict=True))
    assert (row["bandwidth_busy_time_pct"], row["peak_origin"]) == (4.31, "largest tick")
    known = tables(replace(RESULT, peak_origin="given"))[0]
    assert dict(zip(names, known.rows[0], strict=True))["bandwidth_busy_time_pct"] == 4.31


# Steady and saturated.

LEVELS = (32.0, 45.0, 60.0)  # simulated disks sit there steadily


def steady(*levels: float, **more):
    stretches = [plateau_of(START + timedelta(hours=n), 0.5, level, **more) for n, level in enumerate(levels)]
    return replace(RESULT, plateaus=stretches)


def test_a_steady_load_below_the_ceiling_is_never_called_saturated_or_out_of_breath() -> None:
    result = steady(*LEVELS)
    summary = words_of(*summary_of(result))
    assert "It was steady 3 times, 90 min in all" in summary
    ceiling = "the ceiling of 100 % (default; no saturating test has measured it)"
    assert f"None of that was saturated, close to {ceiling}." in summary
    assert "no more to give" not in summary
    (card,) = [card for card in cards(result) if card.label == "saturated"]
    assert (card.value, card.remark) == ("0 min", "0 of 3 steady stretches")
    table = next(table for table in tables(result) if table.title.startswith("Steady stretches"))
    assert [row[-1] for row in table.rows] == ["no"] * 3
    assert f"with no more to give, are those close to {ceiling}: 0 of 3." in table.note
    spans = [mark for mark in figures(result)["bandwidth"]().panels[0].marks if isinstance(mark, f.Span)]
    assert {span.label for span in spans if span.colour in (f.STEADY, f.SATURATED)} == {"steady"}
    assert not [span for span in spans if span.colour == f.SATURATED]


def test_a_saturated_stretch_is_reported_with_its_ceiling_its_length_and_the_others() -> None:
    result = steady(*LEVELS, 66.0, ceiling_pct=70.0, ceiling_origin="calibration ours")
    summary = words_of(*summary_of(result))
    assert "It was saturated once, for 30 min from 2012-10-22 03:00:00 UTC, when FSU stayed near 66 %" in summary
    assert "near 66 %, close to the ceiling of 70 % (calibration ours): the disks had no more to give." in summary
    assert "3 other steady stretches stayed below." in summary
    (card,) = [card for card in cards(result) if card.label == "saturated"]
    assert (card.value, card.remark) == ("30 min", "1 of 4 steady stretches")
    spans = [mark for mark in figures(result)["bandwidth"]().panels[0].marks if isinstance(mark, f.Span)]
    full = [span for span in spans if span.colour == f.SATURATED]
    assert [span.label for span in full] == ["saturated (no spare capacity)"]
    (counts,) = [section.parts[0] for section in report_comparison([result, RESULT])]
    assert counts.rows[0][-3:-1] == (4, 1)


def test_the_evidence_stands_beside_it() -> None:
    seen = {"in_flight_p50": 28.0, "window_in_flight_p50": 4.0, "io_time_p50_ms": 64.0, "window_io_time_p50_ms": 8.0}
    result = steady(95.0, **seen, evidence_missing=None)
    summary = words_of(*summary_of(result))
    assert "I/Os in flight 28 in the median, 4 over the window" in summary
    assert "time of an I/O 64 ms in the median, 8 ms over the window" in summary
    table = next(table for table in tables(result) if table.title.endswith("and their I/Os"))
    assert table.rows == [(START, "yes", 28.0, 4.0, 64.0, 8.0)]
    without = steady(95.0)
    assert not [table for table in tables(without) if table.title.endswith("and their I/Os")]
    assert "There is no other evidence: no histogram of disk I/Os in flight or of I/O times is stored" in everything(
        without
    )


def test_samples_that_are_too_long_say_nothing_of_saturation() -> None:
    result = replace(RESULT, plateaus=None)
    assert not [card for card in cards(result) if "saturated" in card.label]
    assert "Samples are too long to tell whether FSU was steady" in everything(result)
    assert "None found" not in everything(result)


# Days.


def test_means_are_reported_of_complete_days_and_the_others_are_listed() -> None:
    first = RESULT.daily[0].date
    daily = [
        DailyVolume(first + timedelta(days=n), 10**12, 10**11, pct, pct >= 95) for n, pct in enumerate((100, 99, 3.5))
    ]
    result = replace(RESULT, daily=daily, daily_summary=DailySummary(2, 1, 1e12, 1e11, 1e12, 1e11))
    table = next(table for table in tables(result) if table.title.startswith("Daily volume"))
    assert [row[-1] for row in table.rows] == [100, 99, 3.5]
    assert table.note.startswith("Per UTC day over 2 complete days: mean read 1 TB, written 100 GB;")
    assert table.note.endswith("1 day with less than 95 % of the samples is left out.")
    none = replace(result, daily=daily[2:], daily_summary=DailySummary(0, 1, None, None, None, None))
    note = next(table for table in tables(none) if table.title.startswith("Daily volume")).note
    assert note == "1 day with less than 95 % of the samples: no complete UTC day, so there is no mean or median."
    (figure,) = [p for s in report_sections(result) for p in s.parts if isinstance(p, f.Figure) and p.name == "daily"]
    (bars, _) = figure.panels[0].marks
    assert bars.names[1:] == (f"{first + timedelta(days=1)}", f"{first + timedelta(days=2)}, 4 % of it")


@settings(derandomize=True, max_examples=100, deadline=None)
@given(complete=st.one_of(st.sampled_from([0.0, 99.94, 99.96, 99.997, 99.99999, 100.0]), st.floats(0, 100)))
def test_data_are_called_complete_only_beside_a_card_of_100(complete: float) -> None:
    sound = replace(
        RESULT.coverage, complete_pct=complete, missing_targets=[], targets_without_sizes=[], missed_samples=0,
        resets=0, ios_outside_bins=0,
    )  # fmt: skip
    result = replace(RESULT, coverage=sound)
    (card,) = [card for card in cards(result) if card.label == "of the data are there"]
    (said,) = [words for words in summary_of(result) if str(words).startswith("The data are")]
    assert ("complete: all" in str(said)) == (card.value == "100.0 %")
    assert card.value in str(said) or card.value == "100.0 %"
