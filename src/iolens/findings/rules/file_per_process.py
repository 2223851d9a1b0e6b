"""Every process has files of its own, and making them takes most of the I/O time: the case of the study's Section 6."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.remedies import CARNS, SETSTRIPE_WORDS, collective_hints, setstripe_words
from iolens.findings.rule import Evidence, FindingRule, Inputs, Part

ORIGINAL_S: Final = 728.0  # two checkpoints of 8,192 nodes into a file for each node
PRECREATED_S: Final = 25.0  # the same into files that were there before
COLLECTIVE_S: Final = 17.0  # the same into one file by collective MPI-IO
LIKE_THE_STUDY_PCT: Final = 90  # of the I/O time in metadata operations: "nearly all"
LIKE_THE_STUDY_PROCESSES: Final = 1024


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    metadata_s, io_s = inputs["metadata_s"], inputs["io_s"]
    is_bound = metadata_s >= thresholds["shortest_s"] and 100 * metadata_s >= thresholds["share_pct"] * io_s
    if inputs["strategy"] == "file_per_process" and is_bound:
        yield {
            "processes": inputs["processes"],
            "files": inputs["file_uses"],
            "metadata_s": metadata_s,
            "io_s": io_s,
            "metadata_pct": 100 * metadata_s / io_s,
        }


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    return {
        "hints": collective_hints(inputs),
        **setstripe_words(inputs.get("main_output"), inputs.get("moved_bytes")),
    }


def _about(inputs: Inputs, evidence: Evidence) -> Part:
    return Part(("metadata",), float(evidence["metadata_s"]))


def _study_gain(inputs: Inputs, evidence: Evidence) -> float | None:
    """728 s to 17 s, where nearly all I/O time is metadata and there are many processes, as in the study."""
    share = float(evidence["metadata_pct"])
    is_like = share >= LIKE_THE_STUDY_PCT and int(evidence["processes"]) >= LIKE_THE_STUDY_PROCESSES
    return ORIGINAL_S / COLLECTIVE_S if is_like else None


RULE: Final = FindingRule(
    code="file-per-process",
    title="a file for each process, bound by metadata",
    severity="warn",
    inputs=("strategy", "metadata_s", "io_s", "processes", "file_uses"),
    also_reads=("nodes", "main_output", "moved_bytes"),
    thresholds={"share_pct": 40, "shortest_s": 10},
    check=_check,
    condition="the strategy is file per process, and at least {share_pct:g} % of the I/O time, and at least "
    "{shortest_s:g} s, are metadata operations",
    message="{processes:,} processes use files of their own ({files:,}), and {metadata_pct:.0f} % of their I/O time "
    "({metadata_s:,.0f} of {io_s:,.0f} s) goes into metadata operations",
    remedy="Write one shared file with collective MPI-IO (MPI_File_open, MPI_File_write_at_all), parallel HDF5 or "
    "PnetCDF: `{hints}`; stripe its directory: `lfs setstripe -c {stripes} {directory}` ({stripes}: "
    "{stripes_from}, at most as many as there are OSTs).{put_in} To see what making the files costs, "
    f"make them before the run: the study's application then took {PRECREATED_S:.0f} in place of {ORIGINAL_S:.0f} s, "
    f"and {COLLECTIVE_S:.0f} s with one shared file.",
    reference=f"{CARNS}, Section 6 and Fig. 14",
    general_words={"hints": collective_hints({}), **SETSTRIPE_WORDS},
    own_words=_own_words,
    study_gain=_study_gain,
    about=_about,
)
