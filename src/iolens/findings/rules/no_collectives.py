"""A shared file is used through MPI-IO by independent calls, so that MPI-IO cannot put small pieces together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from iolens.findings.remedies import CARNS, COLLECTIVE_CALLS, collective_hints
from iolens.findings.rule import NOT_NAMED, Evidence, FileUse, FindingRule, Inputs, Part, about_files, files_evidence


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    """The file with most independent accesses, and how many more there are."""
    files = [file for file in inputs["shared_mpiio_files"] if _is_independent(file, thresholds)]
    if files:
        worst = max(files, key=lambda file: file.independent_ops)
        accesses = worst.independent_ops + worst.collective_ops
        yield {
            "file": worst.path or NOT_NAMED,
            "interface": worst.interface,
            "ranks": worst.ranks,
            "independent_ops": worst.independent_ops,
            "independent_pct": 100 * worst.independent_ops / accesses,
            **files_evidence(files),
            "files_independent_ops": sum(file.independent_ops for file in files),
            **({"stripe_count": worst.stripe_count} if worst.stripe_count is not None else {}),
        }


def _is_independent(file: FileUse, thresholds: Mapping[str, float]) -> bool:
    accesses = file.independent_ops + file.collective_ops
    is_over = 100 * file.independent_ops > thresholds["share_pct"] * accesses
    return min(file.ranks, accesses) >= thresholds["fewest_ranks"] and is_over  # no more ranks than accesses


def _about(inputs: Inputs, evidence: Evidence) -> Part:
    return replace(about_files(inputs, evidence), accesses=float(evidence["files_independent_ops"]))


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    stripes = evidence.get("stripe_count")
    return {
        "calls": COLLECTIVE_CALLS.get(str(evidence["interface"]), COLLECTIVE_CALLS["mpiio"]),
        "hints": collective_hints(inputs, stripes if isinstance(stripes, int) else None),
    }


RULE: Final = FindingRule(
    code="no-collectives",
    title="independent MPI-IO on a shared file",
    severity="warn",
    inputs=("shared_mpiio_files",),
    also_reads=("nodes",),
    thresholds={"share_pct": 90, "fewest_ranks": 16},
    check=_check,
    condition="more than {share_pct:g} % of the MPI-IO accesses of at least {fewest_ranks:g} ranks to a file that "
    "they share are independent",
    message="{independent_pct:.0f} % of the MPI-IO accesses of {ranks:,} ranks to {file} are independent "
    "({independent_ops:,}); files like it: {files:,}",
    remedy="Use collective calls: {calls}. Then collective buffering applies: `{hints}`.",
    reference=f"{CARNS}, Sections 5.9, 5.10 and 6",
    general_words={"calls": "; ".join(COLLECTIVE_CALLS.values()), "hints": collective_hints({})},
    own_words=_own_words,
    about=_about,
)
