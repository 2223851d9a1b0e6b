"""What a file system is used for: bandwidth, mix, sizes, arrivals, idle times, rhythm and throughput."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from iolens.question import RATE, SWITCH, TOP, Option, choice, question, whole

if TYPE_CHECKING:
    from iolens.analyses.workload.analysis import Workload
    from iolens.questions.asking import Ask

SECTIONS: Final = ("bandwidth", "mix", "sizes", "arrivals", "idle", "rhythm", "throughput")
RESAMPLES: Final = 100


@question(
    "workload", "The workload: bandwidth, mix, sizes, arrivals, idle times",
    Option("sections", "Only these sections", choice(*SECTIONS), metavar="[SECTION]...", is_argument=True, many=True),
    Option(
        "peak", "Peak bandwidth, such as 35GB/s; default: configured, else the largest minute", RATE, metavar="RATE",
    ),
    Option("without_maintenance", "Leave out maintenance windows, configured or found", SWITCH),
    Option(
        "weight", "Weight of a sample in the time between requests: 1, or its number of requests",
        choice("samples", "requests"), "samples",
    ),
    Option(
        "resamples", "Number of resamples for the p-values of the tail models; 0: no p-values", whole(0, 10_000),
        RESAMPLES, flag="--bootstrap", metavar="N", most_at_url=RESAMPLES,
    ),
    replace(TOP, meaning="Number of targets in a table", default=24, metavar="N"),
    examples=(
        "--filesystem scratch --from 2026-01-05 --to 2026-02-02",
        "throughput rhythm -f scratch --timezone Europe/Berlin",
        "sizes -f scratch --format csv --output sizes.csv",
        "-f scratch --without-maintenance --format json --output scratch.json",
        "-f scratch --figure month.png --figure bandwidth-model=pareto.svg",
    ),
)  # fmt: skip
def workload(ask: Ask, sections: tuple[str, ...], weight: str, **options: Any) -> Workload:
    """What a file system is used for: how much, how large, how often, when, and how long not at all.

    SECTION is bandwidth, mix, sizes, arrivals, idle, rhythm or throughput; without any, all are shown. Bandwidth, the
    time between requests and idle times are compared with the Pareto and other distributions, and a verdict says
    which describes them best.
    """
    return ask.analyse("workload", sections=sections or SECTIONS, weight_by_requests=weight == "requests", **options)
