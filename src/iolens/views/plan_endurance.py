"""Endurance for people: what every case needs, which class of drives suffices, and what larger drives would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.units import format_bytes_si
from iolens.views.plan_inputs import inputs, interval, warned
from iolens.views.render import tables as t
from iolens.views.render.figures import FIT, FSU, READ, WRITE, Axis, Bars, Figure, Mark, Panel, Rule, side_by_side

if TYPE_CHECKING:
    from iolens.plans.endurance import EndurancePlan
    from iolens.views.render.tables import Row, TableView


DWPD_FORM: Final = ",.3g"


def tables(result: EndurancePlan) -> list[TableView]:
    """Cases first."""
    views = [cases(result), classes(result)]
    if any(case.larger_drives for case in result.cases):
        views.append(larger_drives(result))
    if result.over_provisioning:
        views.append(over_provisioning(result))
    if result.fswpd.days:
        views.append(writes(result))
    if result.waf.drives:
        views.append(amplification(result))
    return warned([*views, inputs(result.inputs)], result.warnings)


def cases(result: EndurancePlan) -> TableView:
    """What every case needs, by the published equation and strictly."""
    columns = (
        t.number("ssi", "SSI", form="g"), t.number("fswpd", "FSWPD", form=".3g"), t.count("data", "Data"),
        t.count("parity", "Parity"), t.number("waf", "WAF", form=".3g"), t.number("dwpd", "DWPD", form=DWPD_FORM),
        t.number("low_dwpd", "… low", form=DWPD_FORM), t.number("high_dwpd", "… high", form=DWPD_FORM),
        t.text("ci95", "… 95 % interval"), t.number("strict_host_dwpd", "Strict, host", form=DWPD_FORM),
        t.number("strict_host_high_dwpd", "… high", form=DWPD_FORM),
        t.number("strict_nand_dwpd", "Strict, flash", form=DWPD_FORM),
        t.number("class_dwpd", "Class, published", form="g"), t.number("strict_class_dwpd", "Class, strict", form="g"),
        t.number("needed_class_dwpd", "Class needed", form="g"),
    )  # fmt: skip
    rows: list[Row] = [
        tuple(interval(case.ci95) if column.name == "ci95" else getattr(case, column.name) for column in columns)
        for case in result.cases
    ]
    note = "\n".join([verdict(result), *map(t.sentence, result.notes)])
    return t.TableView(
        f"Drive writes per day: {result.equations[0]}",
        columns,
        rows,
        note,
        name="cases",
        keep=("dwpd", "class_dwpd", "needed_class_dwpd"),
    )


def verdict(result: EndurancePlan) -> str:
    """Which class does for every row that is shown, and which rows it does not do for."""
    answer = result.verdict
    published = f"the published equation needs at most {need(result, answer.published_need_dwpd)} DWPD"
    strict = f"host writes strictly counted at most {need(result, answer.strict_need_dwpd)}"
    if answer.class_dwpd is None:
        words = f"No class on offer suffices for {'; '.join(answer.cases_without_class)}: {published}, {strict}."
        rest = [case for case in result.cases if case.needed_class_dwpd is not None]
        if rest:
            most = max(case.needed_class_dwpd or 0.0 for case in rest)
            words += f" Drives of {most:g} DWPD suffice for {'; '.join(case.name for case in rest)}."
    else:
        words = f"Drives of {answer.class_dwpd:g} DWPD suffice for every case by either count: {published}"
        words += _class_alone(answer.published_class_dwpd, answer.class_dwpd) + f", {strict}"
        words += _class_alone(answer.strict_class_dwpd, answer.class_dwpd) + "."
    if answer.exceptions:
        words += f" Not for {'; '.join(answer.exceptions)}."
    return words


def _class_alone(alone: float | None, both: float) -> str:
    return "" if alone is None or alone == both else f" (class {alone:g})"


def need(result: EndurancePlan, amount: float) -> str:
    """Three digits, or as many as it takes to stay on the same side of every class on offer."""
    ratings = sorted({rating.class_dwpd for case in result.cases for rating in case.classes})
    for digits in range(3, 17):
        shown = f"{amount:.{digits}g}"
        if all((float(shown) <= rating) == (amount <= rating) for rating in ratings):
            return shown
    return repr(amount)


def classes(result: EndurancePlan) -> TableView:
    """How long each class lasts in each case."""
    columns = (
        t.text("case", "Case"), t.number("class_dwpd", "Class", "DWPD", "g"), t.text("suffices", "Suffices"),
        t.number("lifetime_years", "Lasts", "years", ",.1f"), t.number("headroom_years", "Headroom", "years", "+,.1f"),
        t.text("strict_suffices", "Suffices, strict"),
        t.number("strict_lifetime_years", "Lasts, strict", "years", ",.1f"),
        t.number("strict_headroom_years", "Headroom, strict", "years", "+,.1f"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            case.name, verdict.class_dwpd, _yes(verdict.suffices), verdict.lifetime_years, verdict.headroom_years,
            _yes(verdict.strict_suffices), verdict.strict_lifetime_years, verdict.strict_headroom_years,
        )
        for case in result.cases
        for verdict in case.classes
    ]  # fmt: skip
    years = f"{result.warranty_years:g} year{'s' * (result.warranty_years != 1)}"
    suffices = "A class suffices if its rating is not below the high end of the need."
    note = f"Headroom is against a warranty of {years}. {suffices}"
    return t.TableView("Classes of drives", columns, rows, note, name="classes")


def larger_drives(result: EndurancePlan) -> TableView:
    """Eq. 4."""
    columns = (
        t.text("case", "Case"), t.volume("drive_bytes", "Drive"), t.number("dwpd", "DWPD", form=DWPD_FORM),
        t.number("strict_host_dwpd", "Strict, host", form=DWPD_FORM),
        t.number("class_dwpd", "Class, published", form="g"), t.number("strict_class_dwpd", "Class, strict", form="g"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            case.name,
            larger_drive.drive_bytes,
            larger_drive.dwpd,
            larger_drive.strict_host_dwpd,
            larger_drive.class_dwpd,
            larger_drive.strict_class_dwpd,
        )
        for case in result.cases
        for larger_drive in case.larger_drives
    ]
    note = "At the same number of drives; fewer and larger drives give less bandwidth."
    return t.TableView("Drives of another size (Eq. 4)", columns, rows, note, name="larger_drives")


def over_provisioning(result: EndurancePlan) -> TableView:
    """What a lower rating gives back."""
    columns = (
        t.number("class_dwpd", "Rating", "DWPD", "g"), t.volume("usable_bytes", "Usable"),
        t.percent("reserved_pct", "Reserved"), t.percent("capacity_gain_pct", "More capacity than at the first"),
    )  # fmt: skip
    return t.TableView(
        "The same flash at other ratings",
        columns,
        t.rows_of(result.over_provisioning, columns),
        name="over_provisioning",
    )


def writes(result: EndurancePlan) -> TableView:
    """The days behind FSWPD."""
    columns = (
        t.text("origin", "Days of"), t.count("days", "Days"), t.number("mean", "Mean FSWPD", form=".3g"),
        t.text("mean_ci95", "… 95 % interval"), t.number("median", "Median", form=".3g"),
        t.number("p95", "95 % of days are at or below", form=".3g"), t.number("max", "Largest", form=".3g"),
        t.count("days_left_out", "Days left out"), t.count("days_scaled", "Days scaled"),
        t.count("days_without_writes", "Days with nothing written"),
        t.volume("capacity_bytes", "Capacity"), t.text("capacity_origin", "Capacity is of"),
    )  # fmt: skip
    own = {"mean_ci95": interval(result.fswpd.mean_ci95)}
    return t.TableView(
        "File-system writes per day", columns, [t.row_of(result.fswpd, columns, own)], sideways=True, name="writes"
    )


def amplification(result: EndurancePlan) -> TableView:
    """The drives behind WAF."""
    columns = (
        t.text("origin", "Drives of"), t.count("drives", "Drives"),
        t.count("drives_read_later", "… read after the window"), t.number("min", "Smallest WAF", form=".3g"),
        t.number("median", "Median", form=".3g"), t.number("mean", "Mean", form=".3g"),
        t.number("p95", "95 % of drives are at or below", form=".3g"), t.number("max", "Largest", form=".4g"),
        t.number("fleet", "All flash ÷ all host bytes", form=".3g"),
    )  # fmt: skip
    return t.TableView(
        "Write amplification", columns, [t.row_of(result.waf, columns)], sideways=True, name="amplification"
    )


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


# Figure 3 of paper P for any file system, and what each case needs against the classes of drives ----------------------

BINS: Final = 40


FIGURES: Final = ("fswpd", "dwpd")


def figures(result: EndurancePlan) -> dict[str, Callable[[], Figure]]:
    """What each case needs against the classes, and Fig. 3 of paper P where the days are known."""
    by_name: dict[str, Callable[[], Figure]] = {}
    if result.fswpd.daily is not None:
        by_name["fswpd"] = lambda: file_system_writes(result)
    by_name["dwpd"] = lambda: drive_writes(result)
    return by_name


def file_system_writes(result: EndurancePlan) -> Figure:
    """Days by FSWPD; on a logarithmic scale, so that single days show (Fig. 3)."""
    daily = result.fswpd.daily
    assert daily is not None
    top = float(daily.max()) or 1.0
    counts, edges = np.histogram(daily, BINS, (0.0, top))
    names = tuple(
        f"{low:.3g} to {high:.3g}: {count} days" for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    )
    marks: list[Mark] = [Bars(edges[:-1], edges[1:], counts.astype(float), f"{daily.size} days", WRITE, names)]
    mean, median = result.fswpd.mean or 0.0, result.fswpd.median or 0.0
    words = f"mean {mean:.3g}, median {median:.3g}"  # the two are often too close for a text each
    marks += [Rule(min(mean, median), "vertical", ""), Rule(max(mean, median), "vertical", words)]
    capacity = format_bytes_si(result.fswpd.capacity_bytes or 0)
    x = Axis(f"file-system writes per day (1 = {capacity})", low=0, high=top)
    y = Axis("days, log scale", "log", 0.5, 3.0 * float(counts.max()))
    ends = f"{result.fswpd.first_day} to {result.fswpd.last_day}"
    title = f"{result.filesystem}, {ends}" if result.filesystem else ends
    return Figure("fswpd", "Distribution of file-system writes per day", (Panel(title, x, y, tuple(marks)),))


def drive_writes(result: EndurancePlan) -> Figure:
    """Drive writes per day of every case by the three ways to count, with the classes on offer."""
    names = tuple(case.name for case in result.cases)
    groups = [
        ("Eq. 2", WRITE, np.array([case.dwpd for case in result.cases])),
        ("strict, host", FIT, np.array([case.strict_host_dwpd for case in result.cases])),
        ("strict, flash", READ, np.array([case.strict_nand_dwpd for case in result.cases])),
    ]
    marks: list[Mark] = list(side_by_side(groups, names))
    ratings = sorted({verdict.class_dwpd for case in result.cases for verdict in case.classes})
    marks += [Rule(rating, "horizontal", f"class {rating:g}") for rating in ratings]
    marks += [
        _interval(place, case.low_dwpd, case.high_dwpd)
        for place, case in enumerate(result.cases)
        if case.high_dwpd > case.low_dwpd
    ]
    heights = np.concatenate([values for _, _, values in groups])
    positive = heights[heights > 0]
    low = float(positive.min(initial=ratings[0])) / 3.0
    y = Axis("drive writes per day, log scale", "log", low, 2.0 * max(float(heights.max()), ratings[-1]))
    x = Axis("", low=-0.6, high=len(names) - 0.4, ticks=tuple((float(i), name) for i, name in enumerate(names)))
    title = f"{result.filesystem}: " * bool(result.filesystem) + "needed against rated endurance"
    return Figure("dwpd", "Endurance the drives need", (Panel(title, x, y, tuple(marks)),))


def _interval(place: int, low: float, high: float) -> Bars:
    """From the better to the worse end, as a thin bar in front of Eq. 2."""
    middle = place - 0.4 + 0.4 / 3
    span = np.array([max(high - low, 0.0)])
    ends = np.array([middle - 0.01]), np.array([middle + 0.01])
    return Bars(*ends, span, "Eq. 2, low to high", FSU, (f"{low:.3g} to {high:.3g}",), np.array([low]))
