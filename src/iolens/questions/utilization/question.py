"""How busy a file system is: File System Utilization (SPEC U7 to U10)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from iolens.question import EVERYBODY, RATE, Option, choice, question
from iolens.questions.shared import CALIBRATION

if TYPE_CHECKING:
    from iolens.analyses.utilization.analysis import Utilization
    from iolens.questions.asking import Ask


@question(
    "utilization", "How busy a file system is: File System Utilization",
    Option(
        "model", "I/Os by size, or counts of operations and bytes of disks; auto: sizes if there are any",
        choice("auto", "histogram", "counters"), "auto",
    ),
    CALIBRATION,
    Option("compare", "A second file system, side by side", metavar="FS"),
    Option("peak", "Peak bandwidth, such as 35GB/s; default: configured, else the largest tick", RATE, metavar="RATE"),
    rights=EVERYBODY,
    examples=(
        "--filesystem scratch --from 2012-10-22 --to 2012-10-23",
        "-f scratch --compare scratch2 --peak 35GB/s --format json",
        "-f scratch --figure day.png --figure heatmap=osts.svg",
        "-f node17 --model counters --figure util=disks.png",
    ),
)  # fmt: skip
def utilization(ask: Ask, compare: str | None, **options: Any) -> Utilization:
    """Utilization of a file system or of any disks, from counts and sizes of their I/Os.

    FSU is the share of time that the disks needed for the I/Os they did, by a calibrated transaction model. It shows
    load that bandwidth does not show: many small I/Os keep disks busy without moving much.
    """
    if compare is None:
        return ask.analyse("utilization", **options)
    first, second = ask.analyse("utilization", compare, **options)
    return replace(first, compare=second)
