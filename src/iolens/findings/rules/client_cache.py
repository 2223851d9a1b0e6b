"""The client's cache served much of what applications read or wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.rule import Evidence, FindingRule, Inputs, Part


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    for direction in ("read", "write"):
        asked = inputs[f"{direction}_bytes"]
        moved = sum(size * counts[direction] for size, counts in inputs["rpc_sizes"].items())
        if asked > thresholds["factor"] * moved:
            yield {
                "direction": direction,
                "asked_bytes": asked,
                "rpc_bytes_max": moved,
                "asked_gb": asked / 1e9,
                "moved_gb": moved / 1e9,
            }


def _about(inputs: Inputs, evidence: Evidence) -> Part:
    return Part((str(evidence["direction"]),), moved_bytes=float(evidence["asked_bytes"]))


RULE: Final = FindingRule(
    code="client-cache",
    title="served by the client's cache",
    severity="info",
    inputs=("read_bytes", "write_bytes", "rpc_sizes"),
    thresholds={"factor": 2},
    check=_check,
    condition="applications moved more than {factor:g} times the bytes of their RPCs",
    message="{direction}s: applications moved {asked_gb:,.1f} GB, at most {moved_gb:,.1f} GB of it through RPCs; "
    "the rest stayed in the memory of the nodes",
    remedy="Data that are read again and again can be kept in the program. Written data that were overwritten, or had "
    "not reached the servers when the job ended, are in no RPC. A benchmark with this finding measured memory, not the "
    "file system.",
    reference="Saini et al., Lustre and NASA Applications on Pleiades (2012), cache study, Fig. 12",
    about=_about,
)
