"""One of many ranks or nodes writes nearly everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.remedies import SETSTRIPE_WORDS, is_collective, setstripe_words
from iolens.findings.rule import Evidence, FindingRule, Inputs, Part


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    writers = inputs["written_by"]
    if writers.count < thresholds["fewest_writers"] or writers.total_bytes < thresholds["least_bytes"]:
        return
    if 100 * writers.busiest_bytes > thresholds["share_pct"] * writers.total_bytes:
        yield {
            "writer": writers.busiest,
            "writers": writers.count,
            "unit": writers.unit,
            "written_bytes": writers.busiest_bytes,
            "written_pct": 100 * writers.busiest_bytes / writers.total_bytes,
            "total_gb": writers.total_bytes / 1e9,
        }


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    written = float(evidence["total_gb"]) * 1e9
    how = {"how": _COLLECTIVE_ALREADY} if is_collective(inputs) else {}
    return {**how, **setstripe_words(inputs.get("main_output"), written)}


def _about(inputs: Inputs, evidence: Evidence) -> Part:
    write_s = (inputs.get("io_kinds_s") or {}).get("write")
    return Part(("write",), moved_bytes=float(evidence["written_bytes"]), waited_s=write_s)


_COLLECTIVE_ALREADY: Final = (
    "The writes are collective already, by a single aggregator: let there be one for each node or OST (hint cb_nodes, "
    "and romio_cb_write=enable), and see that cb_config_list does not keep them to one"
)
_PARALLEL: Final = (
    "Write in parallel: collective MPI-IO (MPI_File_write_at_all with the hints romio_cb_write=enable and "
    "cb_nodes), parallel HDF5 (H5Pset_fapl_mpio), or a file for each group of ranks"
)

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
    remedy="{how}. Then stripe a large shared file over more OSTs: `lfs setstripe -c {stripes} {directory}` "
    "({stripes}: {stripes_from}).{put_in}",
    also_reads=("strategy", "main_output", "moved_bytes", "io_kinds_s"),
    general_words={"how": _PARALLEL, **SETSTRIPE_WORDS},
    own_words=_own_words,
    about=_about,
    reference="Saini et al., Lustre and NASA Applications on Pleiades (2012), single-process writes, Fig. 13",
)
