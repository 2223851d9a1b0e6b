"""Of the shares of a window: those of one job or user, and of its neighbours, named only where that is allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from iolens.analyses.blame.results import Blame, WhoShare
from iolens.analyses.job_page.results import DiskCost, JobCompany, LayerTotals, PageNeighbour

SHOWN: Final = 5  # neighbours

IsOwn = Callable[[WhoShare], bool]


def disk_cost(blame: Blame, is_own: IsOwn) -> DiskCost | None:
    """The sum of the lines that are its own; None: there is none. The blame must hold every line."""
    own = [line for line in blame.who if is_own(line)]
    if not own:
        return None
    others = [line for line in blame.who if not is_own(line)]
    moved, in_all = _moved(own), _moved([*own, *others])
    return DiskCost(
        method=blame.method,
        disk_seconds=_seconds(own),
        share_pct=sum(line.share_pct for line in own),
        bytes_share_pct=100.0 * moved / in_all if moved is not None and in_all else None,
        fsu_pct=blame.fsu_pct,
        others_pct=sum(line.share_pct for line in others),
        unattributed_pct=blame.unattributed_pct,
        calibrations=blame.coverage.calibrations,
    )


def served_totals(blame: Blame, is_own: IsOwn) -> LayerTotals | None:
    """What the servers counted; None where no job_stats name it."""
    own = [line for line in blame.who if is_own(line)]
    if not own or blame.method != "job_stats":
        return None
    names = ("read_bytes", "write_bytes", "metadata_operations", "operations")
    read, written, metadata, requests = (_total([getattr(line, name) for line in own]) for name in names)
    return LayerTotals("servers", read, written, None, metadata, requests)


def company(blame: Blame, is_own: IsOwn, user: str | None, targets: Sequence[str], names: bool) -> JobCompany:
    """The other jobs of a window, those that took most first. `names`: say whose they are."""
    others = [line for line in blame.who if not is_own(line)]
    rest = others[SHOWN:]
    return JobCompany(
        targets=targets,
        targets_in_all=len({target.target for target in blame.targets}) or blame.coverage.targets_known,
        own_pct=sum(line.share_pct for line in blame.who if is_own(line)),
        neighbours=[_neighbour(line, user, names) for line in others[:SHOWN]],
        more_jobs=len(rest),
        more_pct=sum(line.share_pct for line in rest),
        unattributed_pct=blame.unattributed_pct,
    )


def _neighbour(line: WhoShare, user: str | None, names: bool) -> PageNeighbour:
    is_same = user is not None and line.user == user
    told = (line.name, line.user, line.executable) if names or is_same else (None, None, None)
    return PageNeighbour(is_same, *told, line.share_pct, line.disk_seconds)


def _seconds(lines: Sequence[WhoShare]) -> float | None:
    known = [line.disk_seconds for line in lines if line.disk_seconds is not None]
    return sum(known) if known else None


def _moved(lines: Sequence[WhoShare]) -> int | None:
    return _total([value for line in lines for value in (line.read_bytes, line.write_bytes)])


def _total(values: Sequence[int | None]) -> int | None:
    """The sum of what is known; None: nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
