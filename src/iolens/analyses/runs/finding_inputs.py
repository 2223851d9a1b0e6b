"""What the rules of findings ask of a run, from its records, with the times of files on each OST."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from iolens.analyses.runs.like_runs import like_groups
from iolens.analyses.runs.used_files import STREAMS, UsedFiles
from iolens.arrays import Booleans, Floats, Integers
from iolens.columns import DIRECTIONS
from iolens.findings.rule import KINDS, OstTimes, Writers
from iolens.models.trend import slower_ps
from iolens.run_tables import ACCESS_BINS, INTERFACES, access_column

# Times of files of equal work on one OST each, by OST (DEFINITIONS, Slow target) --------------------------------------

WITHIN_PCT: Final = 10  # bytes of files that are equal work
FEWEST_OSTS: Final = 2
LEAST_FILES: Final = 3  # on an OST: a rank test says nothing of fewer


def ost_times(used: UsedFiles) -> Sequence[Sequence[OstTimes]]:
    """For each group of files of equal work on several OSTs of one file system what each OST took."""
    osts = np.array([_index(text) for text in used.osts], np.int64)
    moved = used.read_bytes + used.write_bytes
    known = np.flatnonzero((used.stripe_count == 1) & (osts >= 0) & (used.ranks > 0) & (moved > 0))
    if not known.size:
        return []
    _, mounts = np.unique(used.mounts[known].astype(str), return_inverse=True)
    ranks, read, written = (
        values[known].astype(np.int64) for values in (used.ranks, used.read_bytes, used.write_bytes)
    )
    numbers = like_groups([ranks, mounts], [read, written], WITHIN_PCT)
    waits = _RankTimes.of(used)
    return [_by_ost(used, osts[group], group, waits) for group in _groups(numbers, known) if _is_several(osts[group])]


@dataclass(frozen=True, slots=True, eq=False)
class _RankTimes:
    """I/O time of each rank in files of its own, and the ranks from the slowest on."""

    seconds: Floats
    slowest_first: Integers

    @classmethod
    def of(cls, used: UsedFiles) -> Self:
        is_own = used.rank >= 0
        seconds = np.bincount(used.rank[is_own].astype(np.int64), used.io_s[is_own], 1).astype(np.float64)
        return cls(seconds, np.argsort(-seconds, kind="stable"))

    def earlier_s(self, ranks: Integers, excess_s: Floats) -> float:
        """How much earlier the slowest rank would be if these ranks were faster by so much."""
        named, where = np.unique(ranks, return_inverse=True)
        affected = {*named.tolist()}
        others_s = next((self.seconds[rank] for rank in self.slowest_first.tolist() if rank not in affected), 0.0)
        left_s = self.seconds[named] - np.bincount(where, excess_s, named.size)
        return float(self.seconds.max() - max(others_s, left_s.max()))


def _groups(numbers: Integers, places: Integers) -> Iterator[Integers]:
    """Places with the same number, of each that is there more than once."""
    order = np.argsort(numbers, kind="stable")
    parts = np.split(places[order], np.flatnonzero(np.diff(numbers[order])) + 1)
    return (part for part in parts if part.size >= FEWEST_OSTS)


def _is_several(osts: Integers) -> bool:
    return np.unique(osts).size >= FEWEST_OSTS


def _by_ost(used: UsedFiles, osts: Integers, group: Integers, waits: _RankTimes) -> list[OstTimes]:
    each_s, moved = used.io_s[group] / used.ranks[group], used.read_bytes[group] + used.write_bytes[group]
    named, where = np.unique(osts, return_inverse=True)
    ps = slower_ps(each_s, where)
    result = []
    for place, ost in enumerate(named.tolist()):
        here = where == place
        if int(here.sum()) < LEAST_FILES:
            continue
        result.append(
            OstTimes(
                ost=ost,
                mount=used.mounts[group[0]],
                files=int(here.sum()),
                file_bytes=int(moved[here].mean()),
                mean_s=float(each_s[here].mean()),
                p=float(ps[place]),
                io_s=float(used.io_s[group[here]].sum()),
                lost_s=_lost_s(used.rank[group[here]], each_s, here, waits),
            )
        )
    return result


def _lost_s(ranks: Floats, each_s: Floats, here: Booleans, waits: _RankTimes) -> float:
    """What the slowest rank would gain if files here took the median time of the others; shared ones cost all ranks."""
    excess_s = np.maximum(each_s[here] - float(np.median(each_s[~here])), 0.0)
    is_own = ranks >= 0
    shared_s = float(excess_s[~is_own].sum())
    if not is_own.any():
        return shared_s
    return shared_s + waits.earlier_s(ranks[is_own].astype(np.int64), excess_s[is_own])


def _index(text: str | None) -> int:
    """Of the only OST; −1: several, or not known."""
    return int(text) if text is not None and text.isdigit() else -1


# What the rules of findings ask of a run, from its row of `runs` and the records of its files -------------------------

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
