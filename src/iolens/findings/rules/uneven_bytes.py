"""One rank moves much more of a shared file than the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.remedies import DRISHTI, is_collective
from iolens.findings.rule import NOT_NAMED, Evidence, FileUse, FindingRule, Inputs, about_files, files_evidence


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    """The file of which most bytes are beyond an equal share, and how many more there are."""
    files = [file for file in inputs["shared_files"] if _is_uneven(file, thresholds)]
    if files:
        worst = max(files, key=lambda file: file.busiest_rank_bytes - file.mean_rank_bytes)
        yield {
            "file": worst.path or NOT_NAMED,
            "ranks": worst.ranks,
            "busiest_rank_bytes": worst.busiest_rank_bytes,
            "mean_rank_bytes": worst.mean_rank_bytes,
            "times": worst.busiest_rank_bytes / worst.mean_rank_bytes,
            "busiest_gb": worst.busiest_rank_bytes / 1e9,
            "mean_gb": worst.mean_rank_bytes / 1e9,
            **files_evidence(files),
        }


def _is_uneven(file: FileUse, thresholds: Mapping[str, float]) -> bool:
    if file.ranks < 2 or not file.busiest_rank_bytes or not file.mean_rank_bytes:
        return False
    is_large = file.moved_bytes >= thresholds["least_bytes"]
    return is_large and file.busiest_rank_bytes > thresholds["factor"] * file.mean_rank_bytes


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    return {"collective": ""} if is_collective(inputs) else {}


RULE: Final = FindingRule(
    code="uneven-bytes",
    title="bytes of a shared file are uneven over ranks",
    severity="warn",
    inputs=("shared_files",),
    also_reads=("strategy",),
    thresholds={"factor": 2, "least_bytes": 1 << 30},
    check=_check,
    condition="a rank moves more than {factor:g} times the mean of the ranks that share a file of which at least "
    "{least_bytes:,.0f} bytes are moved, as far as the log has the bytes of single ranks (MPI-IO before POSIX)",
    message="one of {ranks:,} ranks moved {busiest_gb:,.3g} GB of {file}, {times:,.1f} times the mean of them all "
    "({mean_gb:,.3g} GB); files like it: {files:,}",
    remedy="Divide the data evenly: equal blocks for each rank{collective}. Where a rank gathers for others, let one "
    "of each node do so (MPI_Comm_split_type).",
    reference=f"{DRISHTI}; Darshan, POSIX_SLOWEST_RANK_BYTES",
    general_words={"collective": ", or collective MPI-IO, whose aggregators have equal shares of the file"},
    own_words=_own_words,
    about=about_files,
)
