"""Made-up records of `run_files`: what Darshan counts when ranks write or read pieces of a file."""

from __future__ import annotations

from typing import Any

from iolens.run_tables import ACCESS_BINS, access_column


def record(number: int, rank: int = -1, *, module: str = "POSIX", **counters: Any) -> dict[str, Any]:
    """A record of the file `/scratch/NUMBER`."""
    return {
        "module": module,
        "record_id": number,
        "rank": rank,
        "path": f"/scratch/{number}",
        **{"opens": 1, **counters},
    }


def moved(direction: str, calls: int, size: int, *, pieces: int = 1, extent: int | None = None) -> dict[str, Any]:
    """Counters of `calls` calls of one size, in pieces within each of which a call follows the one before."""
    upper = next((end for end in ACCESS_BINS if size <= end), None)
    reach = calls * size if extent is None else extent
    return {
        f"{direction}_bytes": calls * size, f"{direction}s": calls, f"consecutive_{direction}s": calls - pieces,
        f"sequential_{direction}s": calls - 1, "extent_bytes": reach, "access1_bytes": size, "access1_count": calls,
        access_column(direction, upper): calls,
        **({"written_extent_bytes": reach} if direction == "write" else {}),
    }  # fmt: skip


def run(processes: int, **more: Any) -> dict[str, Any]:
    """A row of `runs`."""
    return {"processes": processes, "command": "app", "modules": "POSIX", **more}
