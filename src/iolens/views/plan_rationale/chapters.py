"""What to buy, in three sentences: capacity; bandwidth and operations; endurance and metadata.

Every number is that of the table below them. Where a part has no answer the sentence says so instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.models.resampling import RESAMPLES, SEED
from iolens.plans.purchase import DRIVE_CLASS, DRIVE_WRITES
from iolens.plans.rationale import NEEDED
from iolens.plans.specification import INPUT_NAMES
from iolens.units import format_bytes, format_bytes_si
from iolens.views import plan_capacity, plan_endurance, plan_metadata, plan_performance
from iolens.views.plan_inputs import shown
from iolens.views.plan_performance import measure_name
from iolens.views.plan_rationale.document import (
    BulletList,
    Caution,
    Command,
    DocumentChapter,
    Drawing,
    Equation,
    Equations,
    Part,
    RationaleDocument,
)
from iolens.views.plan_rationale.figures import figures
from iolens.views.plan_rationale.tables import (
    RANGE,
    amount,
    brief_purchase,
    evidence,
    joined,
    purchase_amount,
    requirement_name,
    right_aligned,
    span,
    specification,
)
from iolens.views.render import tables as t
from iolens.views.render.shown_times import time_with_zone
from iolens.views.render.tables import sentence
from iolens.visible_text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from iolens.analyses.growth import Growth
    from iolens.plans.capacity import CapacityPlan
    from iolens.plans.cases import Input
    from iolens.plans.endurance import EndurancePlan
    from iolens.plans.metadata import MetadataPlan
    from iolens.plans.performance import PerformancePlan
    from iolens.plans.purchase import PurchaseLine
    from iolens.plans.rationale import Rationale
    from iolens.plans.specification import Requirement
    from iolens.views.render.tables import Row, TableView


LARGEST: Final = "largest "  # how a case of the largest tick or day is called


def purchase_words(result: Rationale) -> tuple[str, str, str]:
    """The three sentences."""
    drives_and_metadata = f"{_endurance(result)}; {_metadata(result)}"
    return sentence(_capacity(result)), sentence(_performance(result)), sentence(drives_and_metadata)


def _capacity(result: Rationale) -> str:
    if result.capacity is None:
        return _without(result, "capacity", "the capacity to buy")
    usable, *raw = _lines(result, "capacity")
    case = next(case for case in result.capacity.cases if case.name == usable.case)
    return (
        f"buy {purchase_amount(result, usable)} of usable capacity{_raw(result, raw)} for {_work(case.ssi)}, with "
        f"files purged after {case.purge_days:g} day{'s' * (case.purge_days != 1)} and {case.purge_fraction:g} of the "
        "capacity freed by a purge"
    )


def _work(ssi: float) -> str:
    times = "the same work as" if ssi == 1 else f"{ssi:g} times the work of"
    return f"{times} the reference system (SSI {ssi:g})"


def _performance(result: Rationale) -> str:
    lines = _lines(result, "performance")
    if result.performance is None or not lines:
        return _without(result, "performance", "the bandwidth to buy")
    rates = [_rate(result, line) for line in lines]
    listed = ", ".join(rates[:-1]) + (" and " if len(rates) > 1 else "") + rates[-1]
    speed, *_ = lines[0].case.split(", ")
    return f"require {listed}, for {speed} and {_demand([line.case for line in lines])}"


def _rate(result: Rationale, line: PurchaseLine) -> str:
    """`35 GB/s of read bandwidth`, `1,200 metadata operations/s`."""
    shown = purchase_amount(result, line)
    if line.unit == "bytes/s":
        return f"{shown} of {measure_name(line.name)}"
    return f"{shown.removesuffix(' /s')} {measure_name(line.name)}/s"


def _demand(cases: Sequence[str]) -> str:
    """Which demand it is that is multiplied."""
    shares = dict.fromkeys(case.partition(", ")[2] for case in cases)
    measured = [
        f"the largest demand in any {share.removeprefix(LARGEST)}"
        if share.startswith(LARGEST)
        else f"the demand not exceeded in {share}"
        for share in shares
        if share != "as given"
    ]
    return " or ".join([*(["the demand that was given"] if "as given" in shares else []), *measured])


def _endurance(result: Rationale) -> str:
    if result.endurance is None:
        return _without(result, "endurance", "the endurance that drives need")
    lines = {line.name: line for line in _lines(result, "endurance")}
    need, rating = lines[DRIVE_WRITES], lines[DRIVE_CLASS]
    case = f"up to {purchase_amount(result, need)} ({need.case})"
    if rating.expected is None:
        return f"no class of drives on offer suffices for the need of {case}"
    return f"choose drives of at least {purchase_amount(result, rating)}, for a need of {case}"


def _metadata(result: Rationale) -> str:
    lines = _lines(result, "metadata")
    if result.metadata is not None and result.metadata.undecided and lines:
        ends = sorted(lines[0].others, key=lambda item: item.expected or 0.0)
        spans = " to ".join(f"{amount(lines[0].unit, end.expected or 0.0)} ({end.case})" for end in (ends[0], ends[-1]))
        return f"metadata targets need {spans}: {result.metadata.undecided}"
    if result.metadata is None or not lines or lines[0].expected is None:
        return _without(result, "metadata", "the capacity of metadata targets")
    usable, *raw = lines
    return f"metadata targets need {purchase_amount(result, usable)}{_raw(result, raw)} for {usable.case}"


def _raw(result: Rationale, lines: Sequence[PurchaseLine]) -> str:
    """` (37.2 PB raw in stripes of 8+2)`; nothing where the stripes are not known."""
    if not lines:
        return ""
    stripes = next(part for part in reversed(lines[0].case.split(", ")) if "+" in part)
    return f" ({purchase_amount(result, lines[0])} raw in stripes of {stripes})"


def _without(result: Rationale, part: str, what: str) -> str:
    """A part that was not asked for, or whose inputs are missing."""
    if any(missing.part == part for missing in result.missing):
        return f"{what} is not known because inputs are missing"
    if getattr(result, part) is None:
        return f"{what} is not part of this plan"
    return f"{what} is not known"


def _lines(result: Rationale, part: str) -> list[PurchaseLine]:
    return [line for line in result.purchase if line.part == part]


# The design rationale for people --------------------------------------------------------------------------------------
# What to buy first, then all cases, then each plan with its equation and inputs.

INTRODUCTIONS: Final = {
    "capacity": (
        "Between two purges the file system grows by what its users add. If each purge deletes all files older than "
        "the purge age and frees a known fraction of the capacity, the capacity follows from the mean daily growth."
    ),
    "endurance": (
        "Drives are rated in drive writes per day (DWPD) over their warranty. The rating counts host writes and "
        "already includes an assumed write amplification. The published equation adds parity and write amplification "
        "to what the host writes, and assumes that the new file system is as large as the old one. The strict number "
        "counts host writes only, and spreads them over the new capacity."
    ),
    "metadata": (
        "Metadata targets hold the first S0 bytes of every file (Data-on-MDT, DOM) and all inodes. A histogram gives "
        "the bin of a file but not its exact size, so every result has a lowest, an average and a highest value."
    ),
    "performance": (
        "Demand is the sum over all targets in one tick, the sampling interval. The new system is sized for a "
        "percentile of demand over all ticks; which percentile is the buyer's choice."
    ),
}
OWN_TABLE: Final = "inodes_"  # inputs that stand in a table of their own
WHAT_IF_THRESHOLDS: Final = 8


def document(result: Rationale) -> RationaleDocument:
    """What the document says: one page that stands alone, then how its numbers were found."""
    appendix: list[tuple[str, Iterator[Part]]] = []
    if result.requirements:
        appendix.append(("All requirements", _specification(result)))
    if result.capacity is not None:
        appendix.append(("Capacity", _capacity_chapter(result, result.capacity)))
    if result.endurance is not None:
        appendix.append(("Endurance", _endurance_chapter(result, result.endurance)))
    if result.metadata is not None:
        appendix.append(("Metadata", _metadata_chapter(result, result.metadata)))
    if result.performance is not None:
        appendix.append(("Performance", _performance_chapter(result, result.performance)))
    assumptions = BulletList(tuple(map(sentence, result.assumptions)))
    appendix += [
        ("Data behind this plan", _data(result)),
        ("Assumptions", iter((assumptions,))),
        ("How to reproduce this document", _again(result)),
    ]
    chapters = [
        DocumentChapter("What to buy", tuple(_what_to_buy(result))),
        *(DocumentChapter(title, tuple(parts), is_appendix=True) for title, parts in appendix),
    ]
    maker = f"iolens {result.about.version}"
    return RationaleDocument(result.about.title, result.about.author, tuple(_facts(result)), tuple(chapters), maker)


def _facts(result: Rationale) -> Iterator[tuple[str, str]]:
    if result.filesystem is not None:
        yield "Reference system", result.filesystem
    if result.about.author is not None:
        yield "Prepared by", result.about.author
    yield "Date", f"{time_with_zone(result.about.made)}, iolens {result.about.version}"
    if result.missing:
        yield "Not answered", ", ".join(missing.part for missing in result.missing)
    if result.warnings:
        yield "Warnings", f"{len(result.warnings)}, below the requirements"


# What to buy, and in which case.


def _what_to_buy(result: Rationale) -> Iterator[Part]:
    yield BulletList(purchase_words(result))
    if result.purchase:
        yield brief_purchase(result)
    for warning in result.warnings:
        yield Caution(f"{warning.part.capitalize()}: {warning.message}")
    for missing in result.missing:
        yield Caution(f"{missing.part.capitalize()} is not answered: {missing.reason}. Needed: {missing.needed}.")


def _specification(result: Rationale) -> Iterator[Part]:
    verdicts = []
    if result.endurance is not None:
        verdicts.append(plan_endurance.verdict(result.endurance))
    if result.metadata is not None:
        verdicts.append(plan_metadata.verdict(result.metadata))
    if verdicts:
        yield " ".join(verdicts)
    yield specification(result)


# The plans.


def _capacity_chapter(result: Rationale, plan: CapacityPlan) -> Iterator[Part]:
    yield INTRODUCTIONS["capacity"]
    yield _equations(result, "capacity")
    yield _inputs(plan.inputs)
    if plan.growth is not None and plan.growth.days_with_growth:
        yield _growth_in_words(plan, plan.growth)
        yield _drawing(result, "capacity", "growth")
    if result.what_if:
        yield _what_if(result)
    yield plan_capacity.purges(plan)
    if plan.courses:
        yield _drawing(result, "capacity", "purges")


def _growth_in_words(plan: CapacityPlan, growth: Growth) -> str:
    mean, median, largest = (
        format_bytes_si(amount or 0.0)
        for amount in (growth.mean_bytes_per_day, growth.median_bytes_per_day, growth.max_bytes_per_day)
    )
    sure = "" if growth.mean_ci95 is None else f" (95 % interval {span('bytes', *growth.mean_ci95)})"
    given = any(
        parameter.name == "daily_growth_bytes" and parameter.kind != "distribution" for parameter in plan.inputs
    )
    return (
        f"On {counted(growth.days_with_growth, 'day')} of growth the reference system gained {mean} a day on average"
        f"{sure}; median {median}, at most {largest} (method {growth.method})."
        + (" The plan uses the growth that was given instead." if given else "")
    )


def _what_if(result: Rationale) -> TableView:
    columns = (
        t.number("ssi", "SSI", "", "g"), t.number("purge_days", "Purge", "days", "g"),
        t.number("purge_fraction", "Purge fraction", "", "g"), t.volume("daily_growth_bytes", "Daily growth"),
        t.volume("capacity_bytes", "Capacity"), right_aligned("range", RANGE), right_aligned("ci95", "95 % interval"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            case.ssi, case.purge_days, case.purge_fraction, case.daily_growth_bytes, case.capacity_bytes,
            span("bytes", case.low_bytes, case.high_bytes), span("bytes", *(case.ci95 or (None, None))),
        )
        for case in result.what_if
    ]  # fmt: skip
    return t.TableView("What if", columns, rows)


def _endurance_chapter(result: Rationale, plan: EndurancePlan) -> Iterator[Part]:
    yield f"{INTRODUCTIONS['endurance']} {_larger_count(plan)}"
    yield _equations(result, "endurance")
    yield _inputs(plan.inputs)
    if plan.fswpd.days:
        yield _writes_in_words(plan)
        yield _drawing(result, "endurance", "fswpd")
    if plan.waf.drives:
        yield _amplification_in_words(plan)
    yield _drawing(result, "endurance", "dwpd")
    yield plan_endurance.classes(plan)
    if any(case.larger_drives for case in plan.cases):
        yield plan_endurance.larger_drives(plan)
    if plan.over_provisioning:
        yield plan_endurance.over_provisioning(plan)


def _larger_count(plan: EndurancePlan) -> str:
    """Which of the two counts asks for more here."""
    names: dict[str, list[str]] = {"strict": [], "published": [], "": []}
    for case in plan.cases:
        strict, published = case.strict_need_dwpd, case.published_need_dwpd
        names["strict" if strict > published else "published" if published > strict else ""].append(case.name)
    words = [
        (f"the {count} number is larger" if count else "both numbers are equal")
        + (" in every case" if len(cases) == len(plan.cases) else f" for {'; '.join(cases)}")
        for count, cases in names.items()
        if cases
    ]
    return f"In this plan {', '.join(words)}."


def _writes_in_words(plan: EndurancePlan) -> str:
    writes = plan.fswpd
    sure = "" if writes.mean_ci95 is None else f" (95 % interval {writes.mean_ci95[0]:.3g} … {writes.mean_ci95[1]:.3g})"
    return (
        f"Over {counted(writes.days, 'day')} the file system was overwritten {writes.mean:.3g} times a day on average"
        f"{sure}; median {writes.median:.3g}, 95 % of the days at or below {writes.p95:.3g}, at most {writes.max:.3g}. "
        f"Its capacity is {format_bytes_si(writes.capacity_bytes or 0)} ({writes.capacity_origin})."
    )


def _amplification_in_words(plan: EndurancePlan) -> str:
    waf = plan.waf
    return (
        f"Write amplification of {counted(waf.drives, 'drive')}: median {waf.median:.3g}, mean {waf.mean:.3g}, 95 % of "
        f"them at or below {waf.p95:.3g}, smallest {waf.min:.3g}, largest {waf.max:.4g}; all flash bytes ÷ all host "
        f"bytes {waf.fleet:.3g}."
    )


def _metadata_chapter(result: Rationale, plan: MetadataPlan) -> Iterator[Part]:
    yield INTRODUCTIONS["metadata"]
    yield _equations(result, "metadata")
    yield _inputs(plan.inputs)
    yield plan_metadata.thresholds(plan)
    yield _drawing(result, "metadata", "mdt")
    yield _thresholds_what_if(plan)
    yield plan_metadata.inodes(plan)
    yield _drawing(result, "metadata", "files")
    if plan.distribution is not None and plan.distribution.others:
        yield _drawing(result, "metadata", "inodes")


def _thresholds_what_if(plan: MetadataPlan) -> TableView:
    """The curve of the figure at a few thresholds."""
    columns = [
        t.size("dom_bytes", "DOM threshold"), t.percent("files_whole_pct", "Files wholly on MDTs"),
        t.size("total_min_bytes", "MDTs, lowest"), t.size("total_avg_bytes", "average"),
        t.size("total_max_bytes", "highest"), t.percent("capacity_pct", "Of the capacity"),
    ]  # fmt: skip
    if plan.prices is not None:
        columns.append(t.number("cost_avg", "Cost, average", "", ",.0f"))
    curve = [threshold for threshold in plan.curve or [] if threshold.method == plan.thresholds[0].method]
    few = curve[:: _every(curve)][:WHAT_IF_THRESHOLDS]
    return t.TableView("Other DOM thresholds", tuple(columns), t.rows_of(few, columns))


def _every(curve: Sequence[object]) -> int:
    """Powers of four, or of two where the curve is short."""
    return 2 if len(curve) > WHAT_IF_THRESHOLDS else 1


def _performance_chapter(result: Rationale, plan: PerformancePlan) -> Iterator[Part]:
    yield INTRODUCTIONS["performance"]
    yield _equations(result, "performance")
    yield _inputs(plan.inputs)
    yield plan_performance.cases(plan)
    if plan.demand:
        yield plan_performance.demand(plan)
        yield _drawing(result, "performance", "demand")
    else:
        yield _drawing(result, "performance", "required")


def _equations(result: Rationale, part: str) -> Equations:
    """Each equation once, then every case of it with its values."""
    mine = [requirement for requirement in result.requirements if requirement.part == part]
    workings: dict[str, list[str]] = {}
    for item in mine:
        workings.setdefault(item.equation, []).append(f"{_name_apart(item)}{item.case}: {item.working}")
    return Equations(tuple(Equation(symbols, tuple(lines)) for symbols, lines in workings.items()))


def _name_apart(requirement: Requirement) -> str:
    """What the equation itself does not say."""
    return f"{requirement_name(requirement)}, " if requirement.part == "performance" else ""


def _inputs(given: Sequence[Input]) -> TableView:
    """Every number that goes in, its ends where it has any, and where it comes from."""
    columns = (
        t.text("name", "Input"), right_aligned("expected", "Expected"), right_aligned("range", RANGE),
        t.text("origin", "Origin"),
    )  # fmt: skip
    order = list(dict.fromkeys(parameter.name for parameter in given))
    reported = sorted(dict.fromkeys(given), key=lambda entry: order.index(entry.name))
    rows: list[Row] = [
        (_input_name(parameter.name), _input_amount(parameter, parameter.expected), _ends(parameter), parameter.origin)
        for parameter in reported
        if not parameter.name.startswith(OWN_TABLE)
    ]
    return t.TableView("Inputs", columns, rows)


def _input_name(name: str) -> str:
    return INPUT_NAMES.get(name) or (plan_performance.measure_name(name) if name.endswith("_per_s") else name)


def _input_amount(parameter: Input, amount: float) -> str:
    return format_bytes(amount) if parameter.name == "inode_bytes" else shown(parameter.name, amount)


def _ends(parameter: Input) -> str | None:
    if parameter.low == parameter.high:
        return None
    return joined(_input_amount(parameter, parameter.low), _input_amount(parameter, parameter.high))


def _drawing(result: Rationale, part: str, name: str) -> Drawing:
    return Drawing(f"{part}-{name}", figures(result)[f"{part}-{name}"]())


# What it rests on.


def _data(result: Rationale) -> Iterator[Part]:
    if result.evidence:
        yield evidence(result)
    else:
        yield "No telemetry was read: every input was given or is a default."
    if result.notes:
        yield BulletList(tuple(map(sentence, result.notes)))


def _again(result: Rationale) -> Iterator[Part]:
    yield Command(result.about.command)
    store = f" Store: {result.about.store}." if result.about.store is not None else ""
    yield (
        f"iolens {result.about.version}; {RESAMPLES:,} resamples with seed {SEED}.{store} The same command on the same "
        "data gives the same document; SOURCE_DATE_EPOCH sets its date."
    )
    if result.missing:
        yield BulletList(tuple(sentence(f"for {missing.part}: {NEEDED[missing.part]}") for missing in result.missing))
