"""An endurance plan: what the cases do not say comes from the store, its writes per day and its drives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iolens.api.plans.making import PlanOptions
from iolens.api.plans.reference_system import ReferenceSystem
from iolens.errors import NotKnownError, UsageError
from iolens.models.dom import read_modify_write_factor
from iolens.plans.cases import Input, between, drive_bytes, number, statistic, value
from iolens.plans.endurance import (
    EQUAL_CAPACITY,
    NO_READ_MODIFY_WRITE,
    CaseInputs,
    CaseWords,
    EndurancePlan,
    cases_of,
    plain_input,
    plan_endurance,
    provisions,
    stripe_of,
)
from iolens.plans.metadata import StripeLayout
from iolens.units import format_bytes


def make(options: PlanOptions, reference_of: Callable[..., ReferenceSystem]) -> EndurancePlan:
    """The plan that the options ask for."""
    cases = cases_of(options.cases("cases"), common_words(options))
    reference = reference_of(
        capacity=options["capacity"], min_coverage=options["min_coverage"], drives_of=options["drives_of"]
    )
    return endurance_plan(cases, reference, options, _new_capacity(options), must_compare=True)


def common_words(options: PlanOptions) -> CaseWords:
    """What the options say of every case, and whether that is the user's word or a default."""
    texts = {name: options.text(name) for name in ("ssi", "waf", "fswpd", "rmw", "layout")}
    return {name: (text, options.origin(name)) for name, text in texts.items() if text is not None}


def endurance_plan(
    cases: Sequence[CaseWords],
    reference: ReferenceSystem,
    options: PlanOptions,
    new_capacity: Input | None,
    *,
    must_compare: bool,
) -> EndurancePlan:
    """The plan of these cases, with what the store knows.

    Unless capacities `must_compare`, the new one counts only where the old one is known anyway.
    """
    ratings = [number(text, "--classes") for text in options.words("classes")]
    sizes = [drive_bytes(text, "--drive-sizes") for text in options.words("drive_sizes", "B")]
    offers = provisions(options.words("usable", "B"))
    inputs = [_case_inputs(case, reference, options["raid_block"]) for case in cases]
    drive = _reference_drive(options, reference, is_needed=bool(sizes))
    ratio = None
    if new_capacity is not None and (must_compare or reference.knows_capacity()):
        ratio = _ratio(new_capacity, reference)
    return plan_endurance(
        inputs,
        writes=reference.known.get("writes"),
        waf=reference.known.get("waf"),
        filesystem=reference.known.get("filesystem"),
        classes=ratings,
        warranty_years=options["warranty"],
        reference_drive=drive,
        drive_sizes=sizes,
        provisions=offers,
        capacity_ratio=ratio or EQUAL_CAPACITY,
        usage=reference.usage(),
        new_capacity=new_capacity,
    )


def _case_inputs(case: CaseWords, reference: ReferenceSystem, raid_block: int | None) -> CaseInputs:
    stripe = stripe_of(case)
    return CaseInputs(
        ssi=plain_input("ssi", *case["ssi"]),
        fswpd=_measured("fswpd", "mean", case, lambda word: _writes(word, reference)),
        layout=stripe,
        waf=_measured("waf", "median", case, lambda word: _amplification(word, reference)),
        rmw=_read_modify_write(case, stripe, reference, raid_block),
    )


def _measured(name: str, usual: str, case: CaseWords, measured: Callable[[str], Input]) -> Input:
    """A number or range as given, or a statistic (the usual one unless another is named) of what the store knows."""
    word, origin = case.get(name, (usual, "default"))
    return measured(word) if word[:1].isalpha() else plain_input(name, word, origin)


def _writes(which: str, reference: ReferenceSystem) -> Input:
    """File-system writes per day over the days of the store."""
    writes = reference.writes()
    assert writes.daily is not None
    return statistic("fswpd", which, writes.daily.tolist(), f"{writes.origin}; capacity: {writes.capacity_origin}")


def _amplification(which: str, reference: ReferenceSystem) -> Input:
    """Write amplification over the drives of the store."""
    drives = reference.drives()
    return statistic("waf", which, drives.wafs, drives.origin, drives.host_write_bytes)


def _read_modify_write(
    case: CaseWords, stripe: StripeLayout, reference: ReferenceSystem, raid_block: int | None
) -> Input:
    if "rmw" in case:
        return plain_input("rmw", *case["rmw"])
    return NO_READ_MODIFY_WRITE if raid_block is None else _estimated_rmw(reference, stripe, raid_block)


def _estimated_rmw(reference: ReferenceSystem, stripe: StripeLayout, raid_block: int) -> Input:
    if raid_block <= 0:
        raise UsageError("--raid-block must be above 0")
    worst = read_modify_write_factor(reference.write_sizes(), stripe.data, stripe.parity, raid_block)
    assert worst is not None
    words = f"every stripe filled … no write merged: {reference.name()}, {stripe} of {format_bytes(raid_block)}"
    return between("rmw", 1.0, max(worst, 1.0), words)


def _new_capacity(options: PlanOptions) -> Input | None:
    size = options["new_capacity"]
    if size is None:
        return None
    if size <= 0:
        raise UsageError("--new-capacity must be above 0")
    return value("capacity_bytes", size, options.origin("new_capacity"))


def _ratio(new: Input, reference: ReferenceSystem) -> Input:
    old = reference.system_capacity()
    low, expected, high = (old.bytes / end for end in (new.high, new.expected, new.low))
    return Input("capacity_ratio", new.kind, low, expected, high, f"{old.origin} ÷ {new.origin}")


def _reference_drive(options: PlanOptions, reference: ReferenceSystem, *, is_needed: bool) -> Input | None:
    size = options["reference_drive"]
    if size is not None:
        if size <= 0:
            raise UsageError("--reference-drive must be above 0")
        return value("reference_drive_bytes", float(size), options.origin("reference_drive"))
    if not is_needed:
        return None
    drives = reference.drives()
    if drives.median_capacity_bytes is None:
        raise NotKnownError(f"{drives.origin}: the capacity of the drives is not known; give --reference-drive")
    return value("reference_drive_bytes", drives.median_capacity_bytes, f"median capacity, {drives.origin}")
