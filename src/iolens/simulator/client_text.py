"""The texts that only a Lustre client prints: rpc_stats, extents_stats, read_ahead_stats.

Formats are those of captured clients (2.10, 2.16) and of the sources of Lustre; only numbers and names are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from iolens.simulator.client_layout import ClientLayout
from iolens.simulator.lustre_text import BrwSection, Counter, histogram_rows, histogram_times, share_pct, stats_text

DISABLED: Final = "disabled\n write anything to this file to activate, then '0' or 'disable' to deactivate\n"
_BLANKS: Final = {"readahead_to_eof": "read-ahead to EOF"}  # else a blank for each underscore, to 2.12
_ROWS: Final = 32
_SMALLEST_CALL: Final = 12  # log2: the first row of extents_stats ends at 4 KiB
_CALL_ROWS: Final = 28


class RpcHistograms(NamedTuple):
    """RPCs of one OSC by row, read and write: by pages, by how many were in flight, and by offset in pages."""

    pages: BrwSection
    in_flight: BrwSection
    offsets: BrwSection


def rpc_stats_text(
    layout: ClientLayout, now_ns: int, start_ns: int, histograms: RpcHistograms | None, modify: Sequence[int] = ()
) -> str:
    """`rpc_stats` of an OSC; of an MDC, with the requests that change something by how many were in flight."""
    lines = histogram_times(layout.dialect, now_ns, start_ns)
    if modify:
        lines += ["modify_RPCs_in_flight:  0", "", "\t\t\tmodify", "rpcs in flight        rpcs   % cum %"]
        lines += [*_single_rows(modify), ""]
    if histograms is not None:
        lines += [
            "read RPCs in flight:  0",
            "write RPCs in flight: 0",
            "pending write pages:  0",
            "pending read pages:   0",
        ]
        lines += _sections(histograms, layout.first_in_flight)
    return "\n".join(lines) + "\n"


def extents_stats_text(layout: ClientLayout, now_ns: int, start_ns: int, calls: Mapping[int, tuple[int, int]]) -> str:
    """Calls by size: `calls` has reads and writes by size in bytes. A row ends below its upper bound."""
    counts = [[0] * _CALL_ROWS for _ in range(2)]
    for size, by_direction in calls.items():
        row = min(max(size.bit_length() - _SMALLEST_CALL, 0), _CALL_ROWS - 1)
        for direction, count in enumerate(by_direction):
            counts[direction][row] += count
    lines = [*histogram_times(layout.dialect, now_ns, start_ns), f"{'':31}read{'':7}|{'':16}write",
             f"{'':6}extents            calls    % cum%  |          calls    % cum%"]  # fmt: skip
    return "\n".join([*lines, *_call_rows(*counts)]) + "\n"


def read_ahead_text(layout: ClientLayout, now_ns: int, start_ns: int, pages: Mapping[str, int]) -> str:
    """`read_ahead_stats`; names are those of 2.15, before it they had blanks."""
    names = (
        pages if layout.dialect.timed else {_BLANKS.get(name, name.replace("_", " ")): pages[name] for name in pages}
    )
    counters = [Counter(name, count, "pages") for name, count in names.items()]
    return stats_text(layout.dialect, now_ns, start_ns, counters)


def _sections(histograms: RpcHistograms, first_in_flight: int) -> Iterator[str]:
    pages, in_flight, offsets = histograms
    depths = BrwSection(*in_flight[:3], in_flight.read[first_in_flight:], in_flight.write[first_in_flight:])
    labels = (
        [str(1 << row) for row in range(_ROWS)],
        [str(row) for row in range(first_in_flight, _ROWS)],
        ["0", *(str(1 << row) for row in range(_ROWS - 1))],
    )
    for section, rows in zip((pages, depths, offsets), labels, strict=True):
        yield from ("", "\t\t\tread\t\t\twrite", f"{section.title:<22}rpcs   % cum % |       rpcs   % cum %")
        yield from histogram_rows(section, rows, write_width=10)


def _single_rows(counts: Sequence[int]) -> Iterator[str]:
    total, so_far = sum(counts), 0
    for row, count in enumerate(counts):
        so_far += count
        yield f"{row}:\t\t{count:>10} {share_pct(count, total):>3} {share_pct(so_far, total):>3}"
        if so_far == total:
            return


def _call_rows(reads: Sequence[int], writes: Sequence[int]) -> Iterator[str]:
    totals, read, written = (sum(reads), sum(writes)), 0, 0
    for row, (here, there) in enumerate(zip(reads, writes, strict=True)):
        read, written = read + here, written + there
        lower, upper = _bound(row - 1, 512) if row else "0K", _bound(row, 1024)
        left = f"{here:>14} {share_pct(here, totals[0]):>4} {share_pct(read, totals[0]):>4}"
        right = f"{there:>14} {share_pct(there, totals[1]):>4} {share_pct(written, totals[1]):>4}"
        yield f"{lower:>5} - {upper:>5} : {left}  | {right}"
        if (read, written) == totals:
            return


def _bound(row: int, largest_kib: int) -> str:
    """The end of a row: 4K, 8K, … 1024K, 2M, …; where the next begins, 1024K is 1M."""
    size_kib = 4 << row
    return f"{size_kib}K" if size_kib <= largest_kib else f"{size_kib >> 10}M"
