"""Rows of `target_servers` from one server's own samples: said when a target comes to it, and once a day."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from iolens.records import Item, Row, Sample
from iolens.schema import TABLES
from iolens.units import DAY_US

TargetName = tuple[str, str]  # file system, target


def served_row(time_us: int, filesystem: str, target: str, host: str) -> Row:
    """That a host served a target then."""
    return Row("target_servers", {"time": time_us, "filesystem": filesystem, "target": target, "host": host})


def is_served(sample: Sample) -> bool:
    """Whether a sample is of a target, and not of a client or of a service of the server itself."""
    return TABLES[sample.table].subject == "target" and sample.labels.get("target_kind") != "service"


@dataclass(slots=True)
class ServedTargets:
    """Feed the targets of every tick of one server. One that was away has come from its partner: it is said again."""

    host: str
    before: frozenset[TargetName] = frozenset()
    day: int = -1

    def rows(self, time_us: int, targets: Collection[TargetName]) -> Iterator[Row]:
        """What is new at this tick."""
        here, day = frozenset(targets), time_us // DAY_US
        for filesystem, target in sorted(here - self.before if day == self.day else here):
            yield served_row(time_us, filesystem, target, self.host)
        self.before, self.day = here, day

    def forget(self) -> None:
        """Say all again at the next tick."""
        self.day = -1


def with_servers(items: Iterable[Item], host: str | None) -> Iterator[Item]:
    """The items of one tick of a server, and who serves its targets, where its name is known."""
    targets: dict[TargetName, int] = {}
    for item in items:
        if isinstance(item, Sample) and is_served(item):
            targets[item.filesystem, item.target] = item.time_us
        yield item
    for (filesystem, target), time_us in sorted(targets.items()) if host else ():
        yield served_row(time_us, filesystem, target, host or "")
