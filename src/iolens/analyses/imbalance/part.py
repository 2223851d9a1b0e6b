"""What `imbalance` takes from some ticks; parts of days are made apart, and taken in time order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from iolens.analyses.imbalance.load_snapshots import LoadSnapshot, LoadSnapshots, TargetLoad
from iolens.analyses.imbalance.peers import Peers
from iolens.analyses.imbalance.spreads import BACKGROUND, SpreadSeries, loads, spread
from iolens.analyses.imbalance.stretches import Stretches
from iolens.analyses.intervals.tick_matrix import Edges, TickMatrix, Ticks
from iolens.models.log_sketch import LogSketch
from iolens.part_form import PartForm
from iolens.store.selection import Days


@dataclass(slots=True)
class ImbalancePart:
    """How loads spread, tick by tick, and every target beside its peers."""

    ticks: Ticks
    with_background: bool
    extent_us: tuple[int, int]  # of the window
    at_us: Sequence[int]  # times to show
    series: SpreadSeries = field(init=False)
    peers: Peers = field(init=False)
    snapshots: LoadSnapshots = field(init=False)
    other: LogSketch = field(init=False)  # std with background where that is left out, and the other way round
    left_out: int = 0
    incomplete: int = 0

    def __post_init__(self) -> None:
        self.series = SpreadSeries(len(self.ticks.targets), self.ticks.tick_us)
        self.peers = Peers(self.ticks.targets, self.ticks.tick_us)
        self.snapshots = LoadSnapshots(self.extent_us, self.at_us)
        self.other = LogSketch(1)

    @property
    def knows_background(self) -> bool:
        """Whether any target tells background I/O."""
        return BACKGROUND in self.ticks.known

    @property
    def included(self) -> bool:
        """Whether background I/O is part of the loads."""
        return self.with_background and self.knows_background

    def add(self, matrix: TickMatrix) -> None:
        """The next ticks."""
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
        self.incomplete += int((spreads.reporting < self.ticks.expected(ends)).sum())

    def take(self, later: ImbalancePart) -> None:
        """A part of later ticks of the same question."""
        self.series.take(later.series)
        self.peers.take(later.peers)
        self.snapshots.take(later.snapshots)
        self.other.take(later.other)
        self.left_out += later.left_out
        self.incomplete += later.incomplete


FORM: Final = PartForm(
    "imbalance",
    1,
    (ImbalancePart, Ticks, SpreadSeries, LogSketch, Peers, Stretches, Edges, LoadSnapshots, LoadSnapshot, TargetLoad),
)


def imbalance_part(
    days: Days, ticks: Ticks, with_background: bool, extent_us: tuple[int, int], at_us: Sequence[int]
) -> ImbalancePart:
    """Of some days."""
    part = ImbalancePart(ticks, with_background, extent_us, at_us)
    for slice_ in days.slices(ticks.tick_us):
        matrix = ticks.matrix(slice_)
        if matrix is not None:
            part.add(matrix)
    return part
