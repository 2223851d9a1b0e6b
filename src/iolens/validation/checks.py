"""One number of a published study, what iolens makes of the study's own data, and whether the two agree (SPEC B11).

What counts as agreement is decided before anything is computed: a tolerance with its reason, nearly always half a unit
of the last printed digit. A known difference is explained only as long as it is the known one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal

from iolens.errors import IolensError

if TYPE_CHECKING:
    from iolens.validation.evidence import PublicData, PublicFile

Verdict = Literal["agrees", "differs, explained", "differs", "failed", "no data", "not reachable"]
AGREES: Final[Verdict] = "agrees"
EXPLAINED: Final[Verdict] = "differs, explained"
DIFFERS: Final[Verdict] = "differs"
FAILED: Final[Verdict] = "failed"  # the data are there and cannot be read
NO_DATA: Final[Verdict] = "no data"
NOT_REACHABLE: Final[Verdict] = "not reachable"
VERDICTS: Final[tuple[Verdict, ...]] = (AGREES, EXPLAINED, DIFFERS, FAILED, NO_DATA, NOT_REACHABLE)
WRONG: Final = frozenset({DIFFERS, FAILED})  # verdicts that nothing excuses

Basis = Literal["printed", "implied", "reference"]

ROUNDED: Final = "half a unit of the last printed digit"
SLACK: Final = 1e-9  # of the value: what doubles may lose on the way


@dataclass(frozen=True, slots=True)
class Published:
    """A number as the study has it: `text` as it stands there, and between which ends a recomputed one agrees.

    `basis`: `printed`, `implied` by what is printed, or a `reference`: the study has an equation or a picture, and the
    value is an independent calculation.
    """

    text: str
    value: float | None
    unit: str
    least: float
    most: float
    why: str
    basis: Basis = "printed"

    def admits(self, number: float) -> bool:
        """Whether that is the same number."""
        slack = SLACK * abs(number)
        return self.least - slack <= number <= self.most + slack


def printed(text: str, unit: str = "", *, basis: Basis = "printed") -> Published:
    """A number that agrees with anything which, rounded to its digits, is the same."""
    number = Decimal(text)
    half = Decimal(5).scaleb(int(number.as_tuple().exponent) - 1)
    return Published(text, float(number), unit, float(number - half), float(number + half), ROUNDED, basis)


def reference(text: str, unit: str = "") -> Published:
    """A number for which the study has an equation or a picture only, calculated independently."""
    return printed(text, unit, basis="reference")


def within(
    text: str, value: float, unit: str, ends: tuple[float, float], why: str, basis: Basis = "implied"
) -> Published:
    """A number with ends of its own, and why these."""
    return Published(text, value, unit, *ends, why, basis)


def exactly(text: str, value: float, unit: str, why: str, basis: Basis = "implied") -> Published:
    """A count or a fraction of whole numbers."""
    return within(text, value, unit, (value, value), why, basis)


def at_least(text: str, least: float, unit: str, why: str) -> Published:
    """Words such as "over eight million"."""
    return Published(text, None, unit, least, math.inf, why, "implied")


def at_most(text: str, most: float, unit: str, why: str) -> Published:
    """Words such as "extremely low"."""
    return Published(text, None, unit, -math.inf, most, why, "implied")


@dataclass(frozen=True, slots=True)
class Explained:
    """What comes out instead, to its digits, and why."""

    recomputed: str
    reason: str

    def covers(self, number: float) -> bool:
        """Whether the difference is the known one."""
        return printed(self.recomputed).admits(number)


@dataclass(frozen=True, slots=True)
class PublishedCheck:
    """One number of a study and how iolens comes to it; `recompute` is None where no public data lead there.

    `reason`: how it is recomputed, or what would be needed.
    """

    where: str
    quantity: str
    published: Published
    reason: str
    recompute: Callable[[PublicData], float] | None = None
    needs: tuple[PublicFile, ...] = ()
    otherwise: Explained | None = None


def out_of_reach(where: str, quantity: str, text: str, unit: str, reason: str) -> PublishedCheck:
    """A number to which no public data lead; `reason` says what would be needed."""
    try:
        value: float | None = float(text)
    except ValueError:
        value = None
    return PublishedCheck(where, quantity, Published(text, value, unit, -math.inf, math.inf, ""), reason)


@dataclass(frozen=True, slots=True)
class Study:
    """A paper: its tag in this project, what it is called, where it is, and every number of it."""

    tag: str
    title: str
    address: str
    checks: Sequence[PublishedCheck]


@dataclass(frozen=True, slots=True)
class CheckedNumber:
    """One line of the table; values in `unit`. A recomputed value from `agrees_from` to `agrees_to` agrees."""

    study: str
    where: str
    quantity: str
    unit: str
    published_text: str
    published: float | None
    basis: Basis
    recomputed: float | None
    deviation_pct: float | None
    verdict: Verdict
    reason: str
    agrees_from: float | None
    agrees_to: float | None
    tolerance_reason: str
    inputs: list[str]


def compare(study: str, check: PublishedCheck, evidence: PublicData) -> CheckedNumber:
    """Recompute one number and judge it."""
    if check.recompute is None:
        return _line(study, check, None, NOT_REACHABLE, check.reason)
    absent = [file for file in check.needs if not evidence.has(file)]
    if absent:
        words = "; ".join(f"{file.path} ({file.origin})" for file in absent)
        return _line(study, check, None, NO_DATA, f"needs {words}")
    try:
        number = check.recompute(evidence)
    except (IolensError, ArithmeticError, OSError) as error:
        return _line(study, check, None, FAILED, str(error))
    return _line(study, check, number, *_judge(check, number))


def _judge(check: PublishedCheck, number: float) -> tuple[Verdict, str]:
    if check.published.admits(number):
        return AGREES, check.reason
    known = check.otherwise
    if known is None:
        return DIFFERS, check.reason
    if known.covers(number):
        return EXPLAINED, f"{check.reason}: {known.reason}"
    return DIFFERS, f"{check.reason}; what is explained is {known.recomputed}: {known.reason}"


def _line(study: str, check: PublishedCheck, number: float | None, verdict: Verdict, reason: str) -> CheckedNumber:
    said = check.published
    return CheckedNumber(
        study=study,
        where=check.where,
        quantity=check.quantity,
        unit=said.unit,
        published_text=said.text,
        published=said.value,
        basis=said.basis,
        recomputed=number,
        deviation_pct=100.0 * (number / said.value - 1.0) if number is not None and said.value else None,
        verdict=verdict,
        reason=reason,
        agrees_from=said.least if math.isfinite(said.least) else None,
        agrees_to=said.most if math.isfinite(said.most) else None,
        tolerance_reason=said.why,
        inputs=[file.path for file in check.needs],
    )
