"""Most reads and writes begin or end inside a block of the file system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.remedies import CARNS
from iolens.findings.rule import Evidence, FindingRule, Inputs


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    accesses = sum(inputs["posix_ops"].values())
    misaligned = inputs["misaligned_ops"]
    if accesses >= thresholds["fewest_accesses"] and 100 * misaligned > thresholds["share_pct"] * accesses:
        known = inputs.get("alignment_bytes")
        yield {
            "misaligned_ops": misaligned,
            "all_accesses": accesses,
            "misaligned_pct": 100 * misaligned / accesses,
            **({"alignment_bytes": known} if known else {}),
            "block": f"blocks of {known:,} bytes" if known else "the blocks of the file system",
        }


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    alignment = evidence.get("alignment_bytes")
    return {} if alignment is None else {"alignment": str(alignment)}


RULE: Final = FindingRule(
    code="misaligned",
    title="misaligned reads and writes",
    severity="warn",
    inputs=("misaligned_ops", "posix_ops"),
    also_reads=("alignment_bytes",),
    thresholds={"share_pct": 50, "fewest_accesses": 1000},
    check=_check,
    condition="more than {share_pct:g} % of at least {fewest_accesses:,.0f} reads and writes are not aligned to the "
    "file system's blocks",
    message="{misaligned_pct:.0f} % of {all_accesses:,} reads and writes are not aligned to {block}",
    remedy="Begin records and blocks of data at multiples of {alignment} bytes. HDF5: "
    "H5Pset_alignment(fapl, {alignment}, {alignment}). MPI-IO: collective writes, which align what the aggregators "
    "write to stripes (hint striping_unit). PnetCDF: hint nc_var_align_size={alignment}.",
    reference=f"{CARNS}, Section 6 and Table VI",
    general_words={"alignment": "1048576"},
    own_words=_own_words,
)
