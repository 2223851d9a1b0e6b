"""Most reads and writes begin or end inside a block of the file system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.remedies import CARNS, is_collective, kinds_of, named_kind
from iolens.findings.rule import Evidence, FindingRule, Inputs, Part


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    accesses = sum(inputs["posix_ops"].values())
    misaligned = inputs["misaligned_ops"]
    if accesses >= thresholds["fewest_accesses"] and 100 * misaligned > thresholds["share_pct"] * accesses:
        known = inputs.get("alignment_bytes")
        yield {
            "misaligned_ops": misaligned,
            "accesses": named_kind(inputs["posix_ops"]),
            "all_accesses": accesses,
            "misaligned_pct": 100 * misaligned / accesses,
            **({"alignment_bytes": known} if known else {}),
            "block": f"blocks of {known:,} bytes" if known else "the blocks of the file system",
        }


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    alignment = evidence.get("alignment_bytes")
    return {
        **({} if alignment is None else {"alignment": str(alignment)}),
        **({"collective": " the hint striping_unit"} if is_collective(inputs) else {}),
    }


def _about(inputs: Inputs, evidence: Evidence) -> Part:
    return Part(kinds_of(str(evidence["accesses"])), accesses=float(evidence["misaligned_ops"]))


def _not_judged(inputs: Inputs) -> str | None:
    """Pieces of a block cannot all begin where a block does: their size is what is to be changed."""
    size, block = inputs.get("key_access_bytes"), inputs.get("alignment_bytes")
    if size is None or block is None or size >= block:
        return None
    return f"does not apply: the most frequent access, {size:,} bytes, is smaller than a block, {block:,} bytes"


RULE: Final = FindingRule(
    code="misaligned",
    title="misaligned reads and writes",
    severity="warn",
    inputs=("misaligned_ops", "posix_ops"),
    also_reads=("alignment_bytes", "key_access_bytes", "strategy", "io_kinds_s"),
    thresholds={"share_pct": 50, "fewest_accesses": 1000},
    check=_check,
    condition="more than {share_pct:g} % of at least {fewest_accesses:,.0f} reads and writes are not aligned to the "
    "file system's blocks, and the most frequent of them is not smaller than a block",
    message="{misaligned_pct:.0f} % of {all_accesses:,} {accesses} are not aligned to {block}",
    remedy="Begin records and blocks of data at multiples of {alignment} bytes. HDF5: "
    "H5Pset_alignment(fapl, {alignment}, {alignment}). MPI-IO:{collective}. PnetCDF: hint "
    "nc_var_align_size={alignment}.",
    reference=f"{CARNS}, Section 6 and Table VI",
    general_words={
        "alignment": "1048576",
        "collective": " collective writes, which align what the aggregators write to stripes (hint striping_unit)",
    },
    own_words=_own_words,
    about=_about,
    not_judged=_not_judged,
)
