"""How long disk I/Os take: percentiles per target over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iolens.question import EVERYBODY, question
from iolens.questions.shared import EVERY

if TYPE_CHECKING:
    from iolens.analyses.latency.analysis import Latency
    from iolens.questions.asking import Ask


@question(
    "latency", "How long disk I/Os take: percentiles per target over time", EVERY, rights=EVERYBODY,
    examples=(
        "--filesystem scratch --from 2026-01-05 --to 2026-01-06",
        "-f scratch --every 1h --format json",
        "-f scratch --figure day.png --figure heatmap=p99.svg",
    ),
)  # fmt: skip
def latency(ask: Ask, **options: Any) -> Latency:
    """Time of disk I/Os as percentiles, reads and writes apart, and which targets are slower than their peers.

    Percentiles come from the servers' histogram of I/O times. For devices without one, the mean wait is shown.
    """
    return ask.analyse("latency", **options)
