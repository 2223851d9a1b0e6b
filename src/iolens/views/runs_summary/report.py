"""The page of one run in HTML, in the style of the report: facts, words, tables and figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iolens.units import format_bytes_si
from iolens.views.render import tables as t
from iolens.views.render.section import Fact, Facts, Part, ReportSection
from iolens.views.render.shown_times import time_with_zone
from iolens.views.runs_summary import figures
from iolens.views.runs_summary.words import INTERFACES, gain_words, not_evaluated_words, size_names, strategy_words

if TYPE_CHECKING:
    from iolens.analyses.runs.summary import Finding, RunSummary
    from iolens.views.render.tables import TableView


def title(run: RunSummary) -> str:
    """Of the page."""
    name = run.executable or "run"
    return f"I/O of {name}, job {run.jobid}" if run.jobid else f"I/O of {name}"


def page_facts(run: RunSummary) -> list[tuple[str, str]]:
    """What stands below the title."""
    known = {
        "User": run.user,
        "Project": run.project,
        "Start": None if run.start is None else time_with_zone(run.start),
        "Run time": None if run.runtime_s is None else t.show_seconds(run.runtime_s),
        "Processes": None if run.nprocs is None else f"{run.nprocs:,}",
        "Nodes": "not known" if run.nodes is None else f"{run.nodes:,}",
        "Command": run.command,
        "Log": run.log,
    }
    return [(name, value) for name, value in known.items() if value]


def report_sections(run: RunSummary) -> list[ReportSection]:
    """The whole page but for the activity over time, which is a result of its own."""
    return [
        ReportSection("At a glance", (_facts(run), f"Strategy: {strategy_words(run)}.")),
        ReportSection("What to change", tuple(_advice(run))),
        ReportSection("Through what", (_modules(run), *_interfaces(run))),
        ReportSection("Accesses", tuple(_accesses(run))),
        ReportSection("Files with most I/O time", (_files(run),)),
    ]


def _facts(run: RunSummary) -> Facts:
    def shown(value: float | None, form: str, unit: str) -> str:
        return t.MISSING if value is None else f"{value:{form}} {unit}"

    moved = [t.MISSING if count is None else format_bytes_si(count) for count in (run.read_bytes, run.write_bytes)]
    per_node = "MiB/s per node" if run.mib_per_s_per_node is not None else "MiB/s, all nodes together"
    rate = run.mib_per_s_per_node if run.mib_per_s_per_node is not None else run.mib_per_s
    return Facts(
        (
            Fact(shown(rate, ",.1f", "").strip(), per_node, "bytes ÷ I/O time of the slowest rank"),
            Fact(shown(run.io_time_pct, ".1f", "%"), "of all processes' time in I/O"),
            Fact(shown(run.metadata_time_pct, ".1f", "%"), "of the I/O time in metadata operations"),
            Fact(moved[0], "read"),
            Fact(moved[1], "written"),
            Fact(shown(run.sequential_pct, ".1f", "%"), "of the accesses sequential"),
            Fact(shown(run.aligned_pct, ".1f", "%"), "of the accesses aligned to blocks"),
        )
    )


def _advice(run: RunSummary) -> Iterator[Part]:
    if not run.findings:
        yield "Nothing found that needs attention."
    else:
        yield findings_table("Findings, the worst first", run.findings)
    yield from (f"{words}." for words in not_evaluated_words(run.not_evaluated))


def findings_table(heading: str, findings: Sequence[Finding]) -> TableView:
    """What was noticed, and what to do."""
    columns = (
        t.text("code", "Finding"), t.text("severity", "Severity"), t.text("message", "What was seen"),
        t.text("remedy", "What to do"), t.text("gain", "Gain"),
    )  # fmt: skip
    rows = [
        t.row_of(item, columns, {"gain": gain_words(item.estimated_gain, item.gain_from) or None}) for item in findings
    ]
    return t.TableView(heading, columns, rows)


def _modules(run: RunSummary) -> TableView:
    columns = (
        t.text("module", "Module"), t.volume("read_bytes", "Read"), t.volume("write_bytes", "Written"),
        t.count("files", "Files"), t.number("agg_perf_by_slowest_mib_per_s", "Rate by Darshan", "MiB/s", ",.1f"),
    )  # fmt: skip
    rows = [t.row_of(totals, columns, {"module": name}) for name, totals in run.modules.items()]
    return t.TableView("By module", columns, rows)


def _interfaces(run: RunSummary) -> Iterator[Part]:
    columns = (
        t.text("interface", "Interface"), t.count("files", "Files"), t.volume("read_bytes", "Read"),
        t.volume("write_bytes", "Written"),
    )  # fmt: skip
    rows = [t.row_of(totals, columns, {"interface": INTERFACES[name]}) for name, totals in run.interfaces.items()]
    yield t.TableView("Each file by the highest interface that opened it", columns, rows)
    kinds = (t.text("kind", "Files of"), t.count("files", "Files"), t.volume("moved_bytes", "Read and written"))
    lines: list[t.Row] = [
        (words, getattr(run.file_kinds, name), getattr(run.file_kind_bytes, name))
        for name, words in (("unique", "one rank"), ("shared", "all ranks"), ("partially_shared", "some ranks"))
    ]
    yield t.TableView("By who shares them", kinds, lines)


def _accesses(run: RunSummary) -> Iterator[Part]:
    if run.access_sizes is None:
        yield "The log has no POSIX module: sizes of accesses are not known."
        return
    yield figures.sizes(run)
    columns = (t.text("size", "Up to"), t.count("reads", "Reads"), t.count("writes", "Writes"))
    rows: list[t.Row] = [*zip(size_names(run), run.access_sizes.read, run.access_sizes.write, strict=True)]
    yield t.TableView("POSIX accesses by size", columns, rows)


def _files(run: RunSummary) -> TableView:
    columns = (
        t.text("path", "File"), t.text("interface", "Interface"), t.count("ranks", "Ranks"),
        t.volume("read_bytes", "Read"), t.volume("write_bytes", "Written"), t.count("opens", "Opens"),
        t.number("io_s", "I/O time of all ranks", "s", ",.3g"), t.count("stripe_count", "Stripes"),
    )  # fmt: skip
    rows = [t.row_of(file, columns, {"interface": INTERFACES[file.interface]}) for file in run.top_files]
    return t.TableView("Files", columns, rows)
