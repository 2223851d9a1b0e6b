"""Reads or writes jump back and forth in their files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.remedies import CARNS, is_collective, kinds_of
from iolens.findings.rule import Evidence, FindingRule, Inputs, Part


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    """Reads and writes apart; both together where neither alone is enough to speak of."""
    whole = {f"{direction}s": count for direction, count in inputs["posix_ops"].items()}
    sequential = {f"{direction}s": count for direction, count in inputs["sequential_ops"].items()}
    together = "reads and writes"
    whole[together], sequential[together] = sum(whole.values()), sum(sequential.values())
    jumping = [
        kind
        for kind, count in whole.items()
        if count >= thresholds["fewest_accesses"] and 100 * sequential[kind] < thresholds["sequential_pct"] * count
    ]
    for kind in jumping:
        if kind != together or jumping == [together]:
            yield {
                "accesses": kind,
                "sequential_ops": sequential[kind],
                "all_accesses": whole[kind],
                "sequential_pct": 100 * sequential[kind] / whole[kind],
            }


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    return {"collective": ""} if is_collective(inputs) else {}


def _about(inputs: Inputs, evidence: Evidence) -> Part:
    jumps = float(evidence["all_accesses"]) - float(evidence["sequential_ops"])
    return Part(kinds_of(str(evidence["accesses"])), accesses=jumps)


RULE: Final = FindingRule(
    code="random-access",
    title="random access",
    severity="warn",
    inputs=("sequential_ops", "posix_ops"),
    thresholds={"sequential_pct": 50, "fewest_accesses": 1000},
    check=_check,
    condition="less than {sequential_pct:g} % of at least {fewest_accesses:,.0f} reads, writes, or both together, are "
    "at a higher offset than the one before",
    message="only {sequential_pct:.0f} % of {all_accesses:,} {accesses} are sequential",
    remedy="Read and write in the order of the file: sort by offset{collective}. HDF5: a chunk shape "
    "(H5Pset_chunk) that follows the order of access. Read a file that fits into memory at once.",
    reference=f"{CARNS}, Table VI and Section 5.4",
    also_reads=("strategy", "device", "io_kinds_s"),
    general_words={
        "collective": ", or let collective MPI-IO put the pieces of all ranks in order (MPI_File_set_view and "
        "MPI_File_read_at_all, hints romio_cb_read=enable and romio_cb_write=enable)"
    },
    own_words=_own_words,
    about=_about,
)
