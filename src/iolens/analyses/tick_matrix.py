"""The rows of a window as matrices: ticks in time order × targets. NaN is "not reported", never zero.

Rows are read once, chunk by chunk; whatever wants every sample of every target (distributions, silences, imbalance)
takes the same matrices, so that a month of 2 s samples is one pass in flat memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from iolens.analyses.fsu_sums import data_targets, of_kinds
from iolens.store.selection import Selection
from iolens.units import from_epoch_us

TABLE: Final = "target_io"
MEASURES: Final = ("read_bytes", "write_bytes", "read_ops", "write_ops", "background_bytes")
SUM_KINDS: Final = ("server", "filesystem")
MOST_ROWS: Final = 3_000_000  # in memory at a time, unless a single day has more
GAP: Final = 1.5  # ticks between two samples of a target: more is a gap

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TickMatrix:
    """Some ticks of all targets. `end_us` are the ends of the ticks; every measure is ticks × targets."""

    end_us: Integers
    tick_us: int
    targets: tuple[str, ...]
    duration_s: Floats
    measures: Mapping[str, Floats]

    def rate(self, measure: str) -> Floats:
        """Per second, ticks × targets."""
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = self.measures[measure] / self.duration_s
        return found

    def moved(self) -> Floats:
        """Bytes per second read and written together; NaN where a direction is not known."""
        return self.rate("read_bytes") + self.rate("write_bytes")

    def joined(self, later: TickMatrix) -> tuple[TickMatrix, TickMatrix]:
        """Both, with a tick that is in both in the later one only."""
        if not self.end_us.size or self.end_us[-1] != later.end_us[0]:
            return self, later
        filled = {name: _filled(values, self.measures[name][-1]) for name, values in later.measures.items()}
        rest = {name: values[:-1] for name, values in self.measures.items()}
        return (
            TickMatrix(self.end_us[:-1], self.tick_us, self.targets, self.duration_s[:-1], rest),
            TickMatrix(
                later.end_us, later.tick_us, later.targets, _filled(later.duration_s, self.duration_s[-1]), filled
            ),
        )

    @property
    def follows(self) -> NDArray[np.bool_]:
        """Whether a tick comes right after the one before it in this matrix; the first does not."""
        return np.diff(self.end_us, prepend=self.end_us[:1] - 10 * self.tick_us) <= GAP * self.tick_us


@dataclass(frozen=True, slots=True)
class Ticks:
    """The window's targets, its tick, and the matrices one after the other."""

    targets: tuple[str, ...]
    kinds: tuple[str, ...]
    tick_us: int
    known: frozenset[str]  # measures that some target has

    def matrices(
        self, selection: Selection, measures: Sequence[str] = MEASURES, progress: Callable[[date], None] | None = None
    ) -> Iterator[TickMatrix]:
        """Every row in its tick, every tick once; measures that no target tells are left out."""
        wanted = [name for name in measures if name in self.known]
        held: TickMatrix | None = None
        for chunk in selection.chunks(TABLE, most_rows=MOST_ROWS):
            matrix = self._matrix(_rows(chunk.frame(TABLE), self.kinds, wanted), wanted)
            if matrix is not None and held is not None:
                held, matrix = held.joined(matrix)
                yield held
            held = matrix or held
            if progress is not None and chunk.end_us is not None:
                progress(from_epoch_us(chunk.end_us - 1).date())
        if held is not None:
            yield held

    def _matrix(self, rows: Any, measures: Sequence[str]) -> TickMatrix | None:
        if not rows.num_rows:
            return None
        column = _codes(rows.column("target"), self.targets)
        tick = _numbers(rows, "epoch_us", np.int64) // self.tick_us + (
            _numbers(rows, "epoch_us", np.int64) % self.tick_us * 2 > self.tick_us
        )
        first = int(tick.min())
        present = np.zeros(int(tick.max()) - first + 1, np.bool_)
        present[tick - first] = True
        line = np.cumsum(present) - 1
        shape = int(line[-1]) + 1, len(self.targets)
        cell = line[tick - first] * shape[1] + column
        repeated = np.bincount(cell, minlength=shape[0] * shape[1]).max() > 1

        def spread(values: Floats) -> Floats:
            matrix = np.full(shape[0] * shape[1], np.nan)
            if repeated:
                known = ~np.isnan(values)
                sums = np.bincount(cell[known], weights=values[known], minlength=matrix.size)
                some = np.bincount(cell[known], minlength=matrix.size) > 0
                matrix[some] = sums[some]
            else:
                matrix[cell] = values
            return matrix.reshape(shape)

        return TickMatrix(
            (np.flatnonzero(present) + first) * self.tick_us,
            self.tick_us,
            self.targets,
            spread(_numbers(rows, "duration_s", np.float64)),
            {name: spread(_numbers(rows, name, np.float64)) for name in measures},
        )


def ticks_of(selection: Selection) -> Ticks | None:
    """Which targets move data in the window, and how often they are sampled; None without any.

    Sums over several targets (a server, a file system) are taken only where there is nothing finer.
    """
    frame = data_targets(selection.frame(TABLE))
    names = set(frame.collect_schema().names())
    measures = [name for name in MEASURES if name in names]
    kind = nw.col("target_kind") if "target_kind" in names else nw.lit(None, nw.String)
    spaced = (nw.col("epoch_us") - nw.col("start_us")).alias("spacing")
    rows = frame.select("target", kind.alias("kind"), spaced, *measures)
    found = rows.group_by("target", "kind").agg(
        nw.len().alias("rows"),
        nw.col("spacing").median(),
        *(nw.col(name).count() for name in measures),
    )
    table = found.collect(backend="pyarrow").to_native().to_pylist()
    finest = [row for row in table if row["kind"] not in SUM_KINDS]
    chosen = finest or table
    if not chosen:
        return None
    spacings = sorted((float(row["spacing"]), int(row["rows"])) for row in chosen)
    return Ticks(
        tuple(sorted({str(row["target"]) for row in chosen})),
        tuple(sorted({str(row["kind"]) for row in chosen if row["kind"] is not None})),
        max(round(_weighted_median(spacings)), 1),
        frozenset(name for name in measures if any(row[name] for row in chosen)),
    )


def _filled(values: Floats, first: Floats) -> Floats:
    """With what is missing in the first row."""
    values = values.copy()
    values[0] = np.where(np.isnan(values[0]), first, values[0])
    return values


def _weighted_median(pairs: Sequence[tuple[float, int]]) -> float:
    half, reached = sum(weight for _, weight in pairs) / 2.0, 0
    for value, weight in pairs:
        reached += weight
        if reached >= half:
            return value
    return pairs[-1][0]


def _rows(frame: nw.LazyFrame[Any], kinds: Sequence[str], measures: Sequence[str]) -> Any:
    mine = of_kinds(frame, kinds) if kinds else data_targets(frame)
    numbers = [nw.col(name).cast(nw.Float64) for name in measures]
    return mine.select("target", "epoch_us", "duration_s", *numbers).collect(backend="pyarrow").to_native()


def _numbers(rows: Any, name: str, kind: Any) -> NDArray[Any]:
    """A column as numbers; NULL is NaN."""
    column = rows.column(name).combine_chunks()
    return np.asarray(column.to_numpy(zero_copy_only=False), kind)


def _codes(column: Any, targets: Sequence[str]) -> Integers:
    """The place of each row's target."""
    import pyarrow as pa

    encoded = column.combine_chunks().dictionary_encode() if not pa.types.is_dictionary(column.type) else column
    places = {name: number for number, name in enumerate(targets)}
    names = np.array([places[name] for name in encoded.dictionary.to_pylist()], np.int64)
    codes: Integers = names[np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)]
    return codes
