"""What `imbalance` takes from some ticks, what every target moved at single times, and one target against its peers
(SPEC B2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar, Final, Literal

import numpy as np

from iolens.analyses.imbalance.spreads import BACKGROUND, SpreadSeries, Stretches, TickSpread, loads, spread
from iolens.analyses.intervals.tick_matrix import GAP, Edges, TickMatrix, TickParts, Ticks
from iolens.analyses.results import not_nan
from iolens.analyses.utilization.targets import FAR, FEWEST_PEERS, robust_spread
from iolens.arrays import Booleans, Floats, Integers, rearranged
from iolens.models.log_sketch import LogSketch
from iolens.part_form import PartForm
from iolens.schema import DIRECTIONS
from iolens.store.parts import Ends
from iolens.units import DAY_US, from_epoch_us

# What every target moved at single times ------------------------------------------------------------------------------
# Those asked for, or the most unbalanced ones (Fig. 1 of paper S).

HOUR_US: Final = 3_600_000_000
SHOWN: Final = 2


@dataclass(frozen=True, slots=True)
class TargetLoad:
    """Bytes per second of one target in a tick; None: not reported."""

    target: str
    read_bytes_per_s: float | None
    write_bytes_per_s: float | None
    background_bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class LoadSnapshot:
    """One tick by its end, over the targets that reported in it."""

    time: datetime
    min_bytes_per_s: float
    mean_bytes_per_s: float
    max_bytes_per_s: float
    std_bytes_per_s: float
    targets: list[TargetLoad]


def apart_us(extent_us: tuple[int, int]) -> int:
    """How far apart the worst ticks of a window are: they are of different days, or hours in a window of one day."""
    first, last = extent_us
    return DAY_US if (last - 1) // DAY_US > first // DAY_US else HOUR_US


@dataclass(slots=True)
class LoadSnapshots:
    """Feed matrices with their spreads, in time order.

    Of every day (of every hour, in a window of one day) the worst tick is kept, and the ticks that hold the times
    given, which then are the result.
    """

    apart_us: int  # of different days, or hours
    at_us: Sequence[int] = ()
    worst: dict[int, LoadSnapshot] = field(default_factory=dict)  # by number of the day or hour
    asked: dict[int, LoadSnapshot] = field(default_factory=dict)  # by time

    def add(self, matrix: TickMatrix, spread: TickSpread) -> None:
        """The next ticks."""
        ends = matrix.end_us[spread.rows]
        for time in self.at_us:
            place = int(np.searchsorted(ends, time, side="right"))
            if place < ends.size and ends[place] - matrix.tick_us <= time:
                self.asked[time] = _snapshot(matrix, spread, place)
        part = (ends - matrix.tick_us) // self.apart_us
        for number in np.unique(part).tolist():
            mine = np.flatnonzero(part == number)
            place = int(mine[spread.std[mine].argmax()])
            if number not in self.worst or spread.std[place] > self.worst[number].std_bytes_per_s:
                self.worst[number] = _snapshot(matrix, spread, place)

    def take(self, later: LoadSnapshots) -> None:
        """Of later ticks."""
        self.asked |= later.asked
        for number, snapshot in later.worst.items():
            mine = self.worst.get(number)
            if mine is None or snapshot.std_bytes_per_s > mine.std_bytes_per_s:
                self.worst[number] = snapshot

    def result(self) -> list[LoadSnapshot]:
        """In time order."""
        chosen = self.asked.values() or sorted(
            self.worst.values(), key=lambda snapshot: (-snapshot.std_bytes_per_s, snapshot.time)
        )
        return sorted(list(chosen)[: None if self.at_us else SHOWN], key=lambda load_snapshot: load_snapshot.time)


def _snapshot(matrix: TickMatrix, spread: TickSpread, place: int) -> LoadSnapshot:
    row = int(spread.rows[place])
    seconds = matrix.duration_s[row]
    names = [*(f"{direction}_bytes" for direction in DIRECTIONS), BACKGROUND]
    rates = [matrix.measures[name][row] / seconds if name in matrix.measures else np.nan * seconds for name in names]
    reporting = np.flatnonzero(~np.isnan(spread.load[place]))
    return LoadSnapshot(
        from_epoch_us(int(matrix.end_us[row])),
        float(spread.minimum[place]),
        float(spread.mean[place]),
        float(spread.maximum[place]),
        float(spread.std[place]),
        [TargetLoad(matrix.targets[value], *(not_nan(rate[value]) for rate in rates)) for value in reporting.tolist()],
    )


# One target against its peers (SPEC B2) -------------------------------------------------------------------------------
# Its share of the load, and how long it moved nothing while they did.

MATTERS: Final = 0.25  # of the usual load: a share closer to it is far only in theory
SILENT_S: Final = 600.0  # without a byte while peers move data: shorter may be chance
SILENT_FACTOR: Final = 5.0  # longer than the peers' own longest silence, in the median

SUMMED: Final = (
    "ticks", "peer_ticks", "reported", "active", "judged", "load", "usual", "moved_bytes", "background_bytes",
)  # fmt: skip

Finding = Literal["dead", "silent", "low", "high", "usual"]


@dataclass(frozen=True, slots=True)
class PeerTarget:
    """One target beside the others over the window; a load ratio of 1 is the mean of the same ticks."""

    target: str
    finding: Finding
    reported_pct: float
    mean_bytes_per_s: float | None
    max_bytes_per_s: float | None
    load_ratio: float | None
    robust_z: float | None
    active_pct: float | None
    silent_pct: float | None
    longest_silent_s: float
    silent_from: datetime | None
    silent_to: datetime | None
    still_silent: bool
    background_pct: float | None


@dataclass(slots=True)
class Peers:
    """Feed matrices with their spreads, or sums of later ones, in time order."""

    targets: Sequence[str]
    tick_us: int
    ticks: int = 0
    peer_ticks: int = 0  # in which at least half of the others move data
    reported: Integers = field(init=False)
    active: Integers = field(init=False)
    judged: Integers = field(init=False)  # ticks in which it reported and its peers moved data
    load: Floats = field(init=False)
    usual: Floats = field(init=False)  # summed means of the ticks it reported
    most: Floats = field(init=False)
    moved_bytes: Floats = field(init=False)  # read and written, where background is reported too
    background_bytes: Floats = field(init=False)
    tells_background: Booleans = field(init=False)
    silences: Stretches = field(init=False)
    broken_before: Booleans = field(init=False)  # a silence, before the first tick in which peers moved data
    broken: Booleans = field(init=False)  # since the last such tick
    edges: Edges | None = None

    def __post_init__(self) -> None:
        count = len(self.targets)
        self.reported, self.active, self.judged = (np.zeros(count, np.int64) for _ in range(3))
        self.load, self.usual, self.most, self.moved_bytes, self.background_bytes = (np.zeros(count) for _ in range(5))
        self.tells_background = np.zeros(count, np.bool_)
        self.silences = Stretches(count)
        self.broken_before, self.broken = (np.zeros(count, np.bool_) for _ in range(2))

    def add(self, matrix: TickMatrix, load: Floats, spread: TickSpread) -> None:
        """`load` is what was read and written in all ticks; the spread is of those in which enough targets report."""
        self.take(Peers.of(self.targets, matrix, load, spread))

    @classmethod
    def of(cls, targets: Sequence[str], matrix: TickMatrix, load: Floats, spread: TickSpread) -> Peers:
        """Of some ticks."""
        result = cls(targets, matrix.tick_us, ticks=spread.rows.size, edges=Edges.of(matrix, np.zeros(1)))
        result.reported = spread.known.sum(axis=0)
        result.load = spread.filled.sum(axis=0)
        result.usual = spread.mean @ spread.known
        result.most = spread.filled.max(axis=0, initial=0.0)
        result.active = (spread.filled > 0).sum(axis=0)
        if BACKGROUND in matrix.measures:
            result._add_background(matrix)
        result._find_silences(matrix, load)
        return result

    def take(self, later: Peers) -> None:
        """Of later ticks."""
        for name in SUMMED:
            setattr(self, name, getattr(self, name) + getattr(later, name))
        self.most = np.maximum(self.most, later.most)
        self.tells_background = self.tells_background | later.tells_background
        if later.edges is None:
            return
        apart = self.edges is None or later.edges.first_us - self.edges.last_us > GAP * self.tick_us
        between = self.broken | apart | later.broken_before
        if not self.silences.fed:
            self.broken_before = self.broken_before | (apart & (self.edges is not None)) | later.broken_before
        self.silences.take(later.silences, ~between)
        self.broken = later.broken if later.silences.fed else between
        self.edges = later.edges if self.edges is None else self.edges.joined(later.edges)

    def rearranged(self, targets: Sequence[str], columns: Integers) -> Peers:
        """Of other targets, by their places among these; −1 does not report."""
        result = Peers(targets, self.tick_us, self.ticks, self.peer_ticks, edges=self.edges)
        for name in ("reported", "active", "judged", "load", "usual", "most", "moved_bytes", "background_bytes",
                     "tells_background"):  # fmt: skip
            setattr(result, name, rearranged(getattr(self, name), columns))
        result.silences = self.silences.rearranged(columns)
        result.broken_before, result.broken = (
            rearranged(values, columns, fill=self.edges is not None) for values in (self.broken_before, self.broken)
        )
        return result

    def _add_background(self, matrix: TickMatrix) -> None:
        reported = matrix.measures[BACKGROUND]
        self.background_bytes += np.nansum(reported, axis=0)
        self.tells_background |= (~np.isnan(reported)).any(axis=0)
        for direction in DIRECTIONS:
            if f"{direction}_bytes" in matrix.measures:
                self.moved_bytes += np.nansum(matrix.measures[f"{direction}_bytes"], axis=0)

    def _find_silences(self, matrix: TickMatrix, load: Floats) -> None:
        """A silence goes on through ticks in which nobody moves much, until it moves data or does not report."""
        with np.errstate(invalid="ignore"):
            moved, zero = load > 0, load == 0
        movers, reporting = moved.sum(axis=1), (moved | zero).sum(axis=1)
        peers_move = (movers > 0) & (2 * movers >= reporting - 1)
        follows = matrix.follows
        follows[0] = True  # that depends on the ticks before
        breaks = np.cumsum(~zero | ~follows[:, None], axis=0, dtype=np.int32)
        here = breaks[peers_move]
        self.peer_ticks = len(here)
        self.judged = (moved | zero)[peers_move].sum(axis=0)
        if not len(here):
            self.broken_before = self.broken = breaks[-1] > 0
            return
        unbroken = np.diff(here, axis=0, prepend=0) == 0
        self.silences = Stretches.of(zero[peers_move], matrix.end_us[peers_move] // self.tick_us, unbroken)
        self.broken_before, self.broken = here[0] > 0, breaks[-1] > here[-1]

    def result(self) -> list[PeerTarget]:
        """Every target, by name."""
        ratio = np.divide(self.load, self.usual, out=np.full(len(self.targets), np.nan), where=self.usual > 0)
        score = _scores(ratio)
        with np.errstate(invalid="ignore"):
            far = (np.abs(score) > FAR) & (np.abs(ratio - _middle(ratio)) >= MATTERS)
        silent = self._long_silences()
        return [self._target(place, ratio, score, bool(far[place]), bool(silent[place])) for place in range(ratio.size)]

    def _long_silences(self) -> Booleans:
        longest = self.silences.longest
        others = np.array([np.median(np.delete(longest, place)) for place in range(longest.size)])
        seconds = longest * (self.tick_us / 1e6)
        values: Booleans = (seconds >= SILENT_S) & (longest >= SILENT_FACTOR * others)
        return values

    def _target(self, place: int, ratio: Floats, score: Floats, is_far: bool, is_silent: bool) -> PeerTarget:
        silences, tick_us = self.silences, self.tick_us
        length = int(silences.longest[place])
        still = bool(length) and int(silences.open[place]) == length and not self.broken[place]
        reported, judged = int(self.reported[place]), int(self.judged[place])
        moved, background = float(self.moved_bytes[place]), float(self.background_bytes[place])
        everything = moved + background
        return PeerTarget(
            target=self.targets[place],
            finding=_finding(is_silent, still, is_far, float(score[place])),
            reported_pct=100.0 * reported / self.ticks if self.ticks else 0.0,
            mean_bytes_per_s=float(self.load[place]) / reported if reported else None,
            max_bytes_per_s=float(self.most[place]) if reported else None,
            load_ratio=not_nan(ratio[place]),
            robust_z=not_nan(score[place]),
            active_pct=100.0 * int(self.active[place]) / reported if reported else None,
            silent_pct=100.0 * int(silences.rows[place]) / judged if judged else None,
            longest_silent_s=length * tick_us / 1e6,
            silent_from=from_epoch_us((int(silences.longest_first[place]) - 1) * tick_us) if length else None,
            silent_to=from_epoch_us(int(silences.longest_last[place]) * tick_us) if length else None,
            still_silent=still,
            background_pct=100.0 * background / everything if self.tells_background[place] and everything else None,
        )


def _scores(ratio: Floats) -> Floats:
    """Robust z-scores; NaN among too few, or where all are alike."""
    known = ~np.isnan(ratio)
    nothing = np.full(ratio.size, np.nan)
    if known.sum() < FEWEST_PEERS:
        return nothing
    width = robust_spread(ratio[known])
    return (ratio - _middle(ratio)) / width if width else nothing


def _middle(ratio: Floats) -> float:
    known = ratio[~np.isnan(ratio)]
    return float(np.median(known)) if known.size else np.nan


def _finding(is_silent: bool, still: bool, is_far: bool, score: float) -> Finding:
    if is_silent:
        return "dead" if still else "silent"
    if not is_far:
        return "usual"
    return "high" if score > 0 else "low"


# What `imbalance` takes from some ticks; parts of days are made apart, and taken in time order ------------------------


@dataclass(slots=True)
class ImbalancePart:
    """How loads spread, tick by tick, and every target beside its peers."""

    ticks: Ticks
    with_background: bool
    apart_us: int  # the worst ticks
    at_us: Sequence[int] = ()  # times to show
    series: SpreadSeries = field(init=False)
    peers: Peers = field(init=False)
    snapshots: LoadSnapshots = field(init=False)
    other: LogSketch = field(init=False)  # std with background where that is left out, and the other way round
    present: Booleans = field(init=False)  # targets that have a row
    left_out: int = 0

    def __post_init__(self) -> None:
        self.series = SpreadSeries(len(self.ticks.targets), self.ticks.tick_us)
        self.peers = Peers(self.ticks.targets, self.ticks.tick_us)
        self.snapshots = LoadSnapshots(self.apart_us, self.at_us)
        self.other = LogSketch(1)
        self.present = np.zeros(len(self.ticks.targets), np.bool_)

    @property
    def knows_background(self) -> bool:
        """Whether any target tells background I/O."""
        return BACKGROUND in self.ticks.known

    @property
    def included(self) -> bool:
        """Whether background I/O is part of the loads."""
        return self.with_background and self.knows_background

    @property
    def incomplete(self) -> int:
        """Ticks without all of the targets that are expected in them."""
        ends = self.series.numbers * self.ticks.tick_us
        return int((self.series.reporting < self.ticks.expected(ends)).sum()) if ends.size else 0

    def add(self, matrix: TickMatrix) -> None:
        """The next ticks."""
        self.present = self.present | ~np.isnan(matrix.duration_s).all(axis=0)
        client = loads(matrix, with_background=False)
        both = loads(matrix, with_background=True) if self.knows_background else client
        load, other = (both, client) if self.included else (client, both)
        spreads = spread(load)
        ends = matrix.end_us[spreads.rows]
        self.series.add(ends, spreads)
        self.peers.add(matrix, client, spreads)
        self.snapshots.add(matrix, spreads)
        if self.knows_background:
            self.other.add(spread(other).std[:, None])
        self.left_out += matrix.end_us.size - spreads.rows.size

    def take(self, later: ImbalancePart) -> None:
        """A part of later ticks of the same question, with some of the same targets."""
        later = later.of_targets(self.ticks)
        self.series.take(later.series)
        self.peers.take(later.peers)
        self.snapshots.take(later.snapshots)
        self.other.take(later.other)
        self.present = self.present | later.present
        self.left_out += later.left_out

    def of_targets(self, ticks: Ticks) -> ImbalancePart:
        """The same with the targets of other ticks; one that is not in this part did not report."""
        if ticks.targets == self.ticks.targets:
            return self
        columns = ticks.columns_in(self.ticks)
        result = ImbalancePart(ticks, self.with_background, self.apart_us, self.at_us, self.left_out)
        result.series = self.series.rearranged(columns)
        result.peers = self.peers.rearranged(ticks.targets, columns)
        result.snapshots, result.other = self.snapshots, self.other
        result.present = rearranged(self.present, columns)
        return result


LOADS: Final = (*(f"{direction}_bytes" for direction in DIRECTIONS), BACKGROUND)  # what loads are made of
FORM: Final = PartForm(
    "imbalance",
    2,
    (ImbalancePart, Ticks, SpreadSeries, LogSketch, Peers, Stretches, Edges, LoadSnapshots, LoadSnapshot, TargetLoad),
)


@dataclass(frozen=True, slots=True)
class ImbalanceParts(TickParts):
    """How parts are made: of which targets and ticks, and what is shown."""

    with_background: bool
    apart_us: int
    at_us: tuple[int, ...] = ()
    form: ClassVar = FORM
    measures: ClassVar = LOADS

    def depends_on(self, ends: Ends) -> object:
        """Not on the window: a part has the targets that report in its days."""
        shown = [time for time in self.at_us if ends.after_us - 2 * self.tick_us <= time <= ends.until_us]
        return [*self.ticks.rules, self.with_background, self.apart_us, shown]

    def for_good(self) -> ImbalanceParts:
        """With the worst tick of each day."""
        return replace(self, apart_us=DAY_US, at_us=())

    def empty(self) -> ImbalancePart:
        """No ticks yet."""
        return ImbalancePart(self.ticks, self.with_background, self.apart_us, self.at_us)

    def finished(self, part: ImbalancePart) -> ImbalancePart:
        """With the targets that report."""
        return part.of_targets(self.ticks.only(part.present))
