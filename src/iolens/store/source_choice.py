"""Which targets of a file system a user means, and which source tells of them where several do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, Literal

import narwhals as nw

from iolens.errors import UsageError
from iolens.nearest_names import not_among

# Which targets of a file system a user means --------------------------------------------------------------------------
# Short names, in whatever case.


def chosen_targets(given: Sequence[str], known: Collection[str], filesystem: str) -> tuple[str, ...]:
    """The targets that were meant: `OST0001` is `scratch-OST0001`, in whatever case; an error names the nearest.

    A file system that has no targets, only records such as drives, leaves them as they are.
    """
    if not known:
        return tuple(given)
    return tuple(dict.fromkeys(_chosen_target(name, known, filesystem) for name in given))


def _chosen_target(given: str, known: Collection[str], filesystem: str) -> str:
    if given in known:
        return given
    meant = given.lower()
    names = sorted(name for name in known if meant in (name.lower(), *_short_names(name, filesystem)))
    if len(names) == 1:
        return names[0]
    if names:
        raise UsageError(f"several targets of {filesystem} may be meant by {given!r}: {', '.join(names)}")
    raise UsageError(f"{filesystem} has no target {given!r}{_nearest(given, known, filesystem)}")


def _nearest(given: str, known: Collection[str], filesystem: str) -> str:
    """The nearest targets, as they were asked for: with or without the file system's name."""
    prefix = f"{filesystem}-"
    is_whole = given.lower().startswith(prefix.lower())
    return not_among(given, known if is_whole else [name.removeprefix(prefix) for name in known])


def _short_names(name: str, filesystem: str) -> Iterator[str]:
    """A target's name without the file system's, which users leave out."""
    lower = name.lower()
    yield lower.removeprefix(f"{filesystem.lower()}-").removeprefix(f"{filesystem.lower()}:")
    yield lower.rpartition("-")[2]


# Where several sources tell of one target -----------------------------------------------------------------------------
# Which of them is believed, row by row (SPEC B7, Overlapping sources).
#
# The finer source comes first, then the one that tells of more time, unless the configuration orders them. A row counts
# where no row of a source before its own covers its time: the second source fills what the first lacks, and no more.

Frame = nw.LazyFrame[Any]

READINGS_APART_US: Final = 900_000_000  # of readings, which have no intervals, one source tells of a quarter-hour
LONGEST_US: Final = 27 * 3_600_000_000  # of the intervals of a table whose log does not say how long they are
SLACK: Final = 10  # clocks differ: an interval may share this part of itself with those of another source
FAR_US: Final = 2**61

RowForm = Literal["intervals", "buckets", "readings"]


def by_resolution(frame: Frame, *, is_interval: bool) -> list[str]:
    """The sources of these rows by the median length of their intervals, in two digits; then by the time they cover."""
    length = (nw.col("epoch_us") - nw.col("start_us") if is_interval else nw.lit(0)).cast(nw.Float64)
    grouped = frame.select("source", length.alias("length")).group_by("source")
    sums = grouped.agg(nw.col("length").median().alias("median"), nw.col("length").sum().alias("covered"),
                       nw.len().alias("rows"))  # fmt: skip
    rows = sums.collect(backend="pyarrow").to_native().to_pylist()

    def place(row: dict[str, Any]) -> tuple[float, float, int, str]:
        return float(f"{row['median']:.2g}"), -float(row["covered"]), -int(row["rows"]), str(row["source"])

    return [str(row["source"]) for row in sorted(rows, key=place)]


def configured_first(sources: Iterable[str], configured: Iterable[str]) -> list[str]:
    """The sources in their order, but for those that the configuration puts before."""
    known = list(sources)
    return list(dict.fromkeys([*(name for name in configured if name in known), *known]))


def marked(frame: Frame, order: Sequence[str], apart: Sequence[str], rows: RowForm) -> Frame:
    """Rows with `_counts`: whether no source that is before theirs in the order tells of the same.

    Of a rollup's bucket the first source counts that covers nearly as much of it as any: it cannot be divided.
    """
    rank: nw.Expr = nw.lit(len(order))
    for position, name in enumerate(order):
        rank = nw.when(nw.col("source") == name).then(nw.lit(position)).otherwise(rank)
    ranked = frame.with_columns(rank.alias("_rank"))
    if rows == "intervals":
        return _not_covered(ranked, len(order), apart)
    if rows == "buckets":
        most_s = nw.col("duration_s").max().over(*apart, "epoch_us")
        is_nearly_whole = nw.col("duration_s") >= most_s - most_s / SLACK
        ranked = ranked.with_columns(is_nearly_whole.alias("_is_nearly_whole"))
        rank = nw.when(nw.col("_is_nearly_whole")).then(nw.col("_rank")).otherwise(nw.lit(len(order) + 1))
        return _of_best_source(ranked.with_columns(rank.alias("_rank")), apart, nw.col("epoch_us")).drop(
            "_is_nearly_whole"
        )
    return _of_best_source(ranked, apart, (nw.col("epoch_us") - 1) // READINGS_APART_US)


def _of_best_source(ranked: Frame, apart: Sequence[str], time: nw.Expr) -> Frame:
    at_times = ranked.with_columns(time.alias("_at"))
    best = at_times.with_columns(nw.col("_rank").min().over(*apart, "_at").alias("_best"))
    return best.with_columns((nw.col("_rank") == nw.col("_best")).alias("_counts")).drop("_rank", "_at", "_best")


def _not_covered(ranked: Frame, sources: int, apart: Sequence[str]) -> Frame:
    """Source after source: free is what lies between the last end and the next start of rows that count already."""
    frame = ranked.with_columns((nw.col("_rank") == 0).alias("_counts"))
    order = ("start_us", "_rank")  # so that of two that begin together the earlier source stands first
    slack_us = (nw.col("epoch_us") - nw.col("start_us")) // SLACK
    for place in range(1, sources):
        is_before = (nw.col("_rank") < place) & nw.col("_counts")
        ends = nw.when(is_before).then(nw.col("epoch_us")).otherwise(nw.lit(-FAR_US))
        starts = nw.when(is_before).then(nw.col("start_us")).otherwise(nw.lit(FAR_US))
        beside = frame.with_columns(ends.alias("_end"), starts.alias("_start")).with_columns(
            nw.col("_end").cum_max().over(*apart, order_by=order).alias("_last_end"),
            nw.col("_start").cum_min(reverse=True).over(*apart, order_by=order).alias("_next_start"),
        )
        is_free = (nw.col("_last_end") <= nw.col("start_us") + slack_us) & (
            nw.col("_next_start") >= nw.col("epoch_us") - slack_us
        )
        counts = nw.when(nw.col("_rank") == place).then(is_free).otherwise(nw.col("_counts"))
        frame = beside.with_columns(counts.alias("_counts")).drop("_end", "_start", "_last_end", "_next_start")
    return frame.drop("_rank")
