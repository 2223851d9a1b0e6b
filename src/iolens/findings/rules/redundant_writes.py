"""More is written to a file than there is in it: the same places are written again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from iolens.findings.remedies import DRISHTI
from iolens.findings.rule import (
    NOT_NAMED,
    Evidence,
    FileUse,
    FindingRule,
    Inputs,
    Part,
    about_files,
    files_evidence,
)


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    """The file to which most was written too often, and how many more there are."""
    files = [file for file in inputs["files_written"] if _is_redundant(file, thresholds)]
    if files:
        worst = max(files, key=lambda file: file.write_bytes - _extent(file))
        yield {
            "file": worst.path or NOT_NAMED,
            "write_bytes": worst.write_bytes,
            "extent_bytes": _extent(worst),
            "times": worst.write_bytes / _extent(worst),
            "written_gb": worst.write_bytes / 1e9,
            **files_evidence(files),
            "files_write_s": sum(file.write_s or 0.0 for file in files),
        }


def _extent(file: FileUse) -> int:
    return file.written_extent_bytes or 0


def _is_redundant(file: FileUse, thresholds: Mapping[str, float]) -> bool:
    if not _extent(file) or file.write_bytes < thresholds["least_bytes"]:
        return False
    return file.write_bytes > thresholds["factor"] * _extent(file)


def _about(inputs: Inputs, evidence: Evidence) -> Part:
    """Their writes alone."""
    return replace(about_files(inputs, evidence), kinds=("write",), seconds=float(evidence["files_write_s"]) or None)


RULE: Final = FindingRule(
    code="redundant-writes",
    title="the same data are written again",
    severity="warn",
    inputs=("files_written",),
    thresholds={"factor": 2, "least_bytes": 1 << 20},
    check=_check,
    condition="more than {factor:g} times as far as a file was written, and at least {least_bytes:,.0f} bytes, are "
    "written to it",
    message="{written_gb:,.3g} GB were written to {file}, {times:,.1f} times the {extent_bytes:,} bytes that it was "
    "written to; files like it: {files:,}",
    remedy="Write a place once: keep what still changes in memory and write it at the end. Where several ranks write "
    "the same data, let one of them do it. A checkpoint that replaces the last one is meant to do so: then there is "
    "nothing to change.",
    reference=f"Darshan, POSIX_BYTES_WRITTEN and POSIX_MAX_BYTE_WRITTEN; {DRISHTI}",
    about=_about,
)
