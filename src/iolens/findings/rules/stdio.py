"""Most bytes go through STDIO, whose buffer is small and which cannot be collective."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.remedies import DRISHTI, LARGER_ACCESSES
from iolens.findings.rule import Evidence, FindingRule, Inputs, about_files, files_evidence


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    files, whole = inputs["stdio_files"], inputs["moved_bytes"]
    moved = sum(file.moved_bytes for file in files)
    if moved >= thresholds["least_bytes"] and 100 * moved > thresholds["share_pct"] * whole:
        yield {"stdio_pct": 100 * moved / whole, "moved_gb": whole / 1e9, **files_evidence(files)}


RULE: Final = FindingRule(
    code="stdio",
    title="STDIO as the main interface",
    severity="warn",
    inputs=("stdio_files", "moved_bytes"),
    thresholds={"share_pct": 50, "least_bytes": 100 << 20},
    check=_check,
    condition="more than {share_pct:g} % of the bytes, and at least {least_bytes:,.0f}, go through STDIO (fopen, "
    "fread, fprintf), standard streams left out",
    message="{stdio_pct:.0f} % of {moved_gb:,.3g} GB went through STDIO; files: {files:,}",
    remedy="For large data use write() and read() on records of 1 MiB or more, MPI-IO, or a library on it (HDF5, "
    f"PnetCDF). Where STDIO stays: {LARGER_ACCESSES['stdio'].removeprefix('STDIO: ')}",
    reference=f"Darshan, STDIO module; {DRISHTI}",
    about=about_files,
)
