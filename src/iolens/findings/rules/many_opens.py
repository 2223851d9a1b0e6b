"""Files are opened very often for the number of processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.rule import Evidence, FindingRule, Inputs


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    opens, processes = inputs["opens"], inputs["processes"]
    if opens > thresholds["opens_per_process"] * processes:
        yield {"opens": opens, "processes": processes, "opens_per_process": opens / processes}


RULE: Final = FindingRule(
    code="many-opens",
    title="many opens",
    severity="warn",
    inputs=("opens", "processes"),
    thresholds={"opens_per_process": 100},
    check=_check,
    condition="more than {opens_per_process:g} opens for each process",
    message="{opens:,} opens by {processes:,} processes, {opens_per_process:,.0f} each",
    remedy="Open a file once and keep it open; put many small files into one (HDF5, a tar file, a database); "
    "load libraries and Python packages from a container image or from memory.",
    reference="Saini et al., Lustre and NASA Applications on Pleiades (2012), Table II and Fig. 4",
)
