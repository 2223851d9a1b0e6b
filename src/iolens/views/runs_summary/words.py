"""Names and numbers of a run as people read them; text and page use the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from iolens.units import format_bytes
from iolens.views.render.tables import show_whole_percent
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.runs.summary import NotEvaluated, RunSummary

UNKNOWN: Final = "not known"
STRATEGIES: Final[Mapping[str | None, str]] = {
    "none": "none: no bytes of files were moved",
    "collective": "collective MPI-IO: most of its reads and writes are collective calls",
    "rank0": "rank-0 I/O: one rank moves nearly all bytes",
    "subset": "a subset of the ranks: at most half of them move bytes",
    "file_per_process": "file per process: most bytes are of files that one rank uses",
    "shared": "shared files: most bytes are of files that all ranks use",
    "partially_shared": "partially shared files: most bytes are of files that several ranks use, but not all",
    None: "not known",
}
SAME_RATE: Final = 0.03  # rates that differ by less are one
SERIAL: Final = "none: there is only one process"
INTERFACES: Final[Mapping[str, str]] = {
    "posix": "POSIX", "stdio": "STDIO", "mpiio": "MPI-IO", "hdf5": "HDF5", "pnetcdf": "PnetCDF", "dfs": "DFS",
}  # fmt: skip
GAINS: Final[Mapping[str | None, str]] = {
    "study": "as in the study",
    "like_runs": "to the best quarter of like runs",
    None: "",
}


def strategy_words(run: RunSummary) -> str:
    """The strategy, with the numbers behind it."""
    if run.strategy == "none" and run.nprocs == 1:
        return SERIAL
    numbers = ", ".join(_strategy_numbers(run))
    return STRATEGIES[run.strategy] + (f" ({numbers})" if numbers and run.strategy not in ("none", None) else "")


def _strategy_numbers(run: RunSummary) -> Iterator[str]:
    seen = run.strategy_evidence
    shares = {"shared": "shared", "partially_shared": "partially shared", "unique": "unique"}
    if run.strategy == "collective" and seen["collective_pct"] is not None:
        yield f"{show_whole_percent(seen['collective_pct'])} % of MPI-IO's accesses"
    elif run.strategy == "rank0" and seen["busiest_rank_pct"] is not None:
        yield f"{show_whole_percent(seen['busiest_rank_pct'])} % of the bytes"
    else:
        yield from (
            f"{show_whole_percent(share)} % {words}"
            for name, words in shares.items()
            if (share := seen[f"{name}_pct"]) is not None
        )
    if seen["io_ranks"] is not None and run.nprocs is not None:
        move = "moves" if seen["io_ranks"] == 1 else "move"
        yield f"{seen['io_ranks']:,.0f} of {counted(run.nprocs, 'rank')} {move} bytes"


def posix_rate_words(run: RunSummary) -> str:
    """The rate below MPI-IO, where that is another one; else nothing."""
    rate, by_posix = run.mib_per_s, run.mib_per_s_posix
    if "MPI-IO" not in run.modules or not rate or by_posix is None or abs(by_posix / rate - 1) <= SAME_RATE:
        return ""
    return f"{by_posix:,.1f} MiB/s: without the time that MPI-IO spends above it"


def size_names(run: RunSummary) -> tuple[str, ...]:
    """Access sizes, in words."""
    return tuple("more" if upper is None else format_bytes(upper) for upper in run.access_size_upper_bytes)


def gain_words(gain: float | None, origin: str | None) -> str:
    """`up to 29 times faster I/O, as in the study`; empty where nothing is known or to be gained."""
    if gain is None:
        return ""
    shown = f"{gain:,.0f}" if gain >= 999.5 else f"{gain:.3g}"
    if shown == "1":
        return ""
    return f"up to {shown} times faster I/O, {GAINS[origin]}".rstrip(", ")


def warnings_of(run: RunSummary) -> Iterator[str]:
    """What to know before the numbers are believed."""
    if run.incomplete_modules:
        yield f"records of {', '.join(run.incomplete_modules)} are not complete: some files are not in the numbers"
    elif run.partial:
        yield "the log is not complete: some files are not in the numbers"
    if run.rate_is_short and run.rate_s is not None:
        yield f"the slowest rank spent {1000 * run.rate_s:.3g} ms in I/O: a rate of so short a time says little"
    if run.rate_is_lost:
        yield (
            "an earlier iolens loaded this run and kept no times of MPI-IO and DFS: its rate is not known; ask for the "
            "log, or load it into a new store"
        )
    if run.rate_files_overlap:
        yield "shared files were in use at the same time: the time of the slowest rank is too long, the rates too low"
    if run.rate_method == "open_lastio":
        yield (
            "an old log: the time of a shared file is that from its first open to its last access, "
            "so the rates are too low"
        )


def not_evaluated_words(items: Sequence[NotEvaluated]) -> Iterator[str]:
    """Rules whose data are missing; and rules that do not apply, with the reason of the first run."""
    codes = list(dict.fromkeys(item.code for item in items if item.missing))
    if codes:
        yield f"Not evaluated, data missing: {', '.join(codes)} (`iolens findings explain CODE`)"
    reasons: dict[str, str] = {}
    for item in items:
        if not item.missing:
            reasons.setdefault(item.code, item.reason)
    yield from (f"Not evaluated: {code} {reason}" for code, reason in reasons.items())
