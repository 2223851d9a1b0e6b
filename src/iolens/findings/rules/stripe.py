"""A large shared file lies on a single OST."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.remedies import SETSTRIPE_WORDS, setstripe_words, stripes_for
from iolens.findings.rule import NOT_NAMED, Evidence, FileUse, FindingRule, Inputs, about_files, files_evidence


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    """The largest such file, and how many more there are."""
    files = _on_one_ost(inputs, thresholds["least_bytes"])
    if files:
        largest = max(files, key=_size)
        yield {
            "file": largest.path or NOT_NAMED,
            "extent_bytes": _size(largest),
            "extent_gib": _size(largest) / (1 << 30),
            "ranks": largest.ranks,
            "stripe_count": 1,
            "advised_stripe_count": stripes_for(_size(largest)),
            "written_bytes": largest.write_bytes,
            **files_evidence(files),
        }


def _on_one_ost(inputs: Inputs, least_bytes: float) -> list[FileUse]:
    return [
        file
        for file in inputs["striped_files"]
        if file.ranks > 1 and file.stripe_count == 1 and _size(file) >= least_bytes
    ]


def _size(file: FileUse) -> int:
    return file.extent_bytes or 0


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    named = [file for file in inputs["striped_files"] if file.path == evidence["file"]]
    words = setstripe_words(named[0] if named else None, float(evidence["extent_bytes"]))
    return {**words, "anew": _ANEW.format(**words) if evidence["written_bytes"] else ""}


_ANEW: Final = (
    "Before the file is written anew: `lfs setstripe -c {stripes} {directory}` (new files there are then striped over "
    "{stripes} OSTs).{put_in} "
)


RULE: Final = FindingRule(
    code="stripe",
    title="a large shared file on one OST",
    severity="warn",
    inputs=("striped_files",),
    thresholds={"least_bytes": 1 << 30},
    check=_check,
    condition="a file that several ranks use has at least {least_bytes:,.0f} bytes and one stripe",
    message="{file} has {extent_gib:,.1f} GiB on one OST and is used by {ranks:,} ranks; files like it: {files:,}",
    remedy="{anew}A file that exists: `lfs migrate -c {stripes} FILE`. {stripes} is {stripes_from}; it cannot be more "
    "than there are OSTs.",
    reference="Lustre Operations Manual, Configuring Lustre File Striping; Saini et al., Lustre and NASA Applications "
    "on Pleiades (2012), stripe study",
    general_words={**SETSTRIPE_WORDS, "anew": _ANEW.format(**SETSTRIPE_WORDS)},
    own_words=_own_words,
    about=about_files,
)
