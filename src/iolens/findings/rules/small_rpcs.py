"""Most RPCs of a direction carry little data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.rule import Evidence, FindingRule, Inputs, Part


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    for direction in ("read", "write"):
        sizes = [(size, counts[direction]) for size, counts in inputs["rpc_sizes"].items()]
        rpcs = sum(count for _, count in sizes)
        small = sum(count for size, count in sizes if size <= thresholds["small_bytes"])
        if rpcs >= thresholds["fewest_rpcs"] and 100 * small > thresholds["share_pct"] * rpcs:
            yield {
                "direction": direction,
                "small_rpcs": small,
                "rpcs": rpcs,
                "small_pct": 100 * small / rpcs,
                "small_kib": thresholds["small_bytes"] / 1024,
            }


def _about(inputs: Inputs, evidence: Evidence) -> Part:
    return Part((str(evidence["direction"]),), accesses=float(evidence["small_rpcs"]))


RULE: Final = FindingRule(
    code="small-rpcs",
    title="small RPCs",
    severity="warn",
    inputs=("rpc_sizes",),
    thresholds={"small_bytes": 65536, "share_pct": 50, "fewest_rpcs": 1000},
    check=_check,
    condition="more than {share_pct:g} % of at least {fewest_rpcs:,.0f} RPCs of a direction are "
    "{small_bytes:,.0f} bytes or less",
    message="{small_pct:.0f} % of {rpcs:,} {direction} RPCs are {small_kib:g} KiB or less",
    remedy="Read and write in pieces of 1 MiB or more and in the order of the file; buffer small records in memory; "
    "use collective MPI-IO or a library that aggregates (HDF5, ADIOS).",
    reference="Saini et al., Lustre and NASA Applications on Pleiades (2012), Sections III and VI, Figs. 5–9",
    about=_about,
)
