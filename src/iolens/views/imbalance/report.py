"""Imbalance in the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.imbalance import figures as drawn
from iolens.views.imbalance import tables as view
from iolens.views.render.section import Answer, Notice, ReportSection, Severity
from iolens.visible_text import some_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.imbalance.analysis import Imbalance

REPORT_ORDER: Final = 50
NAMED: Final = 4
QUIET: Final[tuple[tuple[str, Severity, str], ...]] = (
    ("dead", "high", "move nothing while their peers do"),
    ("silent", "warn", "moved nothing for a time while others did"),
)


def report_answers(result: Imbalance) -> list[Answer]:
    """How unevenly the targets were used, and who stood out."""
    return [Answer("targets", (view.verdict(result),))]


def report_notices(result: Imbalance) -> list[Notice]:
    """Targets that moved nothing while others did."""
    notices = []
    for finding, severity, words in QUIET:
        names = [line.target for line in result.peers if line.finding == finding]
        if names:
            verb = words if len(names) > 1 else words.replace("move ", "moves ").replace("their", "its")
            notices.append(
                Notice(severity, "targets", f"{some_names(names, NAMED)} {verb}.",
                       "Check the state of those targets on their servers.", ("imbalance",))
            )  # fmt: skip
    return notices


def report_sections(result: Imbalance) -> list[ReportSection]:
    """Figures and tables of one file system."""
    spread = (
        view.thresholds(result),
        drawn.snapshot(result),
        drawn.extremes(result),
        view.extremes(result),
        drawn.std_cdf(result),
        drawn.dispersion(result),
        drawn.lifetimes(result),
        drawn.distances(result),
    )
    between = [view.servers(result)] if result.between_servers is not None else []
    targets = (drawn.hot_targets(result), view.hot_targets(result), view.peers(result))
    rest = [*between, *([view.background(result)] if result.background is not None else [])]
    return [
        ReportSection("Load imbalance", spread, "targets"),
        ReportSection("Targets against their peers", (*targets, *rest), "targets"),
        ReportSection("What imbalance rests on", (view.coverage(result),), "appendix"),
    ]


def report_methods(results: Sequence[Imbalance]) -> list[ReportSection]:
    """What the words mean."""
    words = (
        "A target's load is what it reads and writes per second, with scrubbing and rebuilding where reported. A"
        " tick is unbalanced where the standard deviation of the loads (with n − 1, over the targets that report)"
        " reaches a threshold, by default its own 80th or 95th percentile over the window. A lifetime is a run of"
        " unbalanced ticks, a distance the time from the end of one to the start of the next; missing ticks end both.",
        "A target is hot in an unbalanced tick where it is the most loaded, or more than two standard deviations above"
        " the mean. It is called dead or silent where it moved nothing for ten minutes and more while at least half of"
        " the others moved data, and five times as long as the others ever did; far above or below its peers where its"
        " share of the load has a robust z-score beyond 3.5.",
        "The load of a server is the sum of its targets', in ticks in which all of them report. With servers in the"
        " place of targets, the same is said of them.",
    )
    return [ReportSection("Load imbalance", words)] if results else []
