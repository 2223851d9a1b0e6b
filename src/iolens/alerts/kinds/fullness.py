"""A file system that is nearly full: its bytes, its inodes, or its fullest target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolens.alerts.rule import (
    AlertRule,
    Answers,
    CheckedWindow,
    Condition,
    EvidenceQuestion,
    KindOption,
    RuleKind,
    unknown,
)
from iolens.units import DAY_S

if TYPE_CHECKING:
    from iolens.analyses.capacity.analysis import Capacity

BYTES, INODES, TARGET = "bytes", "inodes", "fullest target"
SUBJECTS: Final = (BYTES, INODES, TARGET)


def questions(rule: AlertRule) -> Sequence[EvidenceQuestion]:
    """The last readings of capacity."""
    return (EvidenceQuestion("capacity", rule.window_s),)


def conditions(rule: AlertRule, answers: Answers, window: CheckedWindow) -> Iterator[Condition]:
    """What is known of bytes, inodes and the fullest target."""
    result: Capacity = answers["capacity"]
    known = {subject: pair for subject, pair in _shares(result).items() if subject in rule.words("of")}
    if not known:
        yield unknown(f"No reading of the capacity of {window.filesystem} in the window.")
    for subject, (share, what) in known.items():
        why = f"{what} {rule.text(share)} full; the threshold is {rule.text(rule.threshold)}."
        yield Condition(subject, rule.level(share), why, share)


def _shares(result: Capacity) -> dict[str, tuple[float, str]]:
    """How full, and of what, by subject."""
    shares: dict[str, tuple[float, str]] = {}
    if result.fullness_pct is not None:
        shares[BYTES] = result.fullness_pct, f"{result.filesystem} is"
    if result.inodes is not None and result.inodes.fullness_pct is not None:
        shares[INODES] = result.inodes.fullness_pct, f"The inodes of {result.filesystem} are"
    if result.fullness is not None:
        shares[TARGET] = result.fullness.max_pct, f"{result.fullness.fullest}, the fullest target, is"
    return shares


KIND = RuleKind(
    summary="a file system or one of its targets is nearly full",
    measure="bytes or inodes in use",
    unit="%",
    threshold=90.0,
    clear=88.0,
    window_s=float(DAY_S),
    questions=questions,
    conditions=conditions,
    verb=("capacity",),
    page="contents",
    options={"of": KindOption(SUBJECTS, "words", SUBJECTS)},
)
