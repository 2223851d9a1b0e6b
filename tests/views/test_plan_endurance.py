"""An endurance plan for people."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.plans.cases import value
from iolens.plans.endurance import EndurancePlan, plan_endurance
from iolens.units import format_bytes_si
from iolens.views.plan_endurance import verdict
from iolens.views.render import figures as f
from iolens.views.render import tables as t
from iolens.views.render.formats import draw_figures, figures_of, tables_of
from tests.plans.test_endurance import HIGH, LOW, case, measured


def test_published_numbers_are_printed_with_the_verdict() -> None:
    text = t.to_terminal(tables_of(plan_endurance([LOW, HIGH])), 140)
    assert "0.232" in text
    assert "0.38" in text
    assert "Drives of 1 DWPD suffice for every case by either count: the published equation needs at most 0.38" in text
    assert "25.0" in text
    assert "not measured: assumed to be 1" in text


def test_a_verdict_does_not_say_three_beside_a_strict_row_of_ten() -> None:
    """A new system an eighth as large: 3 · 0.13 · 8 = 3.1 in host writes; the equation asks for 1.3."""
    plan = plan_endurance([case(fswpd=0.13)], capacity_ratio=value("capacity_ratio", 8.0, "test"))
    assert (plan.cases[0].class_dwpd, plan.cases[0].strict_class_dwpd) == (3, 10)
    assert verdict(plan).startswith("Drives of 10 DWPD suffice for every case by either count")
    assert "needs at most 1.25 DWPD (class 3), host writes strictly counted at most 3.12." in verdict(plan)


def test_a_need_just_above_a_class_is_not_rounded_down_to_it() -> None:
    plan = plan_endurance([case(data=1, parity=0, waf=1.0, ssi=1.0, fswpd=3.0001)])
    assert "at most 3.0001 DWPD" in verdict(plan)
    assert plan.verdict.class_dwpd == 10


AMOUNT = r"([0-9.e+-]+)"
SUFFICES = re.compile(
    rf"Drives of {AMOUNT} DWPD suffice for every case by either count: the published equation needs at most {AMOUNT} "
    rf"DWPD(?: \(class {AMOUNT}\))?, host writes strictly counted at most {AMOUNT}(?: \(class {AMOUNT}\))?\.(.*)"
)
NONE = re.compile(
    rf"No class on offer suffices for (.*?): the published equation needs at most {AMOUNT} DWPD, host writes strictly "
    rf"counted at most {AMOUNT}\.(?: Drives of {AMOUNT} DWPD suffice for (.*?)\.(?= |$))?(.*)"
)
factor = st.floats(0.3, 9.0)
ranged = factor | st.tuples(factor, factor).map(lambda ends: (min(ends), max(ends)))


@st.composite
def plans(draw: st.DrawFn) -> EndurancePlan:
    cases = [
        case(draw(st.integers(1, 12)), draw(st.integers(0, 4)), ssi=draw(ranged), fswpd=draw(ranged | st.just(0.0)),
             waf=draw(ranged), rmw=draw(ranged))
        for _ in range(draw(st.integers(1, 3)))
    ]  # fmt: skip
    return plan_endurance(
        cases,
        capacity_ratio=value("capacity_ratio", draw(st.floats(0.05, 20.0)), "test"),
        classes=draw(st.sampled_from([(0.3, 1.0, 3.0, 10.0), (1.0, 30.0, 1000.0), (0.1,), (1e9,)])),
        reference_drive=value("reference_drive_bytes", 4e12, "test"),
        drive_sizes=draw(st.sampled_from([(), (1 * 10**12, 16 * 10**12)])),
    )


@given(plans())
@settings(derandomize=True, max_examples=250, deadline=None)
def test_every_number_of_the_verdict_is_that_of_the_rows(plan: EndurancePlan) -> None:
    """The sentence against the tables as they are shown: cases, classes, and drives of another size."""
    shown = {table.title.partition(":")[0]: table for table in tables_of(plan)}
    cases = [dict(zip([column.name for column in shown["Drive writes per day"].columns], row, strict=True))
             for row in shown["Drive writes per day"].rows]  # fmt: skip
    names = [item.name for item in plan.cases]
    assert len(set(names)) == len(names)
    sentence = verdict(plan)
    published = max(
        max(item["high_dwpd"], case.ci95[1] if case.ci95 else 0) for item, case in zip(cases, plan.cases, strict=True)
    )
    strict = max(
        max(item["strict_host_high_dwpd"], case.strict_host_ci95[1] if case.strict_host_ci95 else 0)
        for item, case in zip(cases, plan.cases, strict=True)
    )
    if result := SUFFICES.fullmatch(sentence):
        rating, by_equation, its_class, by_host, host_class, rest = result.groups()
        for row in shown["Classes of drives"].rows:
            line = dict(zip([column.name for column in shown["Classes of drives"].columns], row, strict=True))
            if line["class_dwpd"] >= float(rating):
                assert (line["suffices"], line["strict_suffices"]) == ("yes", "yes")
        assert float(its_class or rating) == max(item["class_dwpd"] for item in cases)
        assert float(host_class or rating) == max(item["strict_class_dwpd"] for item in cases)
        assert max(float(by_equation), float(by_host)) <= float(rating)
        assert float(rating) == max(item["needed_class_dwpd"] for item in cases)
    else:
        result = NONE.fullmatch(sentence)
        assert result is not None, sentence
        without, by_equation, by_host, rating, others, rest = result.groups()
        missing = [name for name, item in zip(names, cases, strict=True) if item["needed_class_dwpd"] is None]
        assert without == "; ".join(missing)
        assert (others or "") == "; ".join(name for name in names if name not in missing)
        if others:
            assert float(rating) == max(item["needed_class_dwpd"] or 0 for item in cases)
    assert float(by_equation) == pytest.approx(published, rel=0.005)
    assert float(by_host) == pytest.approx(strict, rel=0.005)
    _check_exceptions(plan, shown, rest)


def _check_exceptions(plan: EndurancePlan, shown: dict[str, t.TableView], rest: str) -> None:
    table = shown.get("Drives of another size (Eq. 4)")
    limit = plan.verdict.class_dwpd
    wanted = []
    for row in table.rows if table is not None else ():
        line = dict(zip([column.name for column in table.columns], row, strict=True))
        classes = [line["class_dwpd"], line["strict_class_dwpd"]]
        if None in classes or (limit is not None and max(classes) > limit):
            wanted.append(f"drives of {format_bytes_si(line['drive_bytes'])} ({line['case']})")
    assert rest.strip() == (f"Not for {'; '.join(wanted)}." if wanted else "")


def test_days_and_larger_drives_have_tables_where_they_are_known() -> None:
    titles = [table.title for table in tables_of(measured())]
    assert "File-system writes per day" in titles
    drive = value("reference_drive_bytes", 1.6e12, "test")
    more = plan_endurance([LOW], reference_drive=drive, drive_sizes=[3_200_000_000_000])
    assert "Drives of another size (Eq. 4)" in [table.title for table in tables_of(more)]


def test_figure_3_shows_every_day() -> None:
    figure = figures_of(measured())["fswpd"]()
    (bars,) = [mark for mark in figure.panels[0].marks if isinstance(mark, f.Bars)]
    assert bars.heights.sum() == 200
    assert figure.panels[0].y.scale == "log"


@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
def test_figures_are_drawn(tmp_path: Path, suffix: str) -> None:
    drawn = draw_figures(measured(), [f"fswpd={tmp_path}/a.{suffix}", f"dwpd={tmp_path}/b.{suffix}"])
    assert all(path.stat().st_size > 5000 for path in drawn)
    assert list(figures_of(plan_endurance([LOW]))) == ["dwpd"]


def test_csv_has_numbers_under_the_keys() -> None:
    lines = t.to_csv(tables_of(plan_endurance([LOW]))[0]).splitlines()
    assert lines[0].startswith("ssi,fswpd,data,parity,waf,dwpd,")
    assert lines[1].startswith("3.0,0.024,10,2,2.68,0.2315")
