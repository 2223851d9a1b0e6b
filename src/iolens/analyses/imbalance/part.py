"""What `imbalance` takes from some ticks; parts of days are made apart, and taken in time order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

import numpy as np

from iolens.analyses.imbalance.load_snapshots import LoadSnapshot, LoadSnapshots, TargetLoad
from iolens.analyses.imbalance.peers import Peers
from iolens.analyses.imbalance.spreads import BACKGROUND, SpreadSeries, loads, spread
from iolens.analyses.imbalance.stretches import Stretches
from iolens.analyses.intervals.tick_matrix import Edges, TickMatrix, Ticks
from iolens.analyses.intervals.tick_parts import TickParts
from iolens.arrays import Booleans, rearranged
from iolens.models.log_sketch import LogSketch
from iolens.part_form import PartForm
from iolens.schema import DIRECTIONS
from iolens.store.parts import Ends
from iolens.units import DAY_US


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
