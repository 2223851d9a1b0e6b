"""The page of one run as text of at most 100 columns. Names come from users: nothing in them can move the cursor."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolens.units import format_bytes_si
from iolens.views.render.shown_times import time_with_zone
from iolens.views.render.tables import show_percent
from iolens.views.runs_summary.words import (
    INTERFACES,
    UNKNOWN,
    gain_words,
    not_evaluated_words,
    posix_rate_words,
    size_names,
    strategy_words,
    warnings_of,
)
from iolens.visible_text import counted, shortened, shown_lines, visible

if TYPE_CHECKING:
    from iolens.analyses.runs.summary import Finding, NotEvaluated, RunSummary

WIDTH: Final = 100
LABEL: Final = 20
BAR: Final = 24
SHOWN_FILES: Final = 5
LONGEST_PATH: Final = 58
LONGEST_WORD: Final = 60


def run_summary_text(run: RunSummary) -> str:
    """The whole page."""
    parts = [
        *_head(run),
        "",
        *_rates(run),
        "",
        *_modules(run),
        *_sizes(run),
        *_files(run),
        *findings_lines(run.findings),
        *not_evaluated_lines(run.not_evaluated),
    ]
    return "".join(f"{line.rstrip()}\n" for line in parts)


def _head(run: RunSummary) -> Iterator[str]:
    name = _word(run.executable) if run.executable else "a program that is not named"
    job = f", job {_word(run.jobid)}" if run.jobid else ""
    user = f" of user {_word(run.user)}" if run.user else ""
    yield from wrapped(f"I/O of {name}{job}{user}")
    when = "start not known" if run.start is None else time_with_zone(run.start)
    took = "" if run.runtime_s is None else f", {_seconds(run.runtime_s)}"
    ranks = "" if run.nprocs is None else ", " + (
        f"{run.nprocs:,} process{'' if run.nprocs == 1 else 'es'}"
    )  # fmt: skip
    nodes = ", nodes not known (--nodes N)" if run.nodes is None else f", {counted(run.nodes, 'node')}"
    yield from wrapped(f"{when}{took}{ranks}{nodes}")
    for warning in warnings_of(run):
        yield from wrapped(f"Warning: {warning}.")


def _rates(run: RunSummary) -> Iterator[str]:
    yield from _fact("Strategy", strategy_words(run))
    took = "" if run.rate_s is None else f" (in the {_seconds(run.rate_s)} of the slowest rank)"
    yield from _fact("Rate", "not defined" if run.mib_per_s is None else f"{run.mib_per_s:,.1f} MiB/s{took}")
    if run.mib_per_s_per_node is not None:
        yield from _fact("Rate per node", f"{run.mib_per_s_per_node:,.2f} MiB/s")
    by_posix = posix_rate_words(run)
    if by_posix:
        yield from _fact("by POSIX alone", by_posix)
    whole = f"{_percent(run.io_time_pct)} of all processes' time; slowest rank {_percent(run.slowest_rank_io_pct)}"
    yield from _fact("Time in I/O", f"{whole}, below MPI-IO" if by_posix else whole)
    yield from _fact("of it metadata", _percent(run.metadata_time_pct))
    yield from _fact(
        "Accesses", f"{_percent(run.sequential_pct)} sequential, {_percent(run.aligned_pct)} aligned to blocks"
    )
    if run.like_runs is not None:
        best = f"{run.like_runs.best_quartile_mib_per_s:,.1f} MiB/s"
        yield from _fact("Like runs", f"{run.like_runs.runs:,}; a quarter of them reaches {best} or more")


def _modules(run: RunSummary) -> Iterator[str]:
    yield _columns("Module", "read", "written", "files", "MiB/s (Darshan)")
    for name, totals in run.modules.items():
        rate = totals.agg_perf_by_slowest_mib_per_s
        yield _columns(
            f"  {_word(name)}",
            _volume(totals.read_bytes),
            _volume(totals.write_bytes),
            UNKNOWN if totals.files is None else f"{totals.files:,}",
            "-" if rate is None else f"{rate:,.1f}",
        )
    if not run.modules:
        yield "  no module has records"
    kinds = [
        _number(count) for count in (run.file_kinds.unique, run.file_kinds.shared, run.file_kinds.partially_shared)
    ]
    opened = "" if run.opens is None else f"; {run.opens:,} opens"
    new = ""
    if run.new_files is not None and run.written_files:
        new = f"; {run.new_files:,} of {run.written_files:,} written files are new (an estimate)"
    yield from _fact(
        "Files",
        f"{kinds[0]} of one rank, {kinds[1]} of all, {kinds[2]} of some{opened}{new}",
    )
    if run.interfaces:
        named = (f"{INTERFACES[name]} {totals.files:,}" for name, totals in run.interfaces.items())
        yield from _fact("by interface", ", ".join(named))


def _sizes(run: RunSummary) -> Iterator[str]:
    sizes = run.access_sizes
    if sizes is None or not any((*sizes.read, *sizes.write)):
        return
    yield ""
    yield f"{'POSIX accesses up to':<{LABEL}}{'reads':>14}{'':{BAR + 2}}{'writes':>14}"
    totals = [max(sum(counts), 1) for counts in (sizes.read, sizes.write)]
    for name, reads, writes in zip(size_names(run), sizes.read, sizes.write, strict=True):
        if reads or writes:
            bars = [_bar(count, total) for count, total in zip((reads, writes), totals, strict=True)]
            yield f"{name:>{LABEL - 2}}  {reads:>14,}  {bars[0]:<{BAR}}{writes:>14,}  {bars[1]}"
    if run.key_access_bytes is not None and run.key_access_count:
        where = f", {run.key_access_direction}" if run.key_access_direction else ""
        yield from _fact("most frequent", f"{run.key_access_bytes:,} bytes ({run.key_access_count:,} times{where})")


def _files(run: RunSummary) -> Iterator[str]:
    if not run.top_files:
        return
    yield ""
    yield f"{'Files with most I/O time':<{LONGEST_PATH}}{'ranks':>8}{'read':>11}{'written':>11}{'time':>11}"
    for file in run.top_files[:SHOWN_FILES]:
        path = shortened(visible(file.path), LONGEST_PATH - 4) if file.path else "(not named)"
        moved = f"{_volume(file.read_bytes):>11}{_volume(file.write_bytes):>11}"
        yield f"  {path:<{LONGEST_PATH - 2}}{file.ranks:>8,}{moved}{_seconds(file.io_s):>11}"


def findings_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """What was noticed, each with what to do."""
    if not findings:
        yield from ("", "Nothing found that needs attention.")
    for finding in findings:
        yield ""
        yield from wrapped(f"{finding.severity.upper()} {finding.code}: {finding.message}.")
        yield from wrapped(f"  What to do: {finding.remedy}", "    ")
        if gain := gain_words(finding.estimated_gain, finding.gain_from):
            yield from wrapped(f"  Gain: {gain}.", "    ")


def not_evaluated_lines(items: Sequence[NotEvaluated]) -> Iterator[str]:
    """Which rules could not judge; the reasons are in the JSON and in `iolens findings explain`."""
    yield from (line for words in not_evaluated_words(items) for line in ("", *wrapped(words)))


def wrapped(text: str, indent: str = "    ") -> Sequence[str]:
    """Lines of at most the width, with everything unseen shown; a word that is too long is shortened, not broken."""
    lead = len(text) - len(text.lstrip())
    shown = shown_lines(" ".join(text.split()))
    lines = textwrap.wrap(
        shown, WIDTH, initial_indent=" " * lead, subsequent_indent=indent, break_on_hyphens=False,
        break_long_words=True,
    )  # fmt: skip
    return lines or [""]


def _fact(label: str, words: str) -> Sequence[str]:
    indent = " " * LABEL
    return textwrap.wrap(shown_lines(words), WIDTH, initial_indent=f"{label:<{LABEL}}", subsequent_indent=indent)


def _columns(name: str, *cells: str) -> str:
    return f"{name:<{LABEL}}" + "".join(f"{cell:>17}" for cell in cells)


def _word(text: str) -> str:
    return shortened(visible(text), LONGEST_WORD)


def _bar(count: int, total: int) -> str:
    """A share of all as a bar; something that is there is at least a mark."""
    return "" if not count else "#" * max(round((BAR - 2) * count / total), 1)


def _volume(count: int | None) -> str:
    return UNKNOWN if count is None else format_bytes_si(count)


def _number(count: int | None) -> str:
    return UNKNOWN if count is None else f"{count:,}"


def _percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{show_percent(share)} %"


def _seconds(seconds: float) -> str:
    whole = round(seconds)
    if whole < 600:
        return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02} h"
