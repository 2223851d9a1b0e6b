"""Frames the user already has, as an analysis sees the rows of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TypeVar

import narwhals as nw
import pyarrow as pa

from iolens.errors import UsageError
from iolens.part_form import PartForm
from iolens.store.baselines import LastCounters
from iolens.store.parts import ALL_TIME, Chunk, Days, Ends, PartMaker, WholeMaker
from iolens.store.tables import declared
from iolens.target_servers import NOT_KNOWN, TargetServers
from iolens.units import epoch_us

Part = TypeVar("Part")


@dataclass(slots=True)
class FrameSelection:
    """Frames the user already has: pandas, Polars, PyArrow, DuckDB or Spark, by table name."""

    frames: Mapping[str, Any]
    filesystem: str = ""
    window: tuple[datetime | None, datetime | None] = (None, None)
    source_order: Sequence[str] = ()
    overlapping_rows: int = 0
    end_us: None = None
    ends: Ends = ALL_TIME

    def chunks(self, *tables: str, most_rows: int | None = None) -> Iterator[Chunk]:
        """All at once: the frame's owner chose its size."""
        yield self

    def tick_days(self, tables: Sequence[str], tick_us: int) -> Iterator[Days]:
        """All at once, too."""
        yield self

    def slices(self, table: str, tick_us: int) -> Iterator[Days]:
        """All at once, too."""
        yield self

    def columns(self, table: str, names: Sequence[str], kind: str) -> None:
        """A frame has to be asked."""

    def around(self, table: str) -> nw.LazyFrame[Any]:
        """All rows."""
        return self.frame(table)

    def beside(self, rows: pa.Table) -> nw.LazyFrame[Any]:
        """In Arrow, whatever the user's frames are: joined with those, they must be in Arrow, too."""
        return _lazy(rows)

    def parts(self, maker: PartMaker[Part], progress: Callable[[date], None] | None = None) -> Iterator[Part]:
        """One part, made here."""
        return map(maker.made, self.tick_days(maker.tables, maker.tick_us))

    def whole(self, maker: WholeMaker[Part], progress: Callable[[date], None] | None = None) -> Part:
        """Of the one part."""
        whole: Any = maker.empty()
        for part in self.parts(maker, progress):
            whole.take(part)
        result: Part = whole
        return result

    def once(self, name: str, make: Callable[[], Part]) -> Part:
        """Every time: frames are small, or their owner's."""
        return make()

    def remembered(self, form: PartForm, depends_on: object, make: Callable[[], Part]) -> Part:
        """Nothing is."""
        return make()

    def frame(self, table: str) -> nw.LazyFrame[Any]:
        """The user's frame with `epoch_us` and `start_us`, cut to the window."""
        if table not in self.frames:
            return _lazy(_empty(table))
        frame = with_epochs(self.frames[table])
        if self.filesystem and "filesystem" in frame.collect_schema().names():
            frame = frame.filter(nw.col("filesystem") == self.filesystem)
        since, until = self.window
        if since is not None:
            frame = frame.filter(nw.col("start_us") >= epoch_us(since))
        if until is not None:
            frame = frame.filter(nw.col("start_us") < epoch_us(until))
        return frame

    def extent_us(self, *tables: str) -> tuple[int, int] | None:
        """By asking the frames."""
        result = []
        for table in tables:
            ends = self.frame(table).select(low=nw.col("start_us").min(), high=nw.col("epoch_us").max())
            row = ends.collect(backend="pyarrow").to_native().to_pylist()[0]
            if row["low"] is not None:
                result.append((int(row["low"]), int(row["high"])))
        return (min(low for low, _ in result), max(high for _, high in result)) if result else None

    def extent_of(self, maker: PartMaker[Any]) -> tuple[tuple[int, int] | None, bool]:
        """Of the rows."""
        return self.extent_us(*maker.tables), False

    def live_columns(self, table: str, names: Sequence[str]) -> list[str]:
        """The columns the frame has."""
        if table not in self.frames:
            return []
        have = set(with_epochs(self.frames[table]).collect_schema().names())
        return [name for name in names if name in have]

    def filled_columns(self, table: str, names: Sequence[str]) -> list[str] | None:
        """A frame has to be asked."""
        return None

    def known_targets(self) -> set[str]:
        """A frame knows only the targets that report."""
        return set()

    def target_servers(self) -> TargetServers:
        """Frames are of targets alone: whose server is not known."""
        return NOT_KNOWN

    def last_counters(self, table: str) -> list[LastCounters]:
        """None: frames hold intervals."""
        return []

    def sources(self, table: str) -> list[str]:
        """The frame itself."""
        return ["frame"] if table in self.frames else []

    def holds(self, table: str, column: str | None = None, values: Sequence[str] = ()) -> bool:
        """By asking the frame for one row."""
        return table in self.frames and any_row(self.frame(table), column, values)


def any_row(frame: nw.LazyFrame[Any], column: str | None, values: Sequence[str]) -> bool:
    """Whether there is one, or one with any of the values in a text column."""
    if column is not None:
        if column not in frame.collect_schema().names():
            return False
        frame = frame.filter(nw.col(column).is_in(list(values)))
    return bool(frame.select("epoch_us").head(1).collect(backend="pyarrow").shape[0])


def with_epochs(native: Any) -> nw.LazyFrame[Any]:
    """A lazy frame with integer microseconds `epoch_us` and `start_us` beside its times."""
    plain = _lazy(native)
    names = plain.collect_schema().names()
    if "time" not in names:
        raise UsageError("the frame has no `time` column: the UTC end of each interval")
    times = [(name, alias) for name, alias in (("time", "epoch_us"), ("start", "start_us")) if name in names]
    kind = type(native).__module__.partition(".")[0]
    if kind in ("duckdb", "_duckdb"):
        frame = _lazy(native.project(", ".join(["*", *(f'epoch_us("{name}") AS {alias}' for name, alias in times)])))
    elif kind == "pyspark":
        from pyspark.sql import functions

        frame = _lazy(native.withColumns({alias: functions.unix_micros(name) for name, alias in times}))
    else:
        frame = plain.with_columns(*(nw.col(name).dt.timestamp("us").alias(alias) for name, alias in times))
    if "start" in names:
        return frame
    if "duration_s" not in names:  # a time is over when it begins
        return frame.with_columns(nw.col("epoch_us").alias("start_us"))
    whole_us = (nw.col("duration_s").round() * nw.lit(1e6, nw.Float64)).cast(nw.Int64)
    return frame.with_columns((nw.col("epoch_us") - whole_us).alias("start_us"))


def _lazy(native: Any) -> nw.LazyFrame[Any]:
    frame: nw.LazyFrame[Any] = nw.from_native(native).lazy()
    return frame


def _empty(table: str) -> Any:
    from iolens.store.tables import arrow_schema

    extra = [("epoch_us", pa.int64()), ("start_us", pa.int64())]
    schema = arrow_schema(declared(table))
    return pa.schema([*schema, *(pa.field(name, type_) for name, type_ in extra)]).empty_table()
