"""The workload in the report: figures and tables by section; a figure that has nothing to show is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.render.section import Answer, Part, ReportSection
from iolens.views.workload import tables as view
from iolens.views.workload.figures import figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.workload.analysis import Workload


REPORT_ORDER: Final = 35


def report_answers(result: Workload) -> list[Answer]:
    """The mix, how bursty it is and how much of the time it rests."""
    verdict = view.verdict(result)
    return [Answer("load", (verdict,), is_detail=True)] if verdict else []


def report_sections(result: Workload) -> list[ReportSection]:
    """All sections of one file system."""
    described = {name: describe() for name, describe in figures(result).items()}
    drawn = {name: figure for name, figure in described.items() if any(panel.marks for panel in figure.panels)}

    def parts(names: Sequence[str], *others: Part) -> tuple[Part, ...]:
        return (*(drawn[name] for name in names if name in drawn), *others)

    sections = [
        ReportSection(
            "Bandwidth",
            parts(("bandwidth", "percentiles", "peak-vs-sum"), *_tables(result, "targets", "peaks")),
            "load",
        ),
        ReportSection("Reads and writes", parts(("mix",), *_tables(result, "mix")), "load"),
        ReportSection("Heavy tails", parts(_MODELS, *([view.models(result)] if result.models else ())), "appendix"),
        ReportSection(
            "Request sizes",
            parts(_SIZES, *_tables(result, "sizes", "size_peaks", "size_bandwidth")) if result.sizes else (),
            "load",
        ),
        ReportSection("The week and the day", parts(("rhythm-week", "rhythm-day"), *_tables(result, "week")), "load"),
        ReportSection(
            "Throughput and idle periods",
            parts(("throughput-cdf",), *_tables(result, "throughput", "idle_periods")),
            "load",
        ),
        ReportSection(
            "What the workload rests on", (*_tables(result, "maintenance"), view.coverage(result)), "appendix"
        ),
    ]
    return [section for section in sections if section.parts]


def report_methods(results: Sequence[Workload]) -> list[ReportSection]:
    """What the words mean."""
    if not results:
        return []
    words = (
        "Bandwidth is that of single samples of a target; the sum of all targets is taken in ticks in which at least"
        " nine in ten of them reported. A share of writes by requests and one by bytes may differ much.",
        "Three distributions are modelled: the bandwidth of targets, the time between requests (the length of a sample"
        " divided by its requests) and idle times (samples without a request, one after the other). A Pareto"
        " distribution is fitted to all positive values by least squares, as the study did that made it known for"
        " storage; for times, which sampling rounds, also by least squares at the ends of what rounds to each value"
        " (quantised); and by maximum likelihood above the value from which on it fits best. Four rivals (exponential,"
        " Weibull, lognormal and a Pareto distribution with an end) are fitted beside it, and the verdict says which is"
        " best: a high R²"
        " alone does not make a tail a Pareto tail.",
        "A minute is idle when less than a twentieth of the peak is moved in it. A minute that was not observed is not"
        " idle, and ends a period. Bytes by weekday and hour are per observed hour in the centre's own zone.",
    )
    return [ReportSection("Workload", words)]


_MODELS: Final = ("bandwidth-model", "interarrival", "interarrival-model", "idle", "idle-model")
_SIZES: Final = ("sizes-pdf", "sizes-cdf", "size-bandwidth")


def _tables(result: Workload, *names: str) -> list[Part]:
    """Those that have a line."""
    tables = [getattr(view, name)(result) for name in names]
    return [table for table in tables if table.rows]
