"""Much of the I/O time goes into metadata operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.remedies import CARNS, METADATA_REMEDIES, MPI_ONE_FILE
from iolens.findings.rule import Evidence, FindingRule, Inputs, Part


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    metadata_s, io_s = inputs["metadata_s"], inputs["io_s"]
    if metadata_s >= thresholds["shortest_s"] and 100 * metadata_s >= thresholds["share_pct"] * io_s:
        yield {"metadata_s": metadata_s, "io_s": io_s, "metadata_pct": 100 * metadata_s / io_s}


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    words = METADATA_REMEDIES.get(str(inputs.get("interface")), METADATA_REMEDIES["posix"])
    has_one = inputs.get("strategy") in ("collective", "shared")
    return {"how": "" if has_one and words == MPI_ONE_FILE else f" {words}"}


def _about(inputs: Inputs, evidence: Evidence) -> Part:
    return Part(("metadata",), float(evidence["metadata_s"]))


RULE: Final = FindingRule(
    code="metadata-bound",
    title="bound by metadata",
    severity="warn",
    inputs=("metadata_s", "io_s"),
    thresholds={"share_pct": 40, "shortest_s": 10},
    check=_check,
    condition="at least {share_pct:g} % of the I/O time, and at least {shortest_s:g} s, in metadata operations",
    message="{metadata_pct:.0f} % of the time in I/O calls ({metadata_s:,.0f} of {io_s:,.0f} s) went into opens, "
    "closes, stats and the like",
    remedy="Open fewer files, each once; leave out stat calls (ls -l, os.path.exists in a loop); let one process look "
    "and send the answer to the others.{how}",
    also_reads=("interface", "strategy"),
    general_words={
        "how": " HDF5: H5Pset_coll_metadata_write(fapl, 1) and H5Pset_all_coll_metadata_ops(fapl, 1). One file for all "
        "ranks in place of one for each: MPI_File_open with collective writes."
    },
    own_words=_own_words,
    about=_about,
    reference=f"{CARNS}, Sections 5.1, 5.7 and 6; Lustre Operations Manual, Monitoring a Lustre File System",
)
