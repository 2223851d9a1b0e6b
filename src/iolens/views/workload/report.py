"""The workload in the report: figures and tables by section; a figure that has nothing to show is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.render.section import Fact, Facts, Part, ReportSection
from iolens.views.render.tables import show_percent
from iolens.views.workload import tables as view
from iolens.views.workload.figures import figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.workload.analysis import Workload


REPORT_ORDER: Final = 35


def report_summary(result: Workload) -> list[Part]:
    """The mix, how bursty it is and how much of the time it rests."""
    reported = view.verdict(result)
    facts = _facts(result)
    return [*([reported] if reported else []), *([Facts(facts)] if facts else [])]


def report_sections(result: Workload) -> list[ReportSection]:
    """All sections of one file system."""
    described = {name: describe() for name, describe in figures(result).items()}
    drawn = {name: figure for name, figure in described.items() if any(panel.marks for panel in figure.panels)}

    def parts(names: Sequence[str], *others: Part) -> tuple[Part, ...]:
        return (*(drawn[name] for name in names if name in drawn), *others)

    sections = [
        ReportSection(
            "Bandwidth", parts(("bandwidth", "percentiles", "peak-vs-sum"), *_tables(result, "targets", "peaks"))
        ),
        ReportSection("Reads and writes", parts(("mix",), *_tables(result, "mix"))),
        ReportSection("Heavy tails", parts(_MODELS, *([view.models(result)] if result.models else ()))),
        ReportSection("Request sizes", parts(_SIZES, *_tables(result, "sizes", "size_peaks")) if result.sizes else ()),
        ReportSection("The week and the day", parts(("rhythm-week", "rhythm-day"))),
        ReportSection(
            "Throughput and idle periods", parts(("throughput-cdf",), *_tables(result, "throughput", "idle_periods"))
        ),
        ReportSection("What the workload rests on", (*_tables(result, "maintenance"), view.coverage(result))),
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


def _facts(result: Workload) -> tuple[Fact, ...]:
    whole, throughput = result.aggregate, result.throughput
    shown: list[Fact] = []
    if whole is not None and whole.write_bytes_pct is not None:
        shown.append(Fact(f"{show_percent(whole.write_bytes_pct)} %", "of the bytes are written"))
    if throughput is not None and throughput.below_third_of_peak_pct is not None:
        below = f"of the time below a third of {view.peak_named(throughput)}"
        shown.append(Fact(f"{show_percent(throughput.below_third_of_peak_pct)} %", below))
    if throughput is not None:
        shown.append(Fact(f"{show_percent(throughput.idle_pct)} %", "of the minutes are idle"))
    return tuple(shown)
