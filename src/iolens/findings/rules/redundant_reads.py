"""More is read of a file than there is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from iolens.findings.remedies import CARNS
from iolens.findings.rule import NOT_NAMED, Evidence, FileUse, FindingRule, Inputs, Part, about_files, files_evidence


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    """The file of which most was read too often, and how many more there are."""
    files = [file for file in inputs["files_read"] if _is_redundant(file, thresholds)]
    if files:
        worst = max(files, key=lambda file: file.read_bytes - file.extent_bytes)
        yield {
            "file": worst.path or NOT_NAMED,
            "read_bytes": worst.read_bytes,
            "extent_bytes": worst.extent_bytes,
            "times": worst.read_bytes / worst.extent_bytes,
            "ranks": worst.ranks,
            "read_gb": worst.read_bytes / 1e9,
            **files_evidence(files),
            "files_read_s": sum(file.read_s or 0.0 for file in files),
        }


def _is_redundant(file: FileUse, thresholds: Mapping[str, float]) -> bool:
    if not file.extent_bytes or file.read_bytes < thresholds["least_bytes"]:
        return False
    return file.read_bytes > thresholds["factor"] * file.extent_bytes


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    ranks = evidence["ranks"]
    return _BY_MANY if isinstance(ranks, int) and ranks > 1 else _BY_ONE


def _about(inputs: Inputs, evidence: Evidence) -> Part:
    """Their reads alone."""
    return replace(about_files(inputs, evidence), kinds=("read",), seconds=float(evidence["files_read_s"]) or None)


_BY_MANY: Final = {
    "how": "Let one rank read the file and send it to the others (MPI_Bcast), or read it collectively "
    "(MPI_File_read_at_all, hint romio_cb_read=enable)"
}
_BY_ONE: Final = {"how": "Keep what was read in memory; copy a file that is read again and again to the node ($TMPDIR)"}

RULE: Final = FindingRule(
    code="redundant-reads",
    title="the same data are read again",
    severity="warn",
    inputs=("files_read",),
    thresholds={"factor": 2, "least_bytes": 1 << 20},
    check=_check,
    condition="more than {factor:g} times the extent of a file, and at least {least_bytes:,.0f} bytes, are read of it",
    message="{read_gb:,.3g} GB were read of {file}, {times:,.1f} times its {extent_bytes:,} bytes; files like it: "
    "{files:,}",
    remedy="{how}.",
    reference=f"{CARNS}, Sections 3.2 and 5.2; Darshan, POSIX_BYTES_READ and POSIX_MAX_BYTE_READ",
    general_words={"how": f"{_BY_MANY['how']}. One rank: {_BY_ONE['how']}"},
    own_words=_own_words,
    about=_about,
)
