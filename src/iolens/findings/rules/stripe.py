"""A large shared file lies on a single OST."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.remedies import directory_of, stripes_for
from iolens.findings.rule import Evidence, FindingRule, Inputs


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    """The largest such file, and how many more there are."""
    files = [
        file
        for file in inputs["striped_files"]
        if file.ranks > 1 and file.stripe_count == 1 and (file.extent_bytes or 0) >= thresholds["least_bytes"]
    ]
    if files:
        largest = max(files, key=lambda file: file.extent_bytes)
        yield {
            "file": largest.path or "(not named in the log)",
            "extent_bytes": largest.extent_bytes,
            "extent_gib": largest.extent_bytes / (1 << 30),
            "ranks": largest.ranks,
            "stripe_count": 1,
            "advised_stripe_count": stripes_for(largest.extent_bytes),
            "files": len(files),
        }


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    return {"stripes": str(evidence["advised_stripe_count"]), "directory": directory_of(str(evidence["file"]))}


RULE: Final = FindingRule(
    code="stripe",
    title="a large shared file on one OST",
    severity="warn",
    inputs=("striped_files",),
    thresholds={"least_bytes": 1 << 30},
    check=_check,
    condition="a file that several ranks use has at least {least_bytes:,.0f} bytes and one stripe",
    message="{file} has {extent_gib:,.1f} GiB on one OST and is used by {ranks:,} ranks; files like it: {files:,}",
    remedy="Before the file is written anew: `lfs setstripe -c {stripes} {directory}` (new files there are then "
    "striped over {stripes} OSTs). A file that exists: `lfs migrate -c {stripes} FILE`.",
    reference="Lustre Operations Manual, Configuring Lustre File Striping; Saini et al., Lustre and NASA Applications "
    "on Pleiades (2012), stripe study",
    general_words={"stripes": "8", "directory": "DIR"},
    own_words=_own_words,
)
