"""What to buy, in three sentences: capacity; bandwidth and operations; endurance and metadata.

Every number is that of the table below them. Where a part has no answer the sentence says so instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.plans.purchase import DRIVE_CLASS, DRIVE_WRITES
from iolens.views.plan_performance.tables import measure_name
from iolens.views.plan_rationale.tables import amount, purchase_amount
from iolens.views.render.tables import sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.plans.purchase import PurchaseLine
    from iolens.plans.rationale import Rationale


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
