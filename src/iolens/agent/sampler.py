"""One tick: read the server's files, keep what is due, spool it. Imports nothing heavier than the standard library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iolens.agent.health import Health
from iolens.agent.spool import Spool
from iolens.errors import InputError
from iolens.records import Item, Problem, Sample
from iolens.sources.lustre_proc import read_tree

SLOW_TABLES: Final = frozenset({"target_histograms", "job_io"})
SLOW_LEAVES: Final = frozenset({"job_stats"})  # not even opened on the ticks between
PROBLEMS_PER_SEGMENT: Final = 100

Reader = Callable[[Path, int, str | None, frozenset[str]], Iterator[Item]]


@dataclass(slots=True)
class Sampler:
    """Samples one root; the long tables have an interval of their own."""

    root: Path
    spool: Spool
    health: Health
    slow_us: int
    filesystem: str | None = None
    read: Reader = read_tree
    last_us: int | None = None
    told: set[tuple[str, str]] = field(default_factory=set)
    told_in: int = 0

    def sample(self, tick_us: int) -> None:
        """Read everything now and spool it under the tick's nominal time."""
        slow = self.last_us is None or tick_us // self.slow_us != self.last_us // self.slow_us
        self.last_us = tick_us
        kept, targets = [], set()
        for item in self._items(tick_us, frozenset() if slow else SLOW_LEAVES):
            if isinstance(item, Problem):
                kept += self._news(item)
            elif slow or not (isinstance(item, Sample) and item.table in SLOW_TABLES):
                kept.append(item)
            if isinstance(item, Sample):
                targets.add((item.filesystem, item.target))
        self.health.ticks += 1
        self.health.targets = len(targets)
        if slow and self.health.is_stored:
            kept.append(self.health.row())
        if kept and self.spool.append(tick_us, kept):
            self.health.samples += sum(isinstance(item, Sample) for item in kept)

    def _items(self, tick_us: int, skip: frozenset[str]) -> Iterator[Item]:
        """The sample's items; whatever goes wrong is a problem of this tick, not the end of the agent."""
        try:
            yield from self.read(self.root, tick_us, self.filesystem, skip)
        except InputError as error:
            yield Problem(error.place, error.line, error.found)
        except Exception as error:  # the agent outlives a file nobody has seen before
            yield Problem(str(self.root), None, f"cannot be sampled: {type(error).__name__}: {error}")

    def _news(self, problem: Problem) -> list[Item]:
        """Each problem counts; it is told once per segment."""
        self.health.refused += 1
        segment = self.spool.sequence + (self.spool.writer is None)  # the one this tick goes into
        if self.told_in != segment:
            self.told, self.told_in = set(), segment
        place = problem.place.encode("utf-8", "backslashreplace").decode()
        if (place, problem.reason) in self.told or len(self.told) >= PROBLEMS_PER_SEGMENT:
            return []
        self.told.add((place, problem.reason))
        return [Problem(place, problem.line, problem.reason)]
