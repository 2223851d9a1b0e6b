"""Of the shares of a window: those of one job or user, and of its neighbours, named only where that is allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from iolens.analyses.blame.results import Blame, WhoShare
from iolens.analyses.calibration.levels import together
from iolens.analyses.job_page.results import CostMethod, DiskCost, JobCompany, LayerTotals, PageNeighbour

SHOWN: Final = 5  # neighbours

IsOwn = Callable[[WhoShare], bool]


def disk_cost(blames: Sequence[Blame], is_own: IsOwn) -> DiskCost | None:
    """The sum of the lines that are its own, over all the windows; None: there is none. Blames must hold every line."""
    own = [[line for line in blame.who if is_own(line)] for blame in blames]
    if not any(own):
        return None
    took_s = [blame.disk_seconds or 0.0 for blame in blames]
    shares = [sum(line.share_pct for line in lines) for lines in own]
    known = [sum(line.share_pct for line in blame.who) for blame in blames]
    moved = _moved([line for lines in own for line in lines])
    in_all = _moved([line for blame in blames for line in blame.who])
    own_pct, known_pct = _mean(shares, took_s), _mean(known, took_s)
    fsu_pct = _busy_pct(blames)
    return DiskCost(
        **together(blames, has_mean=fsu_pct is not None),
        method=_method([blame for blame, lines in zip(blames, own, strict=True) if lines]),
        disk_seconds=_seconds([line for lines in own for line in lines]),
        share_pct=own_pct,
        bytes_share_pct=100.0 * moved / in_all if moved is not None and in_all else None,
        fsu_pct=fsu_pct,
        others_pct=max(known_pct - own_pct, 0.0),
        unattributed_pct=_mean([blame.unattributed_pct for blame in blames], took_s),
        calibrations=sorted({name for blame in blames for name in blame.coverage.calibrations}),
    )


def _method(blames: Sequence[Blame]) -> CostMethod:
    methods = {blame.method for blame in blames}
    return methods.pop() if len(methods) == 1 else "both"


def _mean(shares_pct: Sequence[float], took_s: Sequence[float]) -> float:
    """Of shares of disk time, each weighed by the disk time it is of."""
    whole_s = sum(took_s)
    return sum(share * seconds for share, seconds in zip(shares_pct, took_s, strict=True)) / whole_s if whole_s else 0.0


def _busy_pct(blames: Sequence[Blame]) -> float | None:
    """FSU over all the windows: disk time ÷ the time of all targets, which is disk time ÷ FSU in each of them."""
    pairs = [(blame.disk_seconds, blame.fsu_pct) for blame in blames if blame.disk_seconds and blame.fsu_pct]
    targets_s = sum(seconds / fsu_pct for seconds, fsu_pct in pairs)
    return sum(seconds for seconds, _ in pairs) / targets_s if targets_s else None


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
    is_same = None if user is None or line.user is None else line.user == user
    if not names and not is_same:
        return PageNeighbour(is_same, None, None, None, line.share_pct, line.disk_seconds)
    return PageNeighbour(is_same, line.name, line.user, line.executable, line.share_pct, line.disk_seconds)


def _seconds(lines: Sequence[WhoShare]) -> float | None:
    known = [line.disk_seconds for line in lines if line.disk_seconds is not None]
    return sum(known) if known else None


def _moved(lines: Sequence[WhoShare]) -> int | None:
    return _total([value for line in lines for value in (line.read_bytes, line.write_bytes)])


def _total(values: Sequence[int | None]) -> int | None:
    """The sum of what is known; None: nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
