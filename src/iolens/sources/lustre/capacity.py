"""How full a Lustre target is, and its state: kbytes*, files*, recovery_status, num_exports, locks, version.

Finished rows of `target_capacity` and `target_state`; what a server does not tell is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolens.sources.lustre.clock import LATEST_S, whole_number
from iolens.units import KIB

CAPACITY_LEAVES: Final = ("kbytestotal", "kbytesfree", "kbytesavail", "filestotal", "filesfree")
# The lock namespace of a target, and the columns of `target_state` it fills.
LOCK_LEAVES: Final[Mapping[str, str]] = {
    "lock_count": "locks",
    "resource_count": "lock_resources",
    "lock_timeouts": "lock_timeouts",
    "grant_rate": "lock_grants_per_s",
    "cancel_rate": "lock_cancels_per_s",
}
LOCK_PATHS: Final = ("lock_count", "resource_count", "lock_timeouts", "pool/grant_rate", "pool/cancel_rate")
RECOVERY_LINES: Final = frozenset({
    "status", "recovery_start", "recovery_duration", "time_remaining", "completed_clients", "connected_clients",
})  # fmt: skip
_LARGEST: Final = 1 << 53  # in KiB still a signed 64-bit number of bytes
EARLIEST_RECOVERY_S: Final = 1_000_000_000  # some servers print seconds since boot: no date can be made of that

Facts = dict[str, int | float | str | None]


def parse_count(data: bytes) -> int | None:
    """The single number of a `kbytesfree`, `filestotal` or `num_exports` file; None if it is not one."""
    return _count(data.decode("ascii", "replace"))


def capacity(readings: Mapping[str, int]) -> Facts:
    """Columns of `target_capacity` from the numbers of the files by name; KiB become bytes."""
    total, free, available = (_times(readings.get(name), KIB) for name in CAPACITY_LEAVES[:3])
    inodes, free_inodes = (readings.get(name) for name in CAPACITY_LEAVES[3:])
    return {
        "total_bytes": total,
        "used_bytes": _difference(total, free),
        "free_bytes": free,
        "total_inodes": inodes,
        "used_inodes": _difference(inodes, free_inodes),
        "free_inodes": free_inodes,
        "available_bytes": available,
    }


def recovery_lines(data: bytes) -> dict[str, str] | str:
    """The lines of a recovery_status text by their names, or the one that was not understood."""
    said: dict[str, str] = {}
    for line in data.decode("ascii", "replace").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            said[key.strip()] = value.strip()
        elif line.strip():
            return f"recovery line not understood: {line.strip()[:60]!r}"
    return said


def parse_recovery(data: bytes) -> Facts | str:
    """Recovery columns of `target_state` from a recovery_status text, or what was not understood in it."""
    said = recovery_lines(data)
    if isinstance(said, str):
        return said
    if not said.get("status"):
        return "no status in recovery_status"
    completed, expected = _pair(said.get("completed_clients"))
    start = _count(said.get("recovery_start", ""))
    return {
        "recovery_status": said["status"],
        "recovery_start": _times(start, 1_000_000) if start and EARLIEST_RECOVERY_S <= start < LATEST_S else None,
        "recovery_duration_s": _float(said.get("recovery_duration")),
        "recovery_remaining_s": _float(said.get("time_remaining")),
        "completed_clients": completed,
        "expected_clients": expected if expected is not None else _pair(said.get("connected_clients"))[1],
    }


def parse_version(data: bytes) -> str | None:
    """The server's version: `lustre: 1.8.3` (/proc), `2.12.9_12.llnl` (/sys, lctl)."""
    lines = data.decode("ascii", "replace").strip().splitlines()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("lustre:")]
    return next(iter(named or lines), None) or None


def _pair(text: str | None) -> tuple[int | None, int | None]:
    done, _, of = (text or "").partition("/")
    return _count(done), _count(of)


def _count(text: str) -> int | None:
    number = whole_number(text.strip())
    return number if number is not None and number < _LARGEST else None


def _float(text: str | None) -> float | None:
    number = _count(text or "")
    return None if number is None else float(number)


def _times(number: int | None, factor: int) -> int | None:
    return None if number is None else number * factor


def _difference(total: int | None, free: int | None) -> int | None:
    return None if total is None or free is None else total - free
