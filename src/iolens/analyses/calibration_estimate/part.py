"""What an estimate of calibrations keeps of some days, by class of targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import narwhals as nw
import numpy as np

from iolens.analyses.intervals.fsu_sums import collect, data_targets, number, of_kinds, total
from iolens.analyses.intervals.target_rows import TargetRows
from iolens.arrays import Booleans, Columns, Floats, Integers
from iolens.models.cost_estimate import EVEN_BYTES, HIGHEST_UTIL_PCT, LOWEST_UTIL_PCT
from iolens.models.frontier import DEEP, FEWEST_QUEUED
from iolens.models.latency_by_size import MOST_IN_FLIGHT
from iolens.models.transaction_time import SIZE_COLUMNS
from iolens.part_form import PartForm
from iolens.schema import DIRECTIONS, DISK_KINDS
from iolens.store.parts import Days
from iolens.target_names import members_by_pattern
from iolens.units import SECOND_US

# Classes of targets: configured ones, else found by behaviour ---------------------------------------------------------
# Targets of one class reach like rates at like sizes. Where the rates of busy targets fall into groups with a gap
# between, and each group has at least two targets, each is a class; else disks and flash are apart, or targets of
# different size; else all are one.

FEWEST_TARGETS: Final = 2  # in a class that is found
GAP: Final = float(np.log(1.4))  # between the rates of two classes
GAP_TO_SPREAD: Final = 3.0  # and so much wider than any step within them
BUSIEST: Final = 0.9  # of a target's deep ticks of a size: the rate that it achieves
SMALL, LARGE = 4 * 16, 4 * 19  # quarter-octaves: up to 64 KiB, from 512 KiB on


@dataclass(frozen=True, slots=True)
class TargetClass:
    """Targets that cost the same; the name is None where all are one class."""

    name: str | None
    targets: list[str]
    is_configured: bool = False


@dataclass(frozen=True, slots=True)
class TargetTraits:
    """What is known of targets beside their rates: bytes of each, and whether its device rotates."""

    capacity_bytes: Mapping[str, float]
    is_rotational: Mapping[str, bool]


UNKNOWN_TRAITS: Final = TargetTraits({}, {})


def target_classes(
    configured: Mapping[str, Sequence[str]], cells: Columns, targets: Sequence[str], traits: TargetTraits
) -> tuple[list[TargetClass], list[str]]:
    """The classes of these targets, and what to know about them."""
    if configured:
        members = members_by_pattern(configured, targets)
        classes = [TargetClass(name, names, True) for name, names in members.items() if names]
        rest = sorted(set(targets) - {name for known in classes for name in known.targets})
        return [*classes, TargetClass(None, rest)] if rest else classes, []
    for what, groups in (
        ("the rates they reach", by_rates(cells, targets)),
        ("whether their devices rotate", by_rotation(targets, traits.is_rotational)),
        ("their size", by_capacity(targets, traits.capacity_bytes)),
    ):
        if groups is not None:
            return _named(groups, targets, what)
    return [TargetClass(None, sorted(targets))], []


def _named(groups: Sequence[Sequence[str]], targets: Sequence[str], by: str) -> tuple[list[TargetClass], list[str]]:
    classes = [TargetClass(f"class-{place}", sorted(names)) for place, names in enumerate(groups, 1)]
    rest = sorted(set(targets) - {name for names in groups for name in names})
    notes = [f"classes of targets were found by {by}; [filesystems.NAME.classes] gives them other members and names"]
    if rest:
        notes.append(f"of no class, and left out: {', '.join(rest[:5])}{' …' * (len(rest) > 5)}")
    return classes, notes


def by_rates(cells: Columns, targets: Sequence[str]) -> list[list[str]] | None:
    """Groups of targets by the rates they achieve with a queue, slowest first; None: there is one."""
    best: tuple[float, list[list[str]]] | None = None
    for chosen in _kinds_of_ticks(cells):
        scores = _scores(cells, chosen, len(targets))
        groups = gapped(scores)
        if groups is not None and (best is None or groups[0] > best[0]):
            best = groups[0], [[targets[place] for place in group] for group in groups[1]]
    return None if best is None else best[1]


def by_rotation(targets: Sequence[str], is_rotational: Mapping[str, bool]) -> list[list[str]] | None:
    """Targets on disks, then those on flash; None: there is one kind, or it is not known of all."""
    if any(is_rotational.get(name) is None for name in targets):
        return None
    groups = [[name for name in targets if is_rotational[name] is kind] for kind in (True, False)]
    return groups if min(len(group) for group in groups) >= FEWEST_TARGETS else None


def by_capacity(targets: Sequence[str], capacity: Mapping[str, float]) -> list[list[str]] | None:
    """Groups of targets by their size; None: they are alike, or it is not known of all."""
    if not all(capacity.get(name) for name in targets) or not len(targets):
        return None
    groups = gapped(np.log([capacity[name] for name in targets]))
    return None if groups is None else [[targets[place] for place in group] for group in groups[1]]


def gapped(scores: Floats) -> tuple[float, list[list[int]]] | None:
    """Places of scores on either side of each gap, and the widest gap; None where there is no gap. NaN: not known."""
    known = np.flatnonzero(np.isfinite(scores))
    order = known[np.argsort(scores[known], kind="stable")]
    if order.size < 2 * FEWEST_TARGETS:
        return None
    steps = np.diff(scores[order])
    cuts = np.flatnonzero(steps > GAP)
    inside = np.delete(steps, cuts)
    cuts = cuts[steps[cuts] > GAP_TO_SPREAD * (inside.max() if inside.size else 0.0)]
    groups = [group.tolist() for group in np.split(order, cuts + 1)]
    if not cuts.size or min(len(group) for group in groups) < FEWEST_TARGETS:
        return None
    return float(steps[cuts].max()), groups


def _kinds_of_ticks(cells: Columns) -> Iterator[Booleans]:
    """Queued ticks of each direction, with small I/Os, and with large ones: classes may differ in either cost."""
    deep = cells["depth"] >= DEEP * cells["ticks"]
    for direction in np.unique(cells["direction"]):
        same = deep & (cells["direction"] == direction)
        yield same & (cells["size_bin"] <= SMALL)
        yield same & (cells["size_bin"] > LARGE)


def _scores(cells: Columns, chosen: Booleans, targets: int) -> Floats:
    """How fast each target is, as a logarithm: log rate = target + size, by least squares; NaN: not known."""
    target, size, rate = _achieved({name: values[chosen] for name, values in cells.items()})
    scores = np.full(targets, np.nan)
    if not target.size:
        return scores
    sizes, places = np.unique(size, return_inverse=True)
    several = np.bincount(places) > 1
    kept = several[places]
    target, places, rate = target[kept], places[kept], rate[kept]
    if not target.size:
        return scores
    design = np.zeros((target.size, targets + sizes.size))
    row = np.arange(target.size)
    design[row, target] = design[row, targets + places] = 1.0
    fitted = np.linalg.lstsq(design, rate, rcond=1e-9)[0]
    seen = np.unique(target)
    scores[seen] = fitted[seen]
    return scores


def _achieved(cells: Columns) -> tuple[Integers, Integers, Floats]:
    """Logarithm of the high rate of each target and size with enough ticks."""
    rate = np.log(np.maximum(cells["n"], 1e-300) / cells["duration_s"])
    order = np.lexsort([rate, cells["size_bin"], cells["target"]])
    target, size, rate, ticks = (values[order] for values in (cells["target"], cells["size_bin"], rate, cells["ticks"]))
    if not target.size:
        return target, size, rate
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(target) != 0) | (np.diff(size) != 0)]))
    group = np.repeat(np.arange(starts.size), np.diff([*starts, target.size]))
    whole = np.add.reduceat(ticks, starts)
    before = np.cumsum(ticks) - np.concatenate([[0.0], np.cumsum(whole)[:-1]])[group]
    reached = np.flatnonzero(before >= BUSIEST * whole[group] * (1 - 1e-12))
    first = reached[np.unique(group[reached], return_index=True)[1]]
    first = first[whole >= FEWEST_QUEUED]
    return target[first], size[first], rate[first]


# What an estimate of calibrations keeps of some days ------------------------------------------------------------------
# Cells of ticks that are alike, and sums of busy time.
#
# DEFINITIONS, "Calibration from telemetry". A tick is ten seconds or longer: shorter intervals are added up, and those
# of I/Os in flight set the length where they are longer. Resets and gaps are left out. The engine sums; a part has a
# few hundred rows per target and day.

SHORTEST_US: Final = 10 * SECOND_US
PURE: Final = 0.9  # of the I/Os and of the bytes of a tick are of one direction
COMPLETE: Final = (0.9, 1.1)  # of a tick's length that its intervals add up to
ALWAYS_BUSY: Final = 0.95
IN_FLIGHT: Final = "disk_ios_in_flight"  # one row for each number, 31 is 31 or more
IN_FLIGHT_POW2: Final = "disk_ios_in_flight_pow2"  # 4 stands for 3 and 4
LATENCY_PREFIX: Final = "io_latency_ns_from_"
LATENCY_SIZES: Final = tuple(1 << power for power in range(12, 27))
MIXED: Final = len(DIRECTIONS)  # neither direction has nine tenths
TERMS: Final = ("read_n", "read_b", "write_n", "write_b")  # as `busy_time.TERMS`
PAIRS: Final = tuple((first, second) for place, first in enumerate(TERMS) for second in TERMS[place:])
CELL: Final = ("target", "block", "direction", "size_bin", "rate_bin", "depth_bin", "util")
NEAR: Final = 1e-6  # of a bin
UNKNOWN, QUIET, USUAL, HIGH, FULL, OVERLAPPING = -1, 0, 1, 2, 3, 4  # classes of util; the last: as usual, but deep
_SUMMED: Final = ("n", "b", "duration_s", "depth")


@dataclass(slots=True)
class TelemetryPart:
    """Sums of some days.

    `cells`: by target, block of time, direction and bins of size, rate, I/Os in flight and util: ticks, I/Os, bytes,
    seconds and the sum of I/Os in flight. `busy`: by target and block, weighted sums of squares and products of ticks
    with 5 % < util < 70 % and at most 1.5 in flight, where that is known. `timed`: bulk I/Os by target, block,
    direction, smallest size and upper end of time.
    """

    cells: TargetRows = field(default_factory=TargetRows)
    busy: TargetRows = field(default_factory=TargetRows)
    timed: TargetRows = field(default_factory=TargetRows)
    ticks_s: frozenset[float] = frozenset()  # lengths of ticks

    def take(self, later: TelemetryPart) -> None:
        """A part of later days."""
        self.cells.take(later.cells)
        self.busy.take(later.busy)
        self.timed.take(later.timed)
        self.ticks_s |= later.ticks_s


FORM: Final = PartForm("calibration-telemetry", 2, (TelemetryPart, TargetRows))


def telemetry_part(
    days: Days, model: str, with_busy: bool, with_depth: bool, block_us: int, shortest_us: int = SHORTEST_US
) -> TelemetryPart:
    """The part of some days; `model` is where I/Os come from, as for FSU: `histogram` or `counters`."""
    rows = _counted(days, model)
    length_us = usual_length_us(rows)
    if length_us is None:
        return TelemetryPart()
    depths = _depths(days) if with_depth else None
    depth_length_us = usual_length_us(depths) if depths is not None else None
    longest = max(shortest_us, depth_length_us or 0)
    tick_us = -(-longest // length_us) * length_us
    ticks = _ticks(rows, days, tick_us, with_busy)
    if depths is not None and depth_length_us is not None:
        mean = _mean_depth(depths, tick_us)
        ticks = ticks.join(mean, on=["target", "tick"], how="left")
    elif "depth" not in ticks.collect_schema().names():
        ticks = ticks.with_columns(nw.lit(None, nw.Float64).alias("depth"))
    cells = _cells(ticks, tick_us, block_us, with_busy)
    timed = _timed(days, depths, tick_us, block_us) if depth_length_us is not None else TargetRows()
    return TelemetryPart(*_split(cells, with_busy), timed, frozenset({tick_us / SECOND_US}))


def usual_length_us(rows: nw.LazyFrame[Any]) -> int | None:
    """The most frequent length of an interval; None where there is none."""
    lengths = rows.select((nw.col("epoch_us") - nw.col("start_us")).alias("length_us"))
    counted = collect(lengths.group_by("length_us").agg(nw.len().alias("rows")))
    if not len(counted["rows"]):
        return None
    order = np.lexsort([-counted["length_us"], counted["rows"]])
    return max(int(counted["length_us"][order[-1]]), 1)


def _counted(days: Days, model: str) -> nw.LazyFrame[Any]:
    """I/Os and bytes of each interval and direction, without resets: at the labels of their bins, or as counted."""
    if model == "counters":
        frame = of_kinds(days.frame("target_io"), DISK_KINDS)
        columns = [
            nw.col(f"{side}_{what}").cast(nw.Float64).alias(f"{side}_{short}")
            for side in DIRECTIONS
            for what, short in (("ops", "n"), ("bytes", "b"))
        ]
        names = frame.collect_schema().names()
        if "queue_us" in names:
            columns.append((nw.col("queue_us").cast(nw.Float64) * number(1e-6)).alias("queued_s"))
            columns.append(nw.col("queue_us").is_null().cast(nw.Int64).alias("queue_unknown"))
    else:
        frame = data_targets(days.frame("target_sizes"))
        columns = _sizes(days.live_columns("target_sizes", list(SIZE_COLUMNS)))
    return _without_resets(frame).select("target", "epoch_us", "start_us", "duration_s", *columns)


def _sizes(live: Sequence[str]) -> list[nw.Expr]:
    columns = []
    for side in DIRECTIONS:
        bins = [(name, SIZE_COLUMNS[name][1]) for name in live if SIZE_COLUMNS[name][0] == side]
        counts = [nw.col(name).cast(nw.Float64) for name, _ in bins]
        columns.append(total(counts).alias(f"{side}_n"))
        moved = [count * number(size) for count, (_, size) in zip(counts, bins, strict=True)]
        columns.append(total(moved).alias(f"{side}_b"))
    return columns


def _without_resets(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    if "after_reset" not in frame.collect_schema().names():
        return frame
    return frame.filter(nw.col("after_reset").is_null() | ~nw.col("after_reset"))


def _tick(tick_us: int) -> nw.Expr:
    """The tick in which an interval ends."""
    return ((nw.col("epoch_us") - 1) // tick_us).alias("tick")


def _ticks(rows: nw.LazyFrame[Any], days: Days, tick_us: int, with_busy: bool) -> nw.LazyFrame[Any]:
    """Whole ticks of each target: I/Os and bytes by direction, seconds, and what else is known."""
    names = rows.collect_schema().names()
    summed = [*TERMS, "duration_s", *(["queued_s", "queue_unknown"] if "queued_s" in names else [])]
    ticks = rows.with_columns(_tick(tick_us)).group_by("target", "tick").agg(*(nw.col(name).sum() for name in summed))
    low, high = (share * tick_us / SECOND_US for share in COMPLETE)
    ticks = ticks.filter(nw.col("duration_s") >= number(low), nw.col("duration_s") <= number(high))
    ticks = ticks.with_columns((nw.col("read_n") + nw.col("write_n")).alias("n"))
    ticks = ticks.with_columns((nw.col("read_b") + nw.col("write_b")).alias("b"))
    ticks = ticks.filter(nw.col("n") > number(0.0), nw.col("b") > number(0.0))
    if with_busy:
        busy = _without_resets(days.frame("target_io")).filter(~nw.col("busy_us").is_null())
        busy = busy.select(
            "target", _tick(tick_us), (nw.col("busy_us").cast(nw.Float64) * number(1e-6)).alias("busy_s")
        )
        busy = busy.group_by("target", "tick").agg(nw.col("busy_s").sum())
        ticks = ticks.join(busy, on=["target", "tick"], how="left")
    if "queued_s" in names:
        depth = nw.when(nw.col("queue_unknown") == 0).then(_in_flight(with_busy))
        ticks = ticks.with_columns(depth.alias("depth"))
    return ticks


def _in_flight(with_busy: bool) -> nw.Expr:
    """What an I/O meets with itself, by the time in queue of a device: its mean while the device is busy.

    Arrivals at random times, all there is to assume where busy time is not known, meet the mean of all time.
    """
    queue = nw.col("queued_s") / nw.col("duration_s")
    if not with_busy:
        return queue + number(1.0)
    share = nw.col("busy_s") / nw.col("duration_s")
    lowest = number(LOWEST_UTIL_PCT / 100)  # below, the kernel's ticks are too coarse to divide by
    while_busy = queue / nw.when(share < lowest).then(lowest).otherwise(share)
    at_least_itself = nw.when(while_busy < number(1.0)).then(number(1.0)).otherwise(while_busy)
    return nw.when(nw.col("busy_s").is_null()).then(queue + number(1.0)).otherwise(at_least_itself)


def _depths(days: Days) -> nw.LazyFrame[Any]:
    """Rows of disk I/Os in flight."""
    frame = _without_resets(data_targets(days.frame("target_histograms")))
    return frame.filter(nw.col("histogram").is_in([IN_FLIGHT, IN_FLIGHT_POW2]))


def _mean_depth(depths: nw.LazyFrame[Any], tick_us: int) -> nw.LazyFrame[Any]:
    """Mean of a tick over its I/Os of both directions; a bin of a power of two holds its numbers equally often."""
    label = nw.col("bin").cast(nw.Float64)
    is_single = (nw.col("histogram") == IN_FLIGHT) | (nw.col("bin") < 4)
    value = nw.when(is_single).then(label).otherwise(label * number(0.75) + number(0.5))
    ios = nw.col("count").cast(nw.Float64)
    rows = depths.select("target", _tick(tick_us), ios.alias("ios"), (ios * value).alias("in_flight"))
    sums = rows.group_by("target", "tick").agg(nw.col("ios").sum(), nw.col("in_flight").sum())
    sums = sums.filter(nw.col("ios") > number(0.0))
    return sums.select("target", "tick", (nw.col("in_flight") / nw.col("ios")).alias("depth"))


def _cells(ticks: nw.LazyFrame[Any], tick_us: int, block_us: int, with_busy: bool) -> Columns:
    """Ticks that are alike, added up; those of both directions are together, and needed only for busy time."""
    is_side = [
        (nw.col(f"{side}_n") >= nw.col("n") * number(PURE)) & (nw.col(f"{side}_b") >= nw.col("b") * number(PURE))
        for side in DIRECTIONS
    ]
    ticks = ticks.with_columns(
        nw.when(is_side[0]).then(nw.lit(0)).otherwise(nw.when(is_side[1]).then(nw.lit(1)).otherwise(nw.lit(MIXED)))
        .alias("direction"),
        (nw.col("tick") * tick_us // block_us).alias("block"),
        _util(with_busy).alias("util"),
    )  # fmt: skip
    if not with_busy:
        ticks = ticks.filter(nw.col("direction") != MIXED)
    bins = [
        _pure((nw.col("b") / nw.col("n")).log(2) * number(4.0), up=True).alias("size_bin"),
        _pure((nw.col("n") / nw.col("duration_s")).log(2) * number(16.0)).alias("rate_bin"),
        _pure(nw.col("depth").log(2) * number(4.0)).fill_null(-1).alias("depth_bin"),
    ]
    ticks = ticks.with_columns(*bins)
    sums = [nw.col(name).sum().alias(name) for name in _SUMMED] + [nw.len().alias("ticks")]
    if with_busy:
        ticks = ticks.with_columns(*_products())
        sums += [nw.col(name).sum() for name in _product_names()]
    return collect(ticks.group_by(*CELL).agg(*sums))


def _pure(value: nw.Expr, up: bool = False) -> nw.Expr:
    """A bin of ticks of one direction."""
    whole = (value - number(NEAR)).ceil() if up else (value + number(NEAR)).floor()  # engines differ in last digits
    return nw.when(nw.col("direction") != MIXED).then(whole).otherwise(number(0.0)).cast(nw.Int64)


def _util(with_busy: bool) -> nw.Expr:
    if not with_busy:
        return nw.lit(UNKNOWN)
    share = nw.col("busy_s") / nw.col("duration_s")
    ends = ((LOWEST_UTIL_PCT / 100, QUIET), (HIGHEST_UTIL_PCT / 100, USUAL), (ALWAYS_BUSY, HIGH))
    util = nw.lit(FULL)
    for end, name in reversed(ends):
        util = nw.when(share < number(end)).then(nw.lit(name)).otherwise(util)
    is_usual = (share >= number(LOWEST_UTIL_PCT / 100)) & (share < number(HIGHEST_UTIL_PCT / 100))
    overlaps = is_usual & (nw.col("depth") > number(MOST_IN_FLIGHT))  # false where the depth is not known
    util = nw.when(overlaps).then(nw.lit(OVERLAPPING)).otherwise(util)
    return nw.when(nw.col("busy_s").is_null()).then(nw.lit(UNKNOWN)).otherwise(util)


def _product_names() -> list[str]:
    return [*(f"{first}*{second}" for first, second in PAIRS), *(f"{term}*busy" for term in TERMS)]


def _products() -> list[nw.Expr]:
    """With the weights of `busy_time`."""
    even = nw.col("n") + nw.col("b") / number(EVEN_BYTES)
    pairs = [(nw.col(first) * nw.col(second) / even).alias(f"{first}*{second}") for first, second in PAIRS]
    return pairs + [(nw.col(term) * nw.col("busy_s") / even).alias(f"{term}*busy") for term in TERMS]


def _split(cells: Columns, with_busy: bool) -> tuple[TargetRows, TargetRows]:
    """Cells as the frontier takes them, and the sums of busy time by target and block."""
    whole = {name: cells[name].astype(np.int64) for name in CELL if name != "target"}
    names = _product_names() if with_busy else []
    is_pure = whole["direction"] != MIXED
    kept = {"target": cells["target"], **whole, **{name: cells[name] for name in (*_SUMMED, "ticks")}}
    pure = TargetRows.of({name: values[is_pure] for name, values in kept.items()})
    if not with_busy:
        return pure, TargetRows()
    usual = whole["util"] == USUAL
    columns = {"target": cells["target"], "block": whole["block"], "ticks": cells["ticks"]}
    columns |= {name: cells[name] for name in names}
    return pure, TargetRows.of({name: values[usual] for name, values in columns.items()}).by("block")


def _timed(days: Days, depths: nw.LazyFrame[Any] | None, tick_us: int, block_us: int) -> TargetRows:
    """Bulk I/Os by size and elapsed time, of ticks with a mean of at most 1.5 I/Os in flight."""
    assert depths is not None
    names = [f"{LATENCY_PREFIX}{size}" for size in LATENCY_SIZES]
    frame = _without_resets(data_targets(days.frame("target_histograms"))).filter(nw.col("histogram").is_in(names))
    few = _mean_depth(depths, tick_us).filter(nw.col("depth") <= number(MOST_IN_FLIGHT))
    ios = nw.col("count").cast(nw.Float64).alias("ios")
    rows = frame.select("target", _tick(tick_us), nw.col("histogram").alias("kind"), "direction", "bin", ios)
    rows = rows.join(few, on=["target", "tick"], how="inner")
    rows = rows.with_columns((nw.col("tick") * tick_us // block_us).alias("block"))
    counted = collect(rows.group_by("target", "block", "kind", "direction", "bin").agg(nw.col("ios").sum()))
    return TargetRows.of(
        {
            "target": counted["target"],
            "block": counted["block"].astype(np.int64),
            "direction": np.array([DIRECTIONS.index(side) for side in counted["direction"]], np.int64),
            "size": np.array([int(name.removeprefix(LATENCY_PREFIX)) for name in counted["kind"]], np.int64),
            "bin": counted["bin"],
            "ios": counted["ios"],
        }
    )
