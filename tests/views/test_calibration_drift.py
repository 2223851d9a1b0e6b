"""Drift shown: slow targets first, months, the figure with bands and fullness, and the report."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

from iolens.analyses.calibration_drift import CalibrationDrift, CostChange, MonthlyCost, TargetDrift, slow_words
from iolens.analyses.calibration_estimate.part import TargetClass
from iolens.views.calibration_drift import drift, report_answers, report_notices, report_sections, tables
from iolens.views.render.figures import BandMark, LineMark

NAMES = [f"scratch-OST000{number}" for number in range(4)]
SLOW = TargetDrift(
    target=NAMES[2], target_class=None, direction="write", evidence="frontier", factor=1.8, factor_low=1.6,
    factor_high=2.0, sure_low=1.5, sure_high=2.2, days=20, ticks=900, step=date(2026, 3, 2), since=date(2026, 3, 2),
    before=1.02, differs=True, why=None,
)  # fmt: skip
SENTENCE = "scratch-OST0002 needs 1.8 times (1.6 to 2.0) as long for an I/O as its class since 2026-03-02."


def month(number: int, direction: str, **values: object) -> MonthlyCost:
    usual = MonthlyCost(
        month=date(2026, number, 1), target_class=None, direction=direction, evidence="frontier",
        latency_s=1e-3 + 1e-5 * number, latency_low_s=0.9e-3, latency_high_s=1.1e-3, s_per_byte=2e-9,
        s_per_byte_low=1.8e-9, s_per_byte_high=2.2e-9, identified=["latency", "s_per_byte"], upper_bound=False,
        one_at_a_time=False, days=30, ticks=1000, targets=3, fullness_pct=40.0 + 5 * number, note="",
    )  # fmt: skip
    return replace(usual, **values)


def drifted() -> CalibrationDrift:
    usual = replace(SLOW, factor=1.0, factor_low=0.97, factor_high=1.04, sure_low=0.9, sure_high=1.1, step=None,
                    since=None, before=None, differs=False)  # fmt: skip
    unknown = replace(usual, target=NAMES[3], factor=None, factor_low=None, factor_high=None, sure_low=None,
                      sure_high=None, days=2, why="2 of 5 days with enough ticks")  # fmt: skip
    change = CostChange(
        target_class=None, direction="write", coefficient="latency", evidence="frontier", months=4, per_year_pct=12.0,
        per_year_low_pct=4.0, per_year_high_pct=21.0, per_10_points_pct=None, per_10_points_low_pct=None,
        per_10_points_high_pct=None, note="fullness is not known",
    )  # fmt: skip
    bound = month(4, "read", identified=[], upper_bound=True)
    return CalibrationDrift(
        filesystem="scratch",
        window_start=datetime(2026, 1, 1, tzinfo=UTC),
        window_end=datetime(2026, 5, 1, tzinfo=UTC),
        days=120,
        samples=40_000,
        classes=[TargetClass(None, NAMES)],
        sentences=[f"{slow_words(SLOW)}."],
        targets=[SLOW, *(replace(usual, target=name) for name in NAMES[:2]), unknown],
        months=[*(month(number, side) for side in ("write", "read") for number in (1, 2, 3)), bound],
        changes=[change],
        notes=[],
    )


def nothing() -> CalibrationDrift:
    unknown = replace(drifted().targets[-1], why="fewer than 3 targets of the class have enough ticks of a like size")
    return replace(drifted(), sentences=[], targets=[unknown], months=[], changes=[])


def test_slow_targets_come_first_with_their_sentence() -> None:
    first, *others = tables(drifted())
    assert [row[0] for row in first.rows] == [NAMES[2]]
    assert first.note == SENTENCE
    assert [table.name for table in others] == ["changes", "months", "targets"]
    assert [row[0] for row in others[-1].rows] == [NAMES[2], NAMES[0], NAMES[1], NAMES[3]]
    assert tables(nothing())[0].note == "No target can be compared with its class: too little evidence."


def test_nobody_slow_is_said_with_how_many_are_known() -> None:
    result = replace(drifted(), sentences=[], targets=drifted().targets[1:])
    assert tables(result)[0].note == "None of the 2 targets with enough evidence (of 3) is slower than its class."


def test_the_figure_has_bands_and_fullness_and_no_bounds() -> None:
    latency, transfer, fullness = drift(drifted()).panels
    assert [mark.label for mark in latency.marks if isinstance(mark, BandMark)] == ["writes, 95 %", "reads, 95 %"]
    reads = next(mark for mark in transfer.marks if isinstance(mark, LineMark) and mark.label == "reads")
    assert [round(value, 2) for value in reads.y[:3]] == [2.1, 2.1, 2.1]
    assert str(reads.y[3]) == "nan", "an upper bound is no estimate"
    assert [list(mark.y) for mark in fullness.marks if isinstance(mark, LineMark)] == [[45.0, 50.0, 55.0, 60.0]]
    assert not drift(nothing()).has_content


def test_the_report_names_slow_targets_and_is_silent_without_evidence() -> None:
    (answer,) = report_answers(drifted())
    assert (answer.question, answer.words) == ("targets", (SENTENCE,))
    assert [notice.words for notice in report_notices(drifted())] == [SENTENCE]
    assert len(report_sections(drifted())) == 1
    assert (report_answers(nothing()), report_notices(nothing()), report_sections(nothing())) == ([], [], [])
