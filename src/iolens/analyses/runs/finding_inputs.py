"""What the rules of findings ask of a run, from its row of `runs` and the records of its files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from iolens.analyses.runs.ost_times import ost_times
from iolens.analyses.runs.used_files import STREAMS, UsedFiles
from iolens.columns import DIRECTIONS
from iolens.findings.rule import KINDS, Writers
from iolens.run_tables import ACCESS_BINS, INTERFACES, access_column

SLOWEST_RANK: Final = "slowest_rank"  # the method that has the time of one rank


def finding_inputs(
    run: Mapping[str, Any], strategy: str | None, used: UsedFiles | None = None, nodes: int | None = None
) -> dict[str, Any]:
    """Inputs by name; None: this run, or what is stored of it, does not tell."""
    return {
        "opens": run["opens"],
        "processes": run["processes"] or None,
        "duration_s": run["duration_s"],
        "moved_bytes": _moved(run),
        "busiest_rank_bytes": _busiest_rank_bytes(run, used),
        "metadata_s": run["metadata_s"],
        "io_s": io_seconds(run),
        "io_kinds_s": {kind: run[f"{kind}_s"] for kind in KINDS},
        "written_by": _writers(run),
        "access_sizes": access_sizes(run),
        "posix_ops": _by_direction(run, "posix_{}s"),
        "sequential_ops": _by_direction(run, "sequential_{}s"),
        "misaligned_ops": run["misaligned_ops"],
        "key_access_bytes": run["key_access_bytes"],
        "slowest_rank_s": _slowest_rank_s(run),
        "strategy": strategy,
        "interface": main_interface(run),
        "nodes": nodes if nodes is not None else run["nodes"],
        **(_of_files(used) if used is not None else {}),
    }


def io_seconds(run: Mapping[str, Any]) -> float | None:
    """Time in reads, writes and metadata operations, summed over ranks; None: none of them is known."""
    parts = [run[name] for name in ("read_s", "write_s", "metadata_s") if run[name] is not None]
    return sum(parts) if parts else None


def access_sizes(run: Mapping[str, Any]) -> dict[str, dict[int | None, int]] | None:
    """POSIX accesses by direction and upper end of the bin, None of the largest; None: no POSIX module."""
    counts = {
        direction: {upper: run[access_column(direction, upper)] for upper in (*ACCESS_BINS, None)}
        for direction in DIRECTIONS
    }
    known = [{upper: count for upper, count in sizes.items() if count is not None} for sizes in counts.values()]
    return dict(zip(counts, known, strict=True)) if any(known) else None


def main_interface(run: Mapping[str, Any]) -> str | None:
    """The interface that most bytes went through; None: no bytes."""
    moved = {
        name: sum(run[f"{name}_{direction}_bytes"] or 0 for direction in DIRECTIONS) for name in INTERFACES
    }  # fmt: skip
    name = max(moved, key=lambda key: moved[key])
    return name if moved[name] else None


def _writers(run: Mapping[str, Any]) -> Writers | None:
    if run["busiest_writer_bytes"] is None or not run["processes"] or run["write_bytes"] is None:
        return None
    busiest = f"rank {run['busiest_writer']}"
    return Writers("ranks", run["processes"], busiest, run["busiest_writer_bytes"], run["write_bytes"])


def _by_direction(run: Mapping[str, Any], name: str) -> dict[str, int] | None:
    counts = {direction: run[name.format(direction)] for direction in DIRECTIONS}
    return None if any(count is None for count in counts.values()) else counts


def _busiest_rank_bytes(run: Mapping[str, Any], used: UsedFiles | None) -> float | None:
    """Of the rank that moved most; where shared records hide ranks, as if one had moved all bytes of shared files."""
    known: int | None = run["busiest_rank_bytes"]
    if known is not None or used is None or not len(used):
        return known
    is_own, moved = used.rank >= 0, used.read_bytes + used.write_bytes
    own = np.bincount(used.rank[is_own].astype(np.int64), moved[is_own], 1)
    return float(own.max() + moved[~is_own].sum())


def _moved(run: Mapping[str, Any]) -> int | None:
    known = [run[f"{direction}_bytes"] for direction in DIRECTIONS]
    return None if None in known else sum(known)


def _slowest_rank_s(run: Mapping[str, Any]) -> float | None:
    """Where it is the time of a rank: not of a file's first open to its last access, nor of files used side by side."""
    is_of_a_rank = run["slowest_rank_method"] in (None, SLOWEST_RANK) and not run["shared_files_overlap"]
    seconds: float | None = run["slowest_rank_s"] if is_of_a_rank else None
    return seconds


def _of_files(used: UsedFiles) -> dict[str, Any]:
    is_striped = ~np.isnan(used.stripe_count)
    moved = used.read_bytes + used.write_bytes
    most = int(moved.argmax()) if moved.any() else None  # the file that most bytes were moved of
    alignment = np.nan if most is None else used.alignment_bytes[most]
    is_file = ~np.isin(used.paths, STREAMS)
    is_stdio = is_file & (used.interfaces == "stdio") & (moved > 0)
    written = np.where(is_file, used.write_bytes, 0.0)
    return {
        "file_uses": used.uses,
        "shared_mpiio_files": used.chosen((used.ranks > 1) & (used.independent_ops + used.collective_ops > 0)),
        "files_read": used.chosen(used.read_bytes > used.extent_bytes),
        "striped_files": used.chosen(is_striped) if is_striped.any() else None,
        "files_written": used.chosen(used.write_bytes > used.written_extent_bytes),
        "shared_files": used.chosen((used.ranks > 1) & ~np.isnan(used.busiest_rank_bytes)),
        "stdio_files": used.chosen(is_stdio),
        "ost_times": ost_times(used) if is_striped.any() else None,
        "main_output": used.chosen(np.array([written.argmax()]))[0] if written.any() else None,
        "alignment_bytes": None if np.isnan(alignment) else int(alignment),
    }
