"""One run on one page (D4, D5, D11–D13): how fast, through what, in which pattern, and what could be better.

Measures are those of DEFINITIONS, "MiB/s/CN" and "Project table", for a single run. What a log does not tell is None.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np

from iolens.analyses.runs.finding_inputs import access_sizes, finding_inputs, io_seconds
from iolens.analyses.runs.like_runs import LikeRates, with_gain
from iolens.analyses.runs.used_files import Floats, RunColumns, RunRecord, UsedFiles, strategy_of, used_files
from iolens.columns import DIRECTIONS
from iolens.findings import Thresholds, evaluate
from iolens.findings.rule import Finding as Finding
from iolens.findings.rule import NotEvaluated as NotEvaluated
from iolens.run_tables import ACCESS_BINS, INTERFACES, PATTERNS, is_rate_lost, rate_of
from iolens.units import from_epoch_us

TOP_FILES: Final = 10
BY_RECORDS: Final = "records"  # bytes of ranks are those of files that only one rank moved bytes of


@dataclass(frozen=True, slots=True)
class ModuleTotals:
    """What one module of Darshan counted; the rate is Darshan's own, bytes ÷ time of the slowest rank."""

    read_bytes: int | None
    write_bytes: int | None
    files: int | None
    agg_perf_by_slowest_mib_per_s: float | None


@dataclass(frozen=True, slots=True)
class AccessSizes:
    """POSIX accesses by size, in the bins whose upper ends are `access_size_upper_bytes`."""

    read: Sequence[int]
    write: Sequence[int]


@dataclass(frozen=True, slots=True)
class FileKinds:
    """A number for files of one rank, of all ranks, and of some."""

    unique: int | None
    shared: int | None
    partially_shared: int | None


@dataclass(frozen=True, slots=True)
class InterfaceTotals:
    """Files whose highest interface it is, and its bytes: a file of both POSIX and STDIO has bytes of each."""

    files: int
    read_bytes: int
    write_bytes: int


@dataclass(frozen=True, slots=True)
class TopFile:
    """One of the files that took most time, or moved most."""

    path: str | None
    interface: str
    ranks: int
    read_bytes: int
    write_bytes: int
    opens: int
    io_s: float
    stripe_count: int | None


@dataclass(frozen=True, slots=True)
class RankActivity:
    """How bytes are spread over ranks; only where ranks are known."""

    known: int  # ranks of which bytes are known
    bytes_from: str  # records: of files that only one rank moved bytes of; heatmap: of all files
    least_bytes: int
    median_bytes: float
    most_bytes: int
    busiest_rank: int


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run."""

    jobid: str | None
    user: str | None
    executable: str | None
    nprocs: int | None
    nodes: int | None
    runtime_s: float | None
    start: datetime | None
    modules: Mapping[str, ModuleTotals]
    mib_per_s_per_node: float | None
    io_time_pct: float | None
    metadata_time_pct: float | None
    sequential_pct: float | None
    aligned_pct: float | None
    access_sizes: AccessSizes | None
    file_kinds: FileKinds
    strategy: str | None
    findings: Sequence[Finding]
    not_evaluated: Sequence[NotEvaluated]
    incomplete_modules: Sequence[str]
    run_id: str | None
    log: str | None
    log_version: str | None
    command: str | None
    project: str | None
    filesystem: str | None
    partial: bool | None
    read_bytes: int | None
    write_bytes: int | None
    files: int | None
    opens: int | None
    mib_per_s: float | None  # of all nodes
    mib_per_s_posix: float | None  # by POSIX and STDIO (and DFS) alone, as the study had it
    rate_bytes: int | None  # numerator of mib_per_s: of each file at the highest of MPI-IO, POSIX with STDIO, DFS
    rate_s: float | None  # its denominator, I/O time of the slowest rank at these layers
    rate_method: str | None  # how shared files count in it; None: an earlier iolens loaded the run
    rate_files_overlap: bool | None  # then rate_s is too long, and the rates are too low
    rate_is_short: bool  # less than 0.1 s of I/O time: the rate says little
    rate_is_lost: bool  # not known: an earlier iolens loaded the run and kept no times of MPI-IO and DFS
    slowest_rank_s: float | None  # through POSIX, STDIO and DFS
    slowest_rank_method: str | None
    shared_files_overlap: bool | None  # then slowest_rank_s is too long
    slowest_rank_io_pct: float | None  # of the run time
    read_s: float | None  # summed over ranks
    write_s: float | None
    metadata_s: float | None
    access_size_upper_bytes: Sequence[int | None]  # None: no upper end
    file_kind_bytes: FileKinds
    interfaces: Mapping[str, InterfaceTotals]
    strategy_evidence: Mapping[str, float | None]
    key_access_bytes: int | None
    key_access_count: int | None
    key_access_direction: str | None
    written_files: int | None
    new_files: int | None  # an estimate
    osts: int | None
    io_core_hours: float | None  # rank-hours in I/O calls
    ranks: RankActivity | None
    top_files: Sequence[TopFile]
    like_runs: LikeRates | None


def run_summary(
    record: RunRecord,
    nodes: int | None = None,
    thresholds: Thresholds | None = None,
    like: LikeRates | None = None,
) -> RunSummary:
    """The page of one run. `nodes`: as only a scheduler knows; `like`: runs to expect as much of."""
    run = record.run
    used = used_files(record.files, run["processes"])
    strategy, evidence = strategy_of(run)
    nodes = nodes if nodes is not None else run["nodes"]
    rate = rate_of(run)
    evaluation = evaluate(finding_inputs(run, strategy, used, nodes), thresholds)
    io_s, processes = io_seconds(run), run["processes"]
    return RunSummary(
        jobid=run["job_id"],
        nprocs=processes,
        nodes=nodes,
        runtime_s=run["duration_s"],
        start=None if run["start"] is None else from_epoch_us(run["start"]),
        modules=_modules(run["module_totals"]),
        mib_per_s=rate.mib_per_s,
        mib_per_s_per_node=rate.mib_per_s / nodes if rate.mib_per_s is not None and nodes else None,
        mib_per_s_posix=rate_of(run, "paper").mib_per_s,
        rate_bytes=rate.bytes,
        rate_s=rate.seconds,
        rate_method=rate.method,
        rate_files_overlap=rate.overlap,
        rate_is_short=rate.is_short,
        rate_is_lost=is_rate_lost(run),
        io_time_pct=percent(io_s, _product(processes, run["duration_s"])),
        slowest_rank_io_pct=percent(run["slowest_rank_s"], run["duration_s"]),
        metadata_time_pct=percent(run["metadata_s"], io_s),
        sequential_pct=percent(_sum(run, "sequential_reads", "sequential_writes"), _posix_ops(run)),
        aligned_pct=_aligned_pct(run),
        access_sizes=_access_sizes(run),
        access_size_upper_bytes=(*ACCESS_BINS, None),
        file_kinds=FileKinds(*(run[f"{pattern}_files"] for pattern in PATTERNS)),
        file_kind_bytes=FileKinds(*(_moved(run, f"{pattern}_") for pattern in PATTERNS)),
        interfaces=_interfaces(run),
        strategy=strategy,
        strategy_evidence=evidence,
        findings=with_gain(evaluation.findings, like, rate.mib_per_s),
        not_evaluated=evaluation.not_evaluated,
        incomplete_modules=tuple((run["incomplete_modules"] or "").split(",")) if run["incomplete_modules"] else (),
        io_core_hours=None if io_s is None else io_s / 3600,
        ranks=_ranks(record.ranks),
        top_files=_top_files(used),
        like_runs=like,
        **{name: run[name] for name in _AS_STORED},
    )


_AS_STORED: Final = (
    "user", "executable", "run_id", "log", "log_version", "command", "project", "filesystem", "partial", "read_bytes",
    "write_bytes", "files", "opens", "slowest_rank_s", "slowest_rank_method", "shared_files_overlap", "read_s",
    "write_s", "metadata_s", "key_access_bytes", "key_access_count", "key_access_direction", "written_files",
    "new_files", "osts",
)  # fmt: skip


def percent(part: float | None, whole: float | None) -> float | None:
    """100 · part ÷ whole; None where one is not known or there is nothing to divide by."""
    return None if part is None or not whole else 100 * part / whole


def _product(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first * second


def _sum(run: Mapping[str, Any], *names: str) -> int | None:
    values = [run[name] for name in names]
    return None if any(value is None for value in values) else sum(values)


def _moved(run: Mapping[str, Any], prefix: str) -> int | None:
    return _sum(run, *(f"{prefix}{direction}_bytes" for direction in DIRECTIONS))


def _posix_ops(run: Mapping[str, Any]) -> int | None:
    return _sum(run, "posix_reads", "posix_writes")


def _aligned_pct(run: Mapping[str, Any]) -> float | None:
    misaligned = percent(run["misaligned_ops"], _posix_ops(run))
    return None if misaligned is None else 100 - misaligned


def _modules(text: str | None) -> dict[str, ModuleTotals]:
    names = ("read_bytes", "write_bytes", "files", "agg_perf_by_slowest_mib_per_s")
    totals = json.loads(text) if text else {}
    return {module: ModuleTotals(*(values.get(name) for name in names)) for module, values in totals.items()}


def _access_sizes(run: Mapping[str, Any]) -> AccessSizes | None:
    sizes = access_sizes(run)
    if sizes is None:
        return None
    return AccessSizes(
        *([sizes[direction].get(upper, 0) for upper in (*ACCESS_BINS, None)] for direction in DIRECTIONS)
    )


def _interfaces(run: Mapping[str, Any]) -> dict[str, InterfaceTotals]:
    return {
        name: InterfaceTotals(*(run[f"{name}_{what}"] or 0 for what in ("files", "read_bytes", "write_bytes")))
        for name in INTERFACES
        if any(run[f"{name}_{what}"] for what in ("files", "read_bytes", "write_bytes"))
    }


def _ranks(ranks: RunColumns) -> RankActivity | None:
    if not len(ranks):
        return None
    moved = ranks.sums("read_bytes", "write_bytes")
    busiest = int(moved.argmax())
    origins = {*ranks.texts("bytes_from")}
    return RankActivity(
        known=len(ranks),
        bytes_from=str(origins.pop()) if len(origins) == 1 else BY_RECORDS,
        least_bytes=int(moved.min()),
        median_bytes=_median(moved),
        most_bytes=int(moved[busiest]),
        busiest_rank=int(ranks.numbers("rank")[busiest]),
    )


def _median(values: Floats) -> float:
    """As np.median, which imports masked arrays first."""
    middle = [(len(values) - 1) // 2, len(values) // 2]
    return float(np.sort(values)[middle].mean())


def _top_files(used: UsedFiles) -> list[TopFile]:
    """Those with most I/O time; by bytes where times are equal."""
    order = np.lexsort((-(used.read_bytes + used.write_bytes), -used.io_s))[:TOP_FILES]
    return [
        TopFile(
            file.path, file.interface, file.ranks, file.read_bytes, file.write_bytes, int(used.opens[place]),
            float(used.io_s[place]), file.stripe_count,
        )
        for place, file in zip(order, used.chosen(order), strict=True)
    ]  # fmt: skip
