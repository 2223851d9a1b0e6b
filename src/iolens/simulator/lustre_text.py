"""The texts a Lustre server prints, version by version: stats, brw_stats, job_stats, recovery_status.

Formats are those of captured servers (1.8.3, 2.10, 2.12, 2.15), of 2.17 those of its source; only numbers and names are
ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

SATURATED: Final = 9_223_372_036_854_775_807  # where sumsq stops


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one version spells what all versions say."""

    stamp_unit: str  # secs.usecs or secs.nsecs
    brw_stamp: str  # the unit behind a brw_stats time
    brw_stamp_width: int
    write_head_width: int  # of `rpcs` in the write half of a brw_stats header
    tabs: bool  # our 1.8 captures have blanks where the kernel prints tabs
    blank_at_end: bool  # brw_stats ends with an empty line
    starts: bool  # start_time and elapsed_time are reported
    timed: bool  # operations are counted in microseconds, with sumsq
    early: bool  # 1.8: other counters on an MDS, delayed clients in recovery_status
    ost_counters: tuple[str, ...]  # what an OST counts beside its I/O, in this order
    latency_by_size: bool = False  # 2.17: io_latency_stats, I/Os in flight in powers of two, more rows in md_stats


_TARGET_COUNTERS: Final = ("setattr", "punch", "sync", "destroy", "create", "statfs", "get_info")
_DEVICE_COUNTERS: Final = ("connect", "reconnect", "disconnect", "statfs", "preprw", "commitrw", "ping")
_EARLY_COUNTERS: Final = (
    "get_info", "set_info_async", "process_config", "connect", "reconnect", "disconnect", "statfs", "create",
    "destroy", "setattr", "punch", "sync", "preprw", "commitrw", "llog_init", "notify", "quotactl", "ping",
)  # fmt: skip
V1_8: Final = Dialect("secs.usecs", "(secs.usecs)", 22, 5, False, True, False, False, True, _EARLY_COUNTERS)
V2_10: Final = Dialect(
    "secs.nsecs", "(secs.nsecs)", 22, 11, True, False, False, False, False, (*_TARGET_COUNTERS, *_DEVICE_COUNTERS)
)
V2_12: Final = replace(V2_10, ost_counters=_TARGET_COUNTERS)
V2_15: Final = Dialect("secs.nsecs", "secs.nsecs", 25, 11, True, False, True, True, False, _TARGET_COUNTERS)
V2_17: Final = replace(V2_15, latency_by_size=True)


class Counter(NamedTuple):
    """One line of a stats file: how many, and the values they had where they have any."""

    name: str
    samples: int
    unit: str = "reqs"
    minimum: int = 0
    maximum: int = 0
    total: int = 0
    sumsq: int | None = None
    valued: bool = False  # print minimum, maximum and sum


class BrwSection(NamedTuple):
    """One section of brw_stats: counts by row, from row 0; rows are powers of two or plain numbers."""

    title: str
    unit: str
    log2: bool
    read: Sequence[int]
    write: Sequence[int]


class JobEntry(NamedTuple):
    """One job of a job_stats file."""

    job_id: str
    start_ns: int
    last_ns: int
    counters: Sequence[Counter]


def stats_text(dialect: Dialect, now_ns: int, start_ns: int, counters: Iterable[Counter]) -> str:
    """`stats` and `md_stats`; a counter that never counted is not printed."""
    lines = [f"{'snapshot_time':<25} {stamp(dialect, now_ns)} {dialect.stamp_unit}"]
    if dialect.starts:
        lines.append(f"{'start_time':<25} {stamp(dialect, start_ns)} {dialect.stamp_unit}")
        lines.append(f"{'elapsed_time':<25} {stamp(dialect, now_ns - start_ns)} {dialect.stamp_unit}")
    for counter in counters:
        if counter.samples:
            values = f" {counter.minimum} {counter.maximum} {counter.total}" if counter.valued else ""
            squares = f" {min(counter.sumsq, SATURATED)}" if counter.sumsq is not None else ""
            lines.append(f"{counter.name:<25} {counter.samples} samples [{counter.unit}]{values}{squares}")
    return "\n".join(lines) + "\n"


def brw_stats_text(dialect: Dialect, now_ns: int, start_ns: int, histograms: Iterable[BrwSection]) -> str:
    """All sections; each begins at its first row that counted and ends when both halves are complete."""
    lines = histogram_times(dialect, now_ns, start_ns)
    for histogram in histograms:
        lines += ["", f"{'':26} read      |     write"]
        lines.append(
            f"{histogram.title:<22} {histogram.unit:<5} % cum % |  {histogram.unit:<{dialect.write_head_width}} % cum %"
        )
        lines += histogram_rows(histogram)
    text = "\n".join([*lines, ""] if dialect.blank_at_end else lines) + "\n"
    return text if dialect.tabs else text.expandtabs()


def io_latency_text(dialect: Dialect, now_ns: int, start_ns: int, rows: Mapping[tuple[str, int], Sequence[int]]) -> str:
    """`io_latency_stats`: I/Os by direction (rd, wr) and smallest size in bytes, each by row of its time.

    A row is labelled with its lower bound in units of 1,024 ns, and its count is not what was counted: `printed_count`.
    """
    times = {"snapshot_time:": now_ns, "start_time:": start_ns, "elapsed_time:": now_ns - start_ns}
    lines = ["io_latency_by_size:", *(f"{name:<15} {stamp(dialect, ns)}" for name, ns in times.items())]
    for (direction, size), counts in rows.items():
        bins = [f"{(1 << row) >> 1}us: {printed_count(count)}, " for row, count in enumerate(counts) if count]
        lines.append(f"{direction}_{size >> 10}K: {{ {''.join(bins) or 'uninit '}}}")
    return "\n".join(lines) + "\n"


def printed_count(count: int) -> int:
    """What Lustre 2.17 prints for a count in io_latency_stats: whole thousands and the rest each times 1.024."""
    return count // 1000 * 1024 + count % 1000 * 1024 // 1000


def histogram_times(dialect: Dialect, now_ns: int, start_ns: int) -> list[str]:
    """The first lines of brw_stats, rpc_stats and extents_stats."""
    times = {"snapshot_time:": now_ns}
    if dialect.starts:
        times |= {"start_time:": start_ns, "elapsed_time:": now_ns - start_ns}
    width, unit = dialect.brw_stamp_width, dialect.brw_stamp
    return [f"{name:<{width}} {stamp(dialect, ns)} {unit}" for name, ns in times.items()]


def job_stats_text(dialect: Dialect, jobs: Iterable[JobEntry]) -> str:
    """One entry per job; every counter is printed, zero or not."""
    lines = ["job_stats:"]
    for job in jobs:
        lines.append(f"- {'job_id:':<16} {job.job_id}")
        if dialect.starts:
            times = {"snapshot_time:": job.last_ns, "start_time:": job.start_ns,
                     "elapsed_time:": job.last_ns - job.start_ns}  # fmt: skip
            lines += [f"  {name:<16} {stamp(dialect, ns)} {dialect.stamp_unit}" for name, ns in times.items()]
        else:
            lines.append(f"  {'snapshot_time:':<16} {job.last_ns // 1_000_000_000}")
        lines += [_job_line(dialect, counter) for counter in job.counters]
    return "\n".join(lines) + "\n"


def recovery_text(dialect: Dialect, start_s: int, duration_s: int, clients: int, now_s: float) -> str:
    """recovery_status of a target that was mounted at `start_s`."""
    if now_s < start_s + duration_s:
        return _recovering_text(dialect, start_s, duration_s, clients, now_s)
    delayed = [f"delayed_clients: 0/{clients}"] if dialect.early else []
    lines = ["status: COMPLETE", f"recovery_start: {start_s}", f"recovery_duration: {duration_s}", *delayed,
             f"completed_clients: {clients}/{clients}", "replayed_requests: 0",
             f"last_transno: {4_294_967_296 + start_s}"]  # fmt: skip
    if not dialect.early:
        lines += ["VBR: DISABLED", "IR: DISABLED"]
    return "\n".join(lines) + "\n"


def _recovering_text(dialect: Dialect, start_s: int, duration_s: int, clients: int, now_s: float) -> str:
    done = int(clients * (now_s - start_s) / duration_s)
    waiting = clients - done
    evicted = [] if dialect.early else ["evicted_clients: 0"]
    lines = ["status: RECOVERING", f"recovery_start: {start_s}",
             f"time_remaining: {int(start_s + duration_s - now_s)}",
             f"connected_clients: {clients}" + ("" if dialect.early else f"/{clients}"),
             f"req_replay_clients: {waiting // 2}",
             f"{'lock_replay_clients' if dialect.early else 'lock_repay_clients'}: {waiting - waiting // 2}",
             f"completed_clients: {done}", *evicted, "replayed_requests: 0", "queued_requests: 0",
             f"next_transno: {4_294_967_297 + start_s}"]  # fmt: skip
    return "\n".join(lines) + "\n"


def histogram_rows(section: BrwSection, labels: Sequence[str] = (), *, write_width: int = 4) -> Iterator[str]:
    """Rows up to where both halves are complete; without `labels`, from the first that counted on."""
    totals = sum(section.read), sum(section.write)
    read = written = 0
    if not any(totals) and not labels:
        return
    for row, (reads, writes) in enumerate(zip(section.read, section.write, strict=True)):
        read, written = read + reads, written + writes
        if not read and not written and not labels:
            continue
        left = f"{reads:>10} {share_pct(reads, totals[0]):>3} {share_pct(read, totals[0]):>3}"
        right = f"{writes:>{write_width}} {share_pct(writes, totals[1]):>3} {share_pct(written, totals[1]):>3}"
        label = labels[row] if labels else _label(row) if section.log2 else row
        yield f"{label}:\t\t{left}   | {right}"
        if (read, written) == totals:
            return


def _label(row: int) -> str:
    return f"{1 << row % 10}{('', 'K', 'M', 'G')[row // 10]}"


def share_pct(part: int, whole: int) -> int:
    """Per cent, rounded down; nothing of nothing is 0."""
    return part * 100 // whole if whole else 0


def stamp(dialect: Dialect, ns: int) -> str:
    """A time as the version prints it."""
    seconds, rest = divmod(ns, 1_000_000_000)
    # 1.8 prints the microseconds as a plain number, without leading zeros.
    return f"{seconds}.{rest // 1000}" if dialect.stamp_unit == "secs.usecs" else f"{seconds}.{rest:09}"


def _job_line(dialect: Dialect, counter: Counter) -> str:
    head = f"  {counter.name + ':':<16} {{ samples: {counter.samples:>11}, unit: {counter.unit:>5}"
    if dialect.timed:
        values = f", min: {counter.minimum:>8}, max: {counter.maximum:>8}, sum: {counter.total:>16}"
        return f"{head}{values}, sumsq: {min(counter.sumsq or 0, SATURATED):>18} }}"
    values = f", min:{counter.minimum:>8}, max:{counter.maximum:>8}, sum:{counter.total:>16}" if counter.valued else ""
    return f"{head}{values} }}"
