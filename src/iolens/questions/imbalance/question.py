"""How unevenly the targets of a file system are loaded, and which of them are slower than their class."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from iolens.question import EVERYBODY, RATE, SWITCH, TIMES, Option, number, question, several

if TYPE_CHECKING:
    from iolens.analyses.imbalance.analysis import Imbalance
    from iolens.questions.asking import Ask


@question(
    "imbalance", "How unevenly targets are loaded, for how long, and which",
    Option(
        "percentiles", "Thresholds as percentiles of the standard deviation [80,95]", several(number()),
        metavar="NUMBERS",
    ),
    Option(
        "thresholds", "Thresholds as values, such as 112MB/s, instead of or in addition to percentiles", several(RATE),
        flag="--threshold", metavar="RATES",
    ),
    Option("without_background", "Leave out background I/O (scrub, rebuild) if it is counted separately", SWITCH),
    Option("at", "Times to show in the snapshot [the worst of two days]", TIMES, metavar="TIMES"),
    rights=EVERYBODY,
    examples=(
        "--filesystem scratch --from 2012-01-01 --to 2012-04-01",
        "-f scratch --threshold 112MB/s,1246MB/s --format json",
        "-f scratch --at 2012-01-09T14:00,2012-02-02T03:30 --figure snapshot.png --figure lifetimes=l.svg",
    ),
)  # fmt: skip
def imbalance(
    ask: Ask,
    percentiles: tuple[float, ...] | None,
    thresholds: tuple[float, ...] | None,
    without_background: bool,
    at: tuple[datetime, ...] | None,
) -> Imbalance:
    """How unevenly targets are loaded: standard deviation between them, how long imbalance lasts, who stands out.

    A tick is unbalanced if the standard deviation of the targets' bytes per second reaches a threshold. Targets that
    move nothing while their peers do, or far more or less than their peers, are named; and those that need longer for
    an I/O than their class (`iolens calibrate drift`).
    """
    from iolens.api.calibration_estimate import with_slow_targets

    chosen: dict[str, Any] = {} if percentiles is None and thresholds is None else {"percentiles": percentiles or ()}
    result = ask.analyse(
        "imbalance", thresholds=thresholds or (), with_background=not without_background, at=at or (), **chosen
    )
    return with_slow_targets(ask.store, result)
