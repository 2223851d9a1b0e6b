"""Imbalance between servers: the load of a server is the sum of its targets', and servers are the units (SPEC S11).

A server counts in a tick in which all of its targets report that are expected to: a part of a sum is not a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np

from iolens.analyses.imbalance.part import FORM as PART_FORM
from iolens.analyses.imbalance.part import LOADS, ImbalancePart, ImbalanceParts, PeerTarget
from iolens.analyses.imbalance.spreads import (
    FEWEST,
    Durations,
    HotTarget,
    ImbalanceThreshold,
    hot_targets,
    periods,
    thresholds_of,
    unbalanced_time,
)
from iolens.analyses.intervals.tick_matrix import TickMatrix, TickParts, Ticks
from iolens.arrays import Booleans, Floats
from iolens.part_form import PartForm
from iolens.store.parts import Ends
from iolens.store.selection import Selection
from iolens.units import DAY_US

FORM: Final = PartForm("imbalance-servers", 1, PART_FORM.classes)


@dataclass(frozen=True, slots=True)
class ServerImbalance:
    """The same as of targets over the sums of servers; `target` of a line is the server.

    `targets_by_server` counts those in each sum, `targets_without_server` are in none. `samples` are ticks in which at
    least two servers are known.
    """

    targets_by_server: dict[str, int]
    targets_without_server: list[str]
    samples: int
    std_p80_bytes_per_s: float | None
    std_p95_bytes_per_s: float | None
    thresholds: list[ImbalanceThreshold]
    lifetimes: dict[str, Durations]
    distances: dict[str, Durations]
    hot_servers: list[HotTarget]
    peers: list[PeerTarget]

    @classmethod
    def of(
        cls, parts: ServerParts, whole: ImbalancePart, percentiles: Sequence[float], values: Sequence[float]
    ) -> ServerImbalance:
        """Of all ticks; thresholds are percentiles of the servers' own standard deviation, or values."""
        series, ticks, tick_s = whole.series, whole.ticks, whole.ticks.tick_us / 1e6
        unknown = [name for name, server in zip(parts.ticks.targets, parts.servers, strict=True) if not server]
        counts = {name: parts.servers.count(name) for name in parts.names}, unknown
        if not series.std.size:
            return cls(*counts, 0, None, None, [], {}, {}, [], [])
        p80, p95 = np.quantile(series.std, [0.8, 0.95]).tolist()
        asked = thresholds_of(series, percentiles, values)
        chosen = {name: series.unbalanced(limit) for name, _, limit in asked}
        lasted = {name: periods(unbalanced, series.follows) for name, unbalanced in chosen.items()}
        return cls(
            *counts,
            int(series.std.size),
            p80,
            p95,
            [unbalanced_time(item, chosen[item[0]], lasted[item[0]], tick_s) for item in asked],
            {name: Durations.of(item.lifetimes, tick_s) for name, item in lasted.items()},
            {name: Durations.of(item.distances, tick_s) for name, item in lasted.items()},
            [hot for name in chosen for hot in hot_targets(name, series, chosen[name], ticks)],
            whole.peers.result(),
        )


def server_parts(selection: Selection, of_targets: ImbalanceParts) -> ServerParts | None:
    """How the parts of servers are made; None where not two servers are known."""
    known, ticks = selection.target_servers().of_targets, of_targets.ticks
    servers = tuple(known.get(target, "") for target in ticks.targets)
    return ServerParts(ticks, of_targets.with_background, servers) if len({*servers} - {""}) >= FEWEST else None


@dataclass(frozen=True, slots=True)
class ServerParts(TickParts):
    """How parts are made: the server of each target, empty where it is not known."""

    with_background: bool
    servers: tuple[str, ...]
    form: ClassVar = FORM
    measures: ClassVar = LOADS

    @property
    def names(self) -> tuple[str, ...]:
        """Of the servers."""
        return tuple(sorted({*self.servers} - {""}))

    def depends_on(self, ends: Ends) -> object:
        """On who serves whom, and on when targets are expected within these days."""
        spans = [(max(first, ends.after_us), min(last, ends.until_us)) for first, last in self.ticks.spans_us]
        served = sorted(zip(self.ticks.targets, self.servers, spans, strict=True))
        return [*self.ticks.rules, self.with_background, served]

    def empty(self) -> ImbalancePart:
        """No ticks yet."""
        ticks = Ticks(self.names, ("server",), self.ticks.tick_us, self.ticks.known, self._spans())
        return ImbalancePart(ticks, self.with_background, DAY_US)

    def _spans(self) -> tuple[tuple[int, int], ...]:
        """From the first to the last row of any target of each server."""
        pairs = list(zip(self.servers, self.ticks.spans_us, strict=True))
        own = [[span for server, span in pairs if server == name] for name in self.names]
        return tuple((min(first for first, _ in spans), max(last for _, last in spans)) for spans in own)

    def taken(self, matrix: TickMatrix) -> TickMatrix:
        """Ticks × servers: rates are added up, so that targets that are read at slightly other times may be added."""
        order = np.argsort(np.array(self.servers), kind="stable")[self.servers.count("") :]
        counts = [self.servers.count(name) for name in self.names]
        starts = np.cumsum([0, *counts[:-1]])
        duration_s = np.fmax.reduceat(matrix.duration_s[:, order], starts, axis=1)
        expected = self._expected(matrix)[:, order]

        def sums(name: str) -> Floats:
            rate = matrix.rate(name)[:, order]
            unknown = np.isnan(rate)
            if not unknown.any():
                return np.add.reduceat(rate, starts, axis=1) * duration_s
            rate[unknown] = 0.0
            lacks = np.logical_or.reduceat(unknown & expected, starts, axis=1)
            lacks |= np.logical_and.reduceat(unknown, starts, axis=1)
            return np.where(lacks, np.nan, np.add.reduceat(rate, starts, axis=1) * duration_s)

        measures = {name: sums(name) for name in self.measures if name in matrix.measures}
        return replace(matrix, targets=self.names, duration_s=duration_s, measures=measures)

    def _expected(self, matrix: TickMatrix) -> Booleans:
        """Whether a tick is between the first and the last row of a target."""
        first, last = np.array(self.ticks.spans_us, np.int64).T
        half_us, ends = self.ticks.tick_us // 2, matrix.end_us[:, None]
        values: Booleans = (ends + half_us >= first) & (ends - half_us <= last)
        return values
