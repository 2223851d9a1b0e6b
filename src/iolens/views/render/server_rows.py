"""Targets in tables and figures by the server that serves them, where at least two servers are known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from iolens.views.render import tables as t
from iolens.visible_text import shown_name

if TYPE_CHECKING:
    from iolens.target_servers import TargetServers
    from iolens.views.render.tables import Row, TableColumn

MOVES_SHOWN: Final = 3
COLUMN: Final = t.text("server", "Server")


class OfTarget(Protocol):
    """Whatever is said of one target."""

    @property
    def target(self) -> str:
        """Its name."""


Line = TypeVar("Line", bound=OfTarget)


def by_server(servers: TargetServers | None, lines: Sequence[Line]) -> list[Line]:
    """Sorted by server, then target; as they are where servers are not known."""
    if servers is None or not servers.are_several:
        return list(lines)
    return sorted(lines, key=lambda line: servers.place(line.target))


def with_servers(
    servers: TargetServers | None,
    columns: tuple[TableColumn, ...],
    lines: Sequence[OfTarget],
    rows: list[Row] | None = None,
) -> tuple[tuple[TableColumn, ...], list[Row]]:
    """The columns and rows of lines of targets, with their server in front where several are known."""
    rows = t.rows_of(lines, columns) if rows is None else rows
    if servers is None or not servers.are_several:
        return columns, rows
    known = servers.of_targets
    return (COLUMN, *columns), [(known.get(line.target), *row) for line, row in zip(lines, rows, strict=True)]


def moved(servers: TargetServers | None) -> list[str]:
    """Who was moved to another server, in sentences; their numbers are of the whole window all the same."""
    moves = servers.moves if servers is not None else []
    said = [
        f"{shown_name(move.target)} moved from {shown_name(move.from_server)} to {shown_name(move.to_server)} at"
        f" {t.show_time(move.time)} UTC; it is shown under the server that had it longest."
        for move in moves[:MOVES_SHOWN]
    ]
    return [*said, f"{len(moves) - MOVES_SHOWN} more moves; JSON has them all."] if len(moves) > MOVES_SHOWN else said


def grouped_rows(
    servers: TargetServers | None, targets: Sequence[str]
) -> tuple[list[int], tuple[tuple[str, int], ...]]:
    """The places of targets sorted by server, and each server with how many it has; no groups where none are known.

    The name is empty for targets whose server is not known.
    """
    order = list(range(len(targets)))
    if servers is None or not servers.are_several:
        return order, ()
    order.sort(key=lambda row: servers.place(targets[row]))
    runs = groupby(servers.of_targets.get(targets[row], "") for row in order)
    return order, tuple((server, len(list(run))) for server, run in runs)
