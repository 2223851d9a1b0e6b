"""How full a file system is, and when it will be too full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iolens.question import EVERYBODY, Option, choice, number, question

if TYPE_CHECKING:
    from iolens.analyses.capacity.analysis import Capacity
    from iolens.questions.asking import Ask


@question(
    "capacity", "How full a file system is and when it will be too full",
    Option(
        "threshold_pct", "Fullness in per cent whose date is projected", number(0, 100, above=True), 90.0,
        flag="--threshold", metavar="PERCENT",
    ),
    Option("method", "Projection used for the headline; both are shown", choice("linear", "theil-sen"), "linear"),
    rights=EVERYBODY,
    examples=(
        "--filesystem scratch",
        "-f scratch --threshold 80 --method theil-sen --format json",
        "-f scratch --figure usage.png --figure targets=osts.svg",
    ),
)  # fmt: skip
def capacity(ask: Ask, **options: Any) -> Capacity:
    """Usage over time, its projection to a threshold, and purges and surges with their dates.

    Usage is the sum over all targets, at times when all of them answered. Two lines are fitted: least squares, and
    Theil–Sen, on which sudden changes have little effect.
    """
    return ask.analyse("capacity", **options)
