"""Two scans side by side: the whole, every project and every owner, with the change (Table V of paper D)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from iolens.analyses.contents.holdings import Holdings, Name
from iolens.analyses.contents.scans import FILE, Scan
from iolens.errors import UsageError
from iolens.times import last_utc_time
from iolens.units import DAY_US, epoch_us, iso

FIRST: Final = "first"
PREVIOUS: Final = "previous"
LISTED: Final = 8


@dataclass(frozen=True, slots=True)
class AmountChange:
    """An amount in both scans. `share_pct` is the part of the whole's growth; None where the whole did not grow."""

    before: int | None
    after: int | None
    change: int | None
    change_pct: float | None
    share_pct: float | None


@dataclass(frozen=True, slots=True)
class TotalChange:
    """The whole, or what is left of it."""

    files: AmountChange
    bytes: AmountChange
    allocated_bytes: AmountChange
    directories: AmountChange
    inodes: AmountChange


@dataclass(frozen=True, slots=True)
class ProjectChange:
    """A project; what a scan does not have of it is zero there."""

    project: str | None
    files: AmountChange
    bytes: AmountChange


@dataclass(frozen=True, slots=True)
class OwnerChange:
    """An owner, in the same way."""

    owner: str | None
    files: AmountChange
    bytes: AmountChange


@dataclass(frozen=True, slots=True)
class EarlierScan:
    """The scan that the newest one is compared with."""

    time: datetime
    source: str | None
    scan: str | None


@dataclass(frozen=True, slots=True)
class ScanComparison:
    """Changes since an earlier scan, most files gained first. Empty lists: not reported by both scans."""

    earlier: EarlierScan
    days: float
    total: TotalChange
    without: TotalChange | None
    by_project: list[ProjectChange]
    by_owner: list[OwnerChange]


def earlier_scan(known: Sequence[Scan], scan: Scan, compare: str | datetime | None) -> Scan | None:
    """The scan to compare with: of the same source where there is one.

    Neither `first` nor `previous` may exist; a time before all scans is an error.
    """
    before = [item for item in known if item.time_us < scan.time_us]
    same = [item for item in before if item.source == scan.source]
    if compare is None:
        return None
    if compare == FIRST:
        return _of_time(same, same[0].time_us) if same else None
    if compare == PREVIOUS:
        return same[-1] if same else None
    latest = epoch_us(_time(compare))
    for candidates in (same, before):
        if scans := [candidate for candidate in candidates if candidate.time_us <= latest]:
            return scans[-1]
    there = ", ".join(iso(scan.time) for scan in before[:LISTED]) or "none"
    raise UsageError(f"there is no scan up to {iso(_time(compare))} to compare with; before the newest: {there}")


def _of_time(known: Sequence[Scan], time_us: int) -> Scan:
    return [scan for scan in known if scan.time_us == time_us][-1]


def _time(compare: str | datetime) -> datetime:
    if isinstance(compare, str):
        try:
            compare = last_utc_time(compare)
        except ValueError as error:
            raise UsageError(f"compare with {FIRST}, {PREVIOUS} or a time: {error}") from None
    return compare.replace(tzinfo=UTC) if compare.tzinfo is None else compare


def compared(earlier: Scan, before: Holdings, scan: Scan, after: Holdings, without: Sequence[str]) -> ScanComparison:
    """The change from one scan to the other."""
    whole = _total(before, after, None)
    rest = _total(before.without(without), after.without(without), whole) if without else None
    return ScanComparison(
        earlier=EarlierScan(earlier.time, earlier.source, earlier.scan),
        days=(scan.time_us - earlier.time_us) / DAY_US,
        total=whole,
        without=rest,
        by_project=[ProjectChange(name, *changes) for name, *changes in _parts("project", before, after, whole)],
        by_owner=[OwnerChange(name, *changes) for name, *changes in _parts("owner", before, after, whole)],
    )


def _total(before: Holdings, after: Holdings, whole: TotalChange | None) -> TotalChange:
    pairs = {
        "files": (before.of_type(FILE).inodes, after.of_type(FILE).inodes),
        "bytes": (before.of_type(FILE).bytes, after.of_type(FILE).bytes),
        "allocated_bytes": (before.of_type(FILE).allocated_bytes, after.of_type(FILE).allocated_bytes),
        "directories": (before.directories, after.directories),
        "inodes": (before.everything.inodes, after.everything.inodes),
    }
    return TotalChange(
        **{name: _change(*pair, getattr(whole, name) if whole is not None else None) for name, pair in pairs.items()}
    )


def _parts(
    name: Name, before: Holdings, after: Holdings, whole: TotalChange
) -> list[tuple[str | None, AmountChange, AmountChange]]:
    """By project or owner, where both scans name some."""
    if not before.names(name) or not after.names(name):
        return []
    nothing = Holdings({})
    old, new = dict(before.by(name)), dict(after.by(name))
    results: list[tuple[str | None, AmountChange, AmountChange]] = []
    for text in dict.fromkeys([*new, *old]):
        was, is_ = (side.get(text, nothing).of_type(FILE) for side in (old, new))
        results.append((text, _change(was.inodes, is_.inodes, whole.files), _change(was.bytes, is_.bytes, whole.bytes)))
    return sorted(results, key=lambda part: (-(part[1].change or 0), -(part[2].change or 0), str(part[0])))


def _change(before: int | None, after: int | None, whole: AmountChange | None) -> AmountChange:
    change = None if before is None or after is None else after - before
    of_whole = whole.change if whole is not None else change
    return AmountChange(
        before,
        after,
        change,
        100.0 * change / before if change is not None and before else None,
        100.0 * change / of_whole if change is not None and of_whole is not None and of_whole > 0 else None,
    )
