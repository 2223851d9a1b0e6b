"""Which server (OSS, MDS) serves each target of a file system in a window, and which targets moved to another.

Targets move: after a fail-over their partner serves them. What is known are times at which a server was seen to serve a
target; it is taken to do so until another is seen to. What the configuration says goes before what was seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise
from typing import NamedTuple

from iolens.target_names import members_by_pattern
from iolens.units import from_epoch_us


class SeenServer(NamedTuple):
    """A row of `target_servers`: at that time the host served the target."""

    target: str
    source: str
    time_us: int
    host: str


@dataclass(frozen=True, slots=True)
class ServerMove:
    """A target that was served by another server from a time on."""

    time: datetime
    target: str
    from_server: str
    to_server: str


@dataclass(frozen=True, slots=True)
class TargetServers:
    """The server of each target that is known: the one that served it longest in the window; and moves within it."""

    of_targets: dict[str, str]
    moves: list[ServerMove]

    @property
    def servers(self) -> list[str]:
        """Their names."""
        return sorted(set(self.of_targets.values()))

    @property
    def are_several(self) -> bool:
        """Whether there is anything to group by."""
        return len(set(self.of_targets.values())) > 1

    def place(self, target: str) -> tuple[bool, str, str]:
        """Sorts targets by server, then name; those of an unknown server come last."""
        server = self.of_targets.get(target)
        return server is None, server or "", target


NOT_KNOWN = TargetServers({}, [])


def servers_in_window(
    seen: Iterable[SeenServer],
    window_us: tuple[int, int],
    configured: Mapping[str, Sequence[str]],
    targets: Iterable[str],
    source_order: Sequence[str] = (),
) -> TargetServers:
    """By what was seen up to the end of the window; of several sources see `_of_first_source`.

    `configured` are patterns of target names by server: they are held against `targets`, and those that were seen.
    """
    rank = {source: place for place, source in enumerate(source_order)}
    ordered = sorted(seen, key=lambda row: (row.target, rank.get(row.source, len(rank)), *row[1:]))
    of_targets: dict[str, str] = {}
    moves: list[ServerMove] = []
    for target, rows in groupby(ordered, key=lambda row: row.target):
        spells = list(_spells(_of_first_source(rows), window_us))
        if spells:
            of_targets[target] = _longest(spells)
            moves += [
                ServerMove(from_epoch_us(after.since_us), target, before.host, after.host)
                for before, after in pairwise(spells)
            ]
    members = members_by_pattern(configured, {*targets, *of_targets})
    stated = {target: server for server, names in members.items() for target in names}
    moves = [move for move in moves if move.target not in stated]
    return TargetServers(dict(sorted((of_targets | stated).items())), sorted(moves, key=lambda move: move.time))


def _of_first_source(rows: Iterable[SeenServer]) -> list[SeenServer]:
    """Of several sources the first in order counts from its first row on, and before that the next one."""
    kept: list[SeenServer] = []
    for _, of_source in groupby(rows, key=lambda row: row.source):
        kept = [row for row in of_source if not kept or row.time_us < kept[0].time_us] + kept
    return kept


class _Spell(NamedTuple):
    """A time in the window during which one host served a target."""

    host: str
    since_us: int
    until_us: int


def _spells(rows: Iterable[SeenServer], window_us: tuple[int, int]) -> Iterator[_Spell]:
    """In time order; rows that say the same again are one."""
    start_us, end_us = window_us
    changes = [next(same) for _, same in groupby(rows, key=lambda row: row.host)]
    ends = [*(row.time_us for row in changes[1:]), end_us]
    for row, until_us in zip(changes, ends, strict=True):
        since_us, until_us = max(row.time_us, start_us), min(until_us, end_us)
        if since_us < until_us:
            yield _Spell(row.host, since_us, until_us)


def _longest(spells: Sequence[_Spell]) -> str:
    """The host with most time; of equals the last."""
    seconds: dict[str, int] = {}
    for spell in spells:
        seconds[spell.host] = seconds.get(spell.host, 0) + spell.until_us - spell.since_us
    return max(reversed(seconds), key=lambda host: seconds[host])
