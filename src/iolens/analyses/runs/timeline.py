"""One run's I/O activity by rank over time (D11, the study's Fig. 13), and the phases it falls into.

From what the log has of it, the most exact first: DXT segments, the heat map, or the times of each file's first and
last access, between which its bytes are spread evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.runs.used_files import DATA_MODULES, Floats, RunColumns, RunRecord
from iolens.schema import DIRECTIONS
from iolens.units import from_epoch_us

MOST_ROWS: Final = 128  # of ranks or groups of ranks
MOST_BINS: Final = 200
AT_ONCE: Final = 4096  # pieces that are spread over bins together
UNCOORDINATED_PCT: Final = 10.0  # of the ranks: fewer are active together where the run is as that of Fig. 13

Integers = NDArray[np.int64]


class Segments(Protocol):
    """Some accesses of a DXT trace: of one module, rank and direction; arrays of one length."""

    @property
    def module(self) -> str:
        """POSIX or MPI-IO."""

    @property
    def rank(self) -> int:
        """Whose."""

    @property
    def direction(self) -> str:
        """Reads or writes: `read`, `write`."""

    @property
    def length(self) -> NDArray[np.int64]:
        """Bytes."""

    @property
    def start_s(self) -> NDArray[np.float64]:
        """Since the start of the run."""

    @property
    def end_s(self) -> NDArray[np.float64]:
        """Likewise."""


@dataclass(frozen=True, slots=True)
class IoPhase:
    """A stretch of bins with bytes, and none before or after."""

    start_s: float
    end_s: float
    read_bytes: int
    write_bytes: int
    mib_per_s: float
    active_ranks: int  # or rows, where ranks are grouped
    active_ranks_pct: float  # of the ranks that are known


@dataclass(frozen=True, slots=True, eq=False)
class RunTimeline:
    """Bytes by rank and time. Rows are ranks, or groups of so many; one more row holds files that all ranks share."""

    run_id: str | None
    jobid: str | None
    executable: str | None
    start: datetime | None
    runtime_s: float | None
    nprocs: int | None
    origin: str  # dxt, heatmap or records
    modules: Sequence[str]
    bin_s: float
    bins: int
    ranks_per_row: int
    first_ranks: Sequence[int]  # of each row
    has_shared_row: bool  # the last row is of files whose ranks are not known
    active_ranks: int  # that moved bytes
    active_time_pct: float | None  # of the bins that have bytes
    mean_active_ranks_pct: float | None  # over bins with bytes: how many of the ranks are active together
    coordinated: bool | None
    read_bytes: Sequence[int]  # by bin
    write_bytes: Sequence[int]
    phases: Sequence[IoPhase]
    notes: Sequence[str]
    by_rank: Mapping[str, Floats] = field(metadata={"json": False})  # read and write: rows × bins


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """Bytes of one direction between two times, of one rank each; rank −1: of nobody known."""

    direction: str
    ranks: Integers
    starts_s: Floats
    ends_s: Floats
    moved: Floats

    def part(self, chosen: slice) -> _Pieces:
        """Some of them."""
        return _Pieces(
            self.direction, self.ranks[chosen], self.starts_s[chosen], self.ends_s[chosen], self.moved[chosen]
        )


class _RankGrid:
    """Rows of ranks × bins of time."""

    def __init__(self, ranks: int, bin_s: float, bins: int) -> None:
        self.per_row = -(-ranks // MOST_ROWS) if ranks > MOST_ROWS else 1
        self.rows = -(-ranks // self.per_row)
        self.bins, self.bin_s, self.ranks = bins, bin_s, ranks
        self.moved = {direction: np.zeros((self.rows + 1, bins)) for direction in DIRECTIONS}
        self.seen = np.zeros(ranks, dtype=bool)

    def add(self, pieces: _Pieces) -> None:
        """Spread every piece evenly over the bins that it touches."""
        for first in range(0, len(pieces.moved), AT_ONCE):
            self._add(pieces.part(slice(first, first + AT_ONCE)))

    def _add(self, pieces: _Pieces) -> None:
        ranks, starts_s, ends_s, moved = pieces.ranks, pieces.starts_s, pieces.ends_s, pieces.moved
        inside = (ranks >= 0) & (ranks < self.ranks)
        self.seen[ranks[inside & (moved > 0)]] = True
        rows = np.where(inside, ranks // self.per_row, self.rows)
        low = np.clip(starts_s / self.bin_s, 0, self.bins - 1e-9)
        high = np.maximum(np.clip(ends_s / self.bin_s, 0, self.bins), low)
        begin = low.astype(np.int64)
        end = np.clip(np.ceil(high).astype(np.int64) - 1, begin, self.bins - 1)
        touched = end - begin + 1
        piece = np.repeat(np.arange(len(moved)), touched)
        place = np.arange(len(piece)) - np.repeat(np.cumsum(touched) - touched, touched) + begin[piece]
        width = high - low
        overlap = np.minimum(high[piece], place + 1) - np.maximum(low[piece], place)
        share = np.where(width[piece] > 0, overlap / np.where(width > 0, width, 1.0)[piece], 1.0 / touched[piece])
        cells = rows[piece] * self.bins + place
        added = np.bincount(cells, moved[piece] * share, (self.rows + 1) * self.bins)
        self.moved[pieces.direction] += added.reshape(self.rows + 1, self.bins)


def run_timeline(record: RunRecord, segments: Iterable[Segments] | None = None) -> RunTimeline:
    """The activity of a run; with `segments` of DXT from those, chunk by chunk."""
    if segments is not None:
        return _of_trace(record, segments)
    if len(record.series):
        return _of_heat_map(record)
    notes = ["bytes of each file are spread evenly between its first and its last access"]
    if record.run["partial"]:
        notes.append("the log is not complete: some files are not in it")
    return _timeline(record, "records", _modules(record.files), _of_records(record.files), notes)


def _timeline(
    record: RunRecord, origin: str, modules: Sequence[str], pieces: Iterator[_Pieces], notes: Sequence[str]
) -> RunTimeline:
    grid = _empty_grid(record, origin == "heatmap")
    for piece in pieces:
        grid.add(piece)
    return _result(record, origin, modules, grid, notes)


def _empty_grid(record: RunRecord, has_bins: bool = False) -> _RankGrid:
    """Bins of the heat map as they are, where there are not too many; else as many as a picture shows."""
    ranks, runtime_s = max(record.run["processes"] or 1, 1), max(record.run["duration_s"] or 0.0, 1e-6)
    if has_bins:
        bin_s = float(record.series.numbers("bin_s").min())
        last = int(record.series.numbers("bin").max()) + 1
        bins = max(int(np.ceil(runtime_s / bin_s - 1e-9)), last)
        if bins <= MOST_BINS:
            return _RankGrid(ranks, bin_s, bins)
    return _RankGrid(ranks, runtime_s / MOST_BINS, MOST_BINS)


def _of_heat_map(record: RunRecord) -> RunTimeline:
    """Bins of the heat map; those of MPI-IO are of the same bytes as those of POSIX, unless only MPI-IO was watched."""
    modules = sorted({*record.series.texts("module")})
    chosen = [module for module in modules if module in DATA_MODULES] or modules
    series = record.series.where(np.isin(record.series.texts("module"), chosen))
    return _timeline(record, "heatmap", chosen, _of_bins(series), [])


def _of_bins(series: RunColumns) -> Iterator[_Pieces]:
    """A bin of a group of ranks is shared out among them: nothing else is known."""
    bin_s = series.numbers("bin_s")
    group = np.maximum(np.nan_to_num(series.numbers("ranks"), nan=1.0), 1).astype(np.int64)
    line = np.repeat(np.arange(len(series)), group)
    within = np.arange(len(line)) - np.repeat(np.cumsum(group) - group, group)
    ranks = series.numbers("rank").astype(np.int64)[line] + within
    starts = (series.numbers("bin") * bin_s)[line]
    for direction in DIRECTIONS:
        moved = series.sums(f"{direction}_bytes")[line] / group[line]
        yield _Pieces(direction, ranks, starts, starts + bin_s[line], moved)


def _of_records(files: RunColumns) -> Iterator[_Pieces]:
    files = files.where(np.isin(files.texts("module"), DATA_MODULES))
    ranks = np.nan_to_num(files.numbers("rank"), nan=-1.0).astype(np.int64)
    for direction in DIRECTIONS:
        starts, ends = (files.numbers(f"{direction}_{end}_s") for end in ("start", "end"))
        moved = files.sums(f"{direction}_bytes")
        known = ~np.isnan(starts) & ~np.isnan(ends) & (moved > 0)
        yield _Pieces(direction, ranks[known], starts[known], ends[known], moved[known])


def _of_trace(record: RunRecord, chunks: Iterable[Segments]) -> RunTimeline:
    """Accesses as they were traced; those of MPI-IO count where none of POSIX was traced, else they are its bytes."""
    grids: dict[str, _RankGrid] = {}
    for chunk in chunks:
        if chunk.module not in grids:
            grids[chunk.module] = _empty_grid(record)
        ranks = np.full(len(chunk.length), chunk.rank, dtype=np.int64)
        moved = chunk.length.astype(np.float64)
        grids[chunk.module].add(_Pieces(chunk.direction, ranks, chunk.start_s, chunk.end_s, moved))
    module = next((name for name in (*DATA_MODULES, *grids) if name in grids), None)
    if module is None:
        return _result(record, "dxt", (), _empty_grid(record), ["the log has no traced access"])
    return _result(record, "dxt", (module,), grids[module], [])


def _modules(files: RunColumns) -> list[str]:
    return sorted({str(module) for module in files.texts("module")} & {*DATA_MODULES})


def _result(
    record: RunRecord, origin: str, modules: Sequence[str], grid: _RankGrid, notes: Sequence[str]
) -> RunTimeline:
    run = record.run
    both = grid.moved["read"] + grid.moved["write"]
    has_shared = bool(both[-1].any())
    rows = grid.rows + has_shared
    active = both[: grid.rows] > 0
    busy = both.sum(axis=0) > 0
    together = 100 * active.sum(axis=0)[busy] / grid.rows if busy.any() and not has_shared else None
    mean = None if together is None else float(together.mean())
    return RunTimeline(
        run_id=run["run_id"],
        jobid=run["job_id"],
        executable=run["executable"],
        start=None if run["start"] is None else from_epoch_us(run["start"]),
        runtime_s=run["duration_s"],
        nprocs=run["processes"],
        origin=origin,
        modules=tuple(modules),
        bin_s=grid.bin_s,
        bins=grid.bins,
        ranks_per_row=grid.per_row,
        first_ranks=[row * grid.per_row for row in range(grid.rows)],
        has_shared_row=has_shared,
        active_ranks=int(grid.seen.sum()),
        active_time_pct=100 * float(busy.mean()),
        mean_active_ranks_pct=mean,
        coordinated=None if mean is None or grid.ranks < 2 else mean >= UNCOORDINATED_PCT,
        **{f"{direction}_bytes": _rounded(grid.moved[direction].sum(axis=0)) for direction in DIRECTIONS},
        phases=_phases(grid, busy, active),
        notes=tuple(notes),
        by_rank={direction: grid.moved[direction][:rows] for direction in DIRECTIONS},
    )


def _rounded(values: Floats) -> list[int]:
    return [round(value) for value in values.tolist()]


def _phases(grid: _RankGrid, busy: NDArray[np.bool_], active: NDArray[np.bool_]) -> list[IoPhase]:
    """Maximal runs of bins with bytes."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], busy, [False]]).astype(np.int8)))
    return [_phase(grid, int(first), int(last), active) for first, last in edges.reshape(-1, 2)]


def _phase(grid: _RankGrid, first: int, last: int, active: NDArray[np.bool_]) -> IoPhase:
    read, write = (float(grid.moved[direction][:, first:last].sum()) for direction in DIRECTIONS)
    rows = int(active[:, first:last].any(axis=1).sum())
    seconds = (last - first) * grid.bin_s
    return IoPhase(
        first * grid.bin_s, last * grid.bin_s, round(read), round(write), (read + write) / (1 << 20) / seconds,
        min(rows * grid.per_row, grid.ranks), 100 * rows / grid.rows,
    )  # fmt: skip
