"""How much endurance the drives of the next system need (paper P, Eqs. 2–4; SPEC P3, DEFINITIONS "Endurance").

`paper`: DWPD = SSI · FSWPD · (D + P)/D · WAF. Strictly, parity cancels against raw capacity and a rating is in host
writes: `strict_host` = SSI · FSWPD · (C_ref/C_new) · RMW, and `strict_nand` = that · WAF.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.demand import DailyWrites, SystemCapacity, SystemUsage
from iolens.analyses.drives.readings import DriveReadings
from iolens.analyses.intervals.buckets import COMPLETE_PCT
from iolens.errors import NotKnownError, UsageError
from iolens.models.resampling import SEED, interval95, mean_interval
from iolens.plans.cases import (
    ClassVerdict,
    EnduranceCase,
    FileSystemWrites,
    Input,
    Interval,
    LargerDrive,
    WriteAmplification,
    drive_bytes,
    number,
    parse_input,
    value,
    whole_number,
    worst,
)
from iolens.plans.metadata import StripeLayout, layout, parse_layout
from iolens.plans.plausibility import PlanWarning, endurance_warnings
from iolens.units import format_bytes_si

EQUATIONS: Final = (
    "DWPD = SSI · FSWPD · (D + P)/D · WAF",
    "strict_host = SSI · FSWPD · (C_ref/C_new) · RMW",
    "strict_nand = strict_host · WAF",
)
CLASSES_DWPD: Final = (0.3, 1.0, 3.0, 10.0)
WARRANTY_YEARS: Final = 5.0
EQUAL_CAPACITY: Final = value("capacity_ratio", 1.0, "assumed: the new file system is as large as the old")
MAY_BE_ZERO: Final = ("fswpd",)  # a file system may be read only
NO_READ_MODIFY_WRITE: Final = value("rmw", 1.0, "not measured: assumed to be 1")


Amount = TypeVar("Amount", float, NDArray[np.float64])


@dataclass(frozen=True, slots=True)
class CaseInputs:
    """What one case is computed from."""

    ssi: Input
    fswpd: Input
    layout: StripeLayout
    waf: Input
    rmw: Input = NO_READ_MODIFY_WRITE

    @property
    def factors(self) -> tuple[Input, ...]:
        """All that may be uncertain."""
        return self.ssi, self.fswpd, self.waf, self.rmw


@dataclass(frozen=True, slots=True)
class Provision:
    """The same flash sold with another reserve: its rating, and what is left to use."""

    class_dwpd: float
    usable_bytes: int


TRINITY: Final = (Provision(10.0, 3_200_000_000_000), Provision(3.0, 4_000_000_000_000))


@dataclass(frozen=True, slots=True)
class EnduranceVerdict:
    """The class of drives that suffices for every case by either count, and what each count needs at most.

    `class_dwpd` is null where some case has no class on offer: `cases_without_class`. `exceptions` are drives of other
    sizes, in the table below the cases, for which that class does not suffice.
    """

    class_dwpd: float | None
    published_class_dwpd: float | None
    published_need_dwpd: float
    strict_class_dwpd: float | None
    strict_need_dwpd: float
    cases_without_class: list[str]
    exceptions: list[str]


@dataclass(frozen=True, slots=True)
class OverProvisioning:
    """What a lower rating of the same flash gives back, against the highest one."""

    class_dwpd: float
    usable_bytes: int
    reserved_pct: float
    capacity_gain_pct: float


@dataclass(frozen=True, slots=True)
class EndurancePlan:
    """Cases, the distributions behind them, and what follows for the choice of drives."""

    equations: list[str]
    filesystem: str | None
    warnings: list[PlanWarning]
    verdict: EnduranceVerdict
    cases: list[EnduranceCase]
    fswpd: FileSystemWrites
    waf: WriteAmplification
    warranty_years: float
    over_provisioning: list[OverProvisioning]
    inputs: list[Input]
    notes: list[str]


def file_system_writes(
    writes: DailyWrites, capacity: SystemCapacity, covered_pct: float = COMPLETE_PCT
) -> FileSystemWrites:
    """FSWPD over the days of which enough was reported; those below 95 % are scaled by what was covered of them."""
    kept = [day for day in writes.days if day.covered_pct >= covered_pct]
    if not kept:
        seen = f"{len(writes.days)} days, none with reports for {covered_pct:g} % of it" if writes.days else "no day"
        raise NotKnownError(
            f"{writes.filesystem}: file-system writes per day are not known ({seen}); give --fswpd, or --min-coverage"
        )
    written, covered = (np.array([getattr(day, name) for day in kept]) for name in ("write_bytes", "covered_pct"))
    is_partial = (covered > 0) & (covered < COMPLETE_PCT)
    daily = written * np.where(is_partial, 100.0 / np.maximum(covered, 1e-9), 1.0) / capacity.bytes
    return FileSystemWrites(
        mean=float(daily.mean()),
        median=float(np.median(daily)),
        p95=float(np.percentile(daily, 95.0)),
        max=float(daily.max()),
        days=int(daily.size),
        mean_ci95=mean_interval(daily),
        days_left_out=len(writes.days) - len(kept),
        left_out=[day.date for day in writes.days if day.covered_pct < covered_pct],
        days_scaled=int(is_partial.sum()),
        days_without_writes=int((daily == 0).sum()),
        first_day=kept[0].date,
        last_day=kept[-1].date,
        capacity_bytes=capacity.bytes,
        origin=replace(writes, days=kept).origin,
        capacity_origin=capacity.origin,
        daily=daily,
    )


def write_amplification(drives: DriveReadings) -> WriteAmplification:
    """WAF over the drives whose counters are known."""
    wafs = np.array(drives.wafs)
    if not wafs.size:
        raise NotKnownError(f"{drives.origin}: no drive tells both host and flash bytes; give --waf")
    return WriteAmplification(
        drives=int(wafs.size),
        drives_read_later=sum(drive.serial in drives.read_later for drive in drives.amplified),
        min=float(wafs.min()),
        median=float(np.median(wafs)),
        p95=float(np.percentile(wafs, 95.0)),
        max=float(wafs.max()),
        mean=float(wafs.mean()),
        fleet=drives.fleet_waf,
        origin=drives.origin,
    )


def plan_endurance(
    cases: Sequence[CaseInputs],
    *,
    writes: FileSystemWrites | None = None,
    waf: WriteAmplification | None = None,
    filesystem: str | None = None,
    capacity_ratio: Input = EQUAL_CAPACITY,
    classes: Sequence[float] = CLASSES_DWPD,
    warranty_years: float = WARRANTY_YEARS,
    reference_drive: Input | None = None,
    drive_sizes: Sequence[int] = (),
    provisions: Sequence[Provision] = TRINITY,
    notes: Sequence[str] = (),
    usage: SystemUsage | None = None,
    new_capacity: Input | None = None,
) -> EndurancePlan:
    """What every case needs; `drive_sizes` are compared with the `reference_drive` at the same number of drives.

    `usage` is what the reference system holds, `new_capacity` the size of the new one: inputs are held against them.
    """
    ratings = sorted(set(classes))
    if not ratings or ratings[0] <= 0 or warranty_years <= 0:
        raise UsageError("classes and the warranty must be above 0, such as --classes 0.3,1,3,10 --warranty 5")
    if drive_sizes and reference_drive is None:
        raise UsageError("larger drives are compared with one: give its size with --reference-drive")
    for case in cases:
        _check(case)
    inputs = [factor for case in cases for factor in case.factors] + [capacity_ratio]
    inputs += [reference_drive] if reference_drive is not None else []
    question = _EnduranceInputs(capacity_ratio, ratings, warranty_years, reference_drive, tuple(drive_sizes))
    answers = [question.answer(name, case) for name, case in zip(_names(cases), cases, strict=True)]
    return EndurancePlan(
        equations=list(EQUATIONS),
        filesystem=filesystem,
        warnings=endurance_warnings(answers, inputs, writes, waf, usage, new_capacity),
        verdict=_verdict_of(answers),
        cases=answers,
        fswpd=writes or FileSystemWrites(),
        waf=waf or WriteAmplification(),
        warranty_years=warranty_years,
        over_provisioning=over_provisioning(provisions),
        inputs=_distinct(inputs),
        notes=[*notes, *_notes(cases, writes, capacity_ratio)],
    )


def on_larger_drive(dwpd: float, reference_bytes: float, drive_bytes: float) -> float:
    """Eq. 4: the same writes on as many drives of another size."""
    return dwpd * reference_bytes / drive_bytes


def over_provisioning(provisions: Sequence[Provision]) -> list[OverProvisioning]:
    """Usable capacity by rating, the highest rating first."""
    ordered = sorted(provisions, key=lambda provision: -provision.class_dwpd)
    if any(provision.usable_bytes <= 0 for provision in ordered):
        raise UsageError("a drive has a usable capacity above 0")
    most = max((provision.usable_bytes for provision in ordered), default=0)
    return [
        OverProvisioning(
            provision.class_dwpd,
            provision.usable_bytes,
            100.0 * (1.0 - provision.usable_bytes / most),
            100.0 * (provision.usable_bytes / ordered[0].usable_bytes - 1.0),
        )
        for provision in ordered
    ]


@dataclass(frozen=True, slots=True)
class _Need:
    """One kind of DWPD: expected, ends, and interval."""

    expected: float
    low: float
    high: float
    ci95: Interval | None

    @property
    def worst(self) -> float:
        """What a drive must stand."""
        return worst(self.high, self.ci95)


@dataclass(frozen=True, slots=True)
class _EnduranceInputs:
    """What stays the same over all cases."""

    ratio: Input
    ratings: list[float]
    warranty_years: float
    reference_drive: Input | None
    drive_sizes: tuple[int, ...]

    def answer(self, name: str, case: CaseInputs) -> EnduranceCase:
        paper, host, nand = self._needs(case)
        return EnduranceCase(
            name=name,
            ssi=case.ssi.expected,
            fswpd=case.fswpd.expected,
            data=case.layout.data,
            parity=case.layout.parity,
            waf=case.waf.expected,
            dwpd=paper.expected,
            strict_host_dwpd=host.expected,
            strict_nand_dwpd=nand.expected,
            rmw=case.rmw.expected,
            capacity_ratio=self.ratio.expected,
            low_dwpd=paper.low,
            high_dwpd=paper.high,
            ci95=paper.ci95,
            strict_host_low_dwpd=host.low,
            strict_host_high_dwpd=host.high,
            strict_host_ci95=host.ci95,
            strict_nand_low_dwpd=nand.low,
            strict_nand_high_dwpd=nand.high,
            strict_nand_ci95=nand.ci95,
            class_dwpd=self._least_class(paper.worst),
            strict_class_dwpd=self._least_class(host.worst),
            needed_class_dwpd=self._least_class(max(paper.worst, host.worst)),
            classes=[self._verdict(rating, paper, host) for rating in self.ratings],
            larger_drives=[self._larger(size, paper, host) for size in self.drive_sizes],
        )

    def _needs(self, case: CaseInputs) -> tuple[_Need, _Need, _Need]:
        """By Eq. 2, by host writes, by flash writes."""
        factors = (*case.factors, self.ratio)
        expected, low, high = (
            _products(case.layout, *(getattr(factor, end) for factor in factors)) for end in ("expected", "low", "high")
        )
        intervals: list[Interval | None] = [None, None, None]
        if any(factor.kind != "value" for factor in factors):
            random = np.random.default_rng(SEED)
            drawn = _products(case.layout, *(factor.draws(random) for factor in factors))
            intervals = [interval95(np.asarray(values)) for values in drawn]
        paper, host, nand = (_Need(*ends) for ends in zip(expected, low, high, intervals, strict=True))
        return paper, host, nand

    def _least_class(self, needed: float) -> float | None:
        return next((rating for rating in self.ratings if rating >= needed), None)

    def _verdict(self, rating: float, paper: _Need, host: _Need) -> ClassVerdict:
        lifetimes = [
            self.warranty_years * rating / need.expected if need.expected > 0 else None for need in (paper, host)
        ]
        spare = [None if years is None else years - self.warranty_years for years in lifetimes]
        return ClassVerdict(
            class_dwpd=rating,
            suffices=rating >= paper.worst,
            strict_suffices=rating >= host.worst,
            lifetime_years=lifetimes[0],
            headroom_years=spare[0],
            strict_lifetime_years=lifetimes[1],
            strict_headroom_years=spare[1],
        )

    def _larger(self, drive_bytes: int, paper: _Need, host: _Need) -> LargerDrive:
        assert self.reference_drive is not None
        reference = self.reference_drive.expected
        return LargerDrive(
            drive_bytes=drive_bytes,
            dwpd=on_larger_drive(paper.expected, reference, drive_bytes),
            strict_host_dwpd=on_larger_drive(host.expected, reference, drive_bytes),
            class_dwpd=self._least_class(on_larger_drive(paper.worst, reference, drive_bytes)),
            strict_class_dwpd=self._least_class(on_larger_drive(host.worst, reference, drive_bytes)),
        )


def _names(cases: Sequence[CaseInputs]) -> list[str]:
    """`SSI 3, 10+2, WAF 2.68`; with FSWPD and RMW, and then a number, where two cases would be called alike."""
    short = [f"SSI {case.ssi.expected:g}, {case.layout}, WAF {case.waf.expected:.3g}" for case in cases]
    if len(set(short)) == len(short):
        return short
    long = [
        f"{name}, FSWPD {case.fswpd.expected:.3g}, RMW {case.rmw.expected:.3g}"
        for name, case in zip(short, cases, strict=True)
    ]
    if len(set(long)) == len(long):
        return long
    return [f"{name}, case {number}" for number, name in enumerate(long, 1)]


def _verdict_of(cases: Sequence[EnduranceCase]) -> EnduranceVerdict:
    sufficient = _most([case.needed_class_dwpd for case in cases])
    exceptions = [
        f"drives of {format_bytes_si(drive.drive_bytes)} ({case.name})"
        for case in cases
        for drive in case.larger_drives
        if (needed := _most([drive.class_dwpd, drive.strict_class_dwpd])) is None
        or (sufficient is not None and needed > sufficient)
    ]
    return EnduranceVerdict(
        class_dwpd=sufficient,
        published_class_dwpd=_most([case.class_dwpd for case in cases]),
        published_need_dwpd=max(case.published_need_dwpd for case in cases),
        strict_class_dwpd=_most([case.strict_class_dwpd for case in cases]),
        strict_need_dwpd=max(case.strict_need_dwpd for case in cases),
        cases_without_class=[case.name for case in cases if case.needed_class_dwpd is None],
        exceptions=exceptions,
    )


def _most(classes: Sequence[float | None]) -> float | None:
    """The largest class; None where one of them is missing."""
    known = [rating for rating in classes if rating is not None]
    return max(known) if len(known) == len(classes) else None


def _products(
    layout: StripeLayout, ssi: Amount, fswpd: Amount, waf: Amount, rmw: Amount, ratio: Amount
) -> tuple[Amount, Amount, Amount]:
    """Eq. 2, host writes and flash writes: of numbers, or of draws."""
    host = ssi * fswpd * ratio * rmw
    return ssi * fswpd * waf * layout.overhead, host, host * waf


def _check(case: CaseInputs) -> None:
    for factor in case.factors:
        least, words = (0.0, "0 or more") if factor.name in MAY_BE_ZERO else (1e-12, "above 0")
        if not (factor.low >= least and np.isfinite(factor.high)):
            raise UsageError(f"{factor.name} must be {words}, not {factor.low:g}")


def _distinct(inputs: list[Input]) -> list[Input]:
    """Each input once, in order."""
    parameters: dict[tuple[object, ...], Input] = {}
    for parameter in inputs:
        parameters.setdefault(
            (parameter.name, parameter.low, parameter.expected, parameter.high, parameter.origin), parameter
        )
    return list(parameters.values())


def _days(count: int) -> str:
    return f"{count:,} day{'s' * (count != 1)}"


def _notes(cases: Sequence[CaseInputs], writes: FileSystemWrites | None, ratio: Input) -> list[str]:
    notes = []
    if writes is not None and writes.days_left_out:
        shown = ", ".join(map(str, writes.left_out[:5])) + (", …" if writes.days_left_out > 5 else "")
        notes.append(f"{_days(writes.days_left_out)} left out because too little of them was reported: {shown}")
    if writes is not None and writes.days_scaled:
        notes.append(f"{_days(writes.days_scaled)} with less than {COMPLETE_PCT:g} % reported, scaled to a whole day")
    if writes is not None and writes.days_without_writes:
        notes.append(f"{_days(writes.days_without_writes)} with reports but not one byte written, which count as 0")
    if any(case.rmw is NO_READ_MODIFY_WRITE for case in cases):
        notes.append(
            "read-modify-write is not measured: all writes are assumed to be full stripes (--rmw, --raid-block)"
        )
    if ratio is EQUAL_CAPACITY:
        notes.append("the strict numbers assume that the new file system is as large as the old one (--new-capacity)")
    notes.append("a rating is in host writes and already assumes a WAF: compare it with the strict host number")
    return notes


# The cases of an endurance plan as people write them ------------------------------------------------------------------
# `ssi=3,data=10,parity=2`, completed by what holds for all.

KEYS: Final = ("ssi", "data", "parity", "waf", "fswpd", "rmw")
CaseWords = dict[str, tuple[str, str]]  # for each key what is asked for, and where that comes from


def cases_of(texts: Sequence[str], common: CaseWords) -> list[CaseWords]:
    """What each `--case` says, completed by the options; without one, a case for every speed and stripe."""
    cases = [{**common, **_case_words(text)} for text in texts]
    if any("," in case["ssi"][0] for case in cases):
        raise UsageError("a --case without ssi takes it from --ssi, which must then be a single value or range")
    return cases or _grid(common)


def _grid(common: CaseWords) -> list[CaseWords]:
    """A case for every speed and stripe."""
    (speeds, ssi_origin), (stripes, layout_origin) = common["ssi"], common["layout"]
    return [
        {**common, "ssi": (speed.strip(), ssi_origin), "layout": (stripe, layout_origin)}
        for speed in speeds.split(",")
        for stripe in stripes.split(",")
    ]


def _case_words(text: str) -> CaseWords:
    words: CaseWords = {}
    for part in text.split(","):
        key, equals, word = (piece.strip() for piece in part.partition("="))
        if not equals or key not in KEYS or not word or key in words:
            raise UsageError(f"--case {text!r}: write KEY=VALUE, each key once, with keys {', '.join(KEYS)}")
        words[key] = (word, "option --case")
    return words


def stripe_of(case: CaseWords) -> StripeLayout:
    """Data and parity of a case, or of the options."""
    known = [key for key in ("data", "parity") if key in case]
    if len(known) == 1:
        raise UsageError(f"--case has {known[0]} alone: data and parity belong together")
    if known:
        return layout(*(whole_number(case[key][0], key) for key in known))
    if "," in case["layout"][0]:
        raise UsageError("a --case without data and parity takes them from --layout, which must then be a single one")
    return parse_layout(case["layout"][0])


def plain_input(name: str, text: str, origin: str) -> Input:
    """A number or a range of numbers."""
    return parse_input(name, text, lambda word: number(word, name), origin)


def provisions(texts: Sequence[str]) -> list[Provision]:
    """What one drive offers at each rating, from `DWPD=SIZE`."""
    pairs = [text.partition("=") for text in texts]
    if not all(equals for _, equals, _ in pairs):
        raise UsageError("--usable: write DWPD=SIZE, such as 10=3.2TB,3=4TB")
    return [Provision(number(rating, "--usable"), drive_bytes(size, "--usable")) for rating, _, size in pairs]
