"""A line for each server of a live view: what its targets move together, and how busy they are on average."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final

import numpy as np

from iolens.analyses.live.target_lines import TargetLine
from iolens.arrays import Floats

KIND: Final = "server"
_STATES: Final = ("reporting", "late", "silent", "waiting")
_SUMS: Final = ("read_bytes_per_s", "write_bytes_per_s", "iops", "metadata_ops_per_s")
_MEANS: Final = ("fsu_pct", "fsu_bytes_pct", "util_pct")


def server_lines(lines: Sequence[TargetLine], outermost: str | None, first_number: int) -> list[TargetLine]:
    """By server, where at least two are known; numbers of their courses begin with `first_number`.

    Of data targets only those of the outermost kind are added up: what an OST moves, its devices move again.
    """
    counted = sorted(_counted(lines, outermost), key=lambda line: line.server or "")
    groups = [(server or "", list(members)) for server, members in groupby(counted, key=lambda line: line.server)]
    if len(groups) < 2:
        return []
    return [_server_line(server, members, first_number + place) for place, (server, members) in enumerate(groups)]


def server_courses(
    courses: Floats, lines: Sequence[TargetLine], outermost: str | None, servers: Sequence[TargetLine]
) -> Floats:
    """Mean FSU of the targets of each server at the last ticks: servers × ticks, NaN where none reported."""
    means = np.full((len(servers), courses.shape[1]), np.nan)
    for place, server in enumerate(servers):
        own = courses[[line.number for line in _counted(lines, outermost) if line.server == server.target]]
        known = ~np.isnan(own)
        np.divide(np.where(known, own, 0.0).sum(axis=0), known.sum(axis=0), out=means[place], where=known.any(axis=0))
    return means


def _counted(lines: Iterable[TargetLine], outermost: str | None) -> list[TargetLine]:
    return [line for line in lines if line.server is not None and line.target_kind in (outermost, "mdt")]


def _server_line(server: str, members: Sequence[TargetLine], number: int) -> TargetLine:
    numbers: dict[str, Any] = {name: float(sum(own)) for name in _SUMS if (own := _known(members, name))}
    numbers |= {name: float(np.mean(own)) for name in _MEANS if (own := _known(members, name))}
    return TargetLine(
        server,
        KIND,
        next(state for state in _STATES if any(line.state == state for line in members)),
        **numbers,
        after_reset=any(line.after_reset for line in members),
        age_s=min(_known(members, "age_s"), default=None),
        number=number,
    )


def _known(lines: Iterable[TargetLine], name: str) -> list[float]:
    return [value for line in lines if (value := getattr(line, name)) is not None]
