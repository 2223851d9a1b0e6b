"""A job report as text of 80 columns. Names come from nodes and users: nothing in them can move the cursor."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolens.views.render.shown_times import show_time, time_with_zone, zone_name
from iolens.visible_text import shown_lines, shown_name

if TYPE_CHECKING:
    from iolens.analyses.job_report import JobFileSystem, JobReport


WIDTH: Final = 80
SHOWN_MISSING: Final = 20
OPERATIONS_PER_LINE: Final = 4


def job_report_text(report: JobReport) -> str:
    """The whole report."""
    parts = [*_head(report), *_missing(report)]
    for filesystem in report.filesystems:
        parts += ["", *_filesystem(filesystem)]
    if not report.filesystems:
        parts += ["", *_wrapped("No file system was sampled on any node at both the begin and the end.")]
    parts += [*_findings(report), *_not_evaluated(report)]
    return shown_lines("\n".join(parts)) + "\n"


def _head(report: JobReport) -> Iterator[str]:
    named = f" ({report.name})" if report.name else ""
    whose = "".join(f" {word} {value}" for word, value in (("of", report.user), ("on", report.cluster)) if value)
    yield from _wrapped(f"I/O of job {report.jobid or '(unknown)'}{named}{whose}")
    when = [show_time(report.start) if report.start else "begin not known"]
    when += [f"to {time_with_zone(report.end)}" if report.end else f"{zone_name()}, end not known"]
    duration = f", {_duration(report.duration_s)}" if report.duration_s is not None else ""
    nodes = "" if report.nodes is None else f", {report.nodes:,} node{'' if report.nodes == 1 else 's'}"
    yield from _wrapped(" ".join(when) + duration + nodes)


def _missing(report: JobReport) -> Iterator[str]:
    """What is not in the numbers stands before them."""
    for item in report.missing_nodes[:SHOWN_MISSING]:
        yield from _wrapped(f"NOT COMPLETE: {item.node}: {item.reason}")
    if len(report.missing_nodes) > SHOWN_MISSING:
        yield f"NOT COMPLETE: and {len(report.missing_nodes) - SHOWN_MISSING:,} more nodes (--format json lists all)"
    for note in report.notes:
        yield from _wrapped(f"Note: {note}")


def _filesystem(part: JobFileSystem) -> Iterator[str]:
    yield _columns(shown_name(part.filesystem), "read", "written")
    yield _columns("  GB", _giga(part.read_bytes), _giga(part.write_bytes))
    yield _columns("  MB/s", _mega(part.read_bytes_per_s), _mega(part.write_bytes_per_s))
    if part.rpc_sizes:
        reads, writes = (sum(getattr(size, name) for size in part.rpc_sizes) for name in ("reads", "writes"))
        yield _columns("  RPCs", f"{reads:,}", f"{writes:,}")
        for size in part.rpc_sizes:
            yield _columns(f"{size.size_bytes / 1024:>10,.0f} KiB", f"{size.reads:,}", f"{size.writes:,}")
        yield _columns("  of 64 KiB or less", _percent(part.small_rpc_pct.read), _percent(part.small_rpc_pct.write))
    else:
        yield "  RPCs: not known"
    if part.metadata:
        cells = [f"{name} {count:,}" for name, count in part.metadata.items()]
        yield from _wrapped("  " + ", ".join(cells), "  ")
    else:
        yield "  metadata operations: not known"


def _findings(report: JobReport) -> Iterator[str]:
    if not report.findings and report.filesystems:
        yield from ("", "Nothing found that needs attention.")
    for finding in report.findings:
        yield ""
        yield from _wrapped(
            f"{finding.severity.upper()} {finding.code} on {finding.evidence['filesystem']}: {finding.message}."
        )
        yield from _wrapped(f"  {finding.remedy}", "  ")


def _not_evaluated(report: JobReport) -> Iterator[str]:
    """One line: which rules could not judge; the reasons are in the JSON and in `iolens findings explain`."""
    codes = list(dict.fromkeys(item.code for item in report.not_evaluated))
    if codes:
        yield from ("", *_wrapped(f"Not evaluated, data missing: {', '.join(codes)} (iolens findings explain CODE)"))


def _columns(name: str, *cells: str) -> str:
    return f"{name[:36]:<36}" + "".join(f"{cell:>18}" for cell in cells)


def _wrapped(text: str, indent: str = "    ") -> Sequence[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, drop_whitespace=True, replace_whitespace=True) or [""]


def _giga(count: float | None) -> str:
    return "not known" if count is None else f"{count / 1e9:,.2f}"


def _mega(rate: float | None) -> str:
    return "not known" if rate is None else f"{rate / 1e6:,.1f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1f} %"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{seconds:.1f} s" if whole < 60 else f"{hours}:{rest // 60:02}:{rest % 60:02} h"
