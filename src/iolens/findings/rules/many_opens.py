"""Files are opened very often for the number of processes, or again and again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.remedies import CARNS
from iolens.findings.rule import Evidence, FindingRule, Inputs, Part


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    opens, processes, uses = inputs["opens"], inputs["processes"], inputs.get("file_uses")
    evidence = {"opens": opens, "processes": processes, "opens_per_process": opens / processes}
    if uses:
        evidence |= {"file_uses": uses, "opens_per_file": opens / uses}
    if opens > thresholds["opens_per_process"] * processes:
        yield {**evidence, "rate": f"{opens / processes:,.0f} each"}
    elif uses and opens > thresholds["opens_per_file"] * uses:
        yield {**evidence, "rate": f"{opens / uses:,.0f} for each file that a process used"}


def _about(inputs: Inputs, evidence: Evidence) -> Part:
    return Part(("metadata",), accesses=float(evidence["opens"]))


RULE: Final = FindingRule(
    code="many-opens",
    title="many opens",
    severity="warn",
    inputs=("opens", "processes"),
    also_reads=("file_uses", "metadata_s", "io_s"),
    thresholds={"opens_per_process": 100, "opens_per_file": 10},
    check=_check,
    condition="more than {opens_per_process:g} opens for each process, or more than {opens_per_file:g} of a file by "
    "each process that uses it",
    message="{opens:,} opens by {processes:,} processes, {rate}",
    remedy="Open a file once and keep it open; put many small files into one (HDF5, a tar file, a database); "
    "load libraries and Python packages from a container image or from memory.",
    reference=f"Saini et al., Lustre and NASA Applications on Pleiades (2012), Table II and Fig. 4; {CARNS}, "
    "Section 5.1",
    about=_about,
)
