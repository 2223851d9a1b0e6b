"""One of many ranks or nodes writes nearly everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.rule import Evidence, FindingRule, Inputs


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    unit, by_writer = inputs["written_by"]  # "ranks" or "nodes", and bytes by the name of each
    total = sum(by_writer.values())
    if len(by_writer) < thresholds["fewest_writers"] or total < thresholds["least_bytes"]:
        return
    name = max(by_writer, key=lambda key: by_writer[key])
    if 100 * by_writer[name] > thresholds["share_pct"] * total:
        yield {
            "writer": name,
            "writers": len(by_writer),
            "unit": unit,
            "written_bytes": by_writer[name],
            "written_pct": 100 * by_writer[name] / total,
            "total_gb": total / 1e9,
        }


RULE: Final = FindingRule(
    code="single-writer",
    title="a single writer",
    severity="warn",
    inputs=("written_by",),
    thresholds={"share_pct": 90, "least_bytes": 1 << 30, "fewest_writers": 16},
    check=_check,
    condition="one of at least {fewest_writers:g} ranks (or nodes, where ranks are not known) writes more than "
    "{share_pct:g} % of at least {least_bytes:,.0f} bytes",
    message="{written_pct:.0f} % of {total_gb:,.1f} GB were written by one of {writers:,} {unit}: {writer}",
    remedy="Write in parallel: collective MPI-IO, parallel HDF5, or a file for each group of ranks; stripe a large "
    "shared file over more OSTs.",
    reference="Saini et al., Lustre and NASA Applications on Pleiades (2012), single-process writes, Fig. 13",
)
