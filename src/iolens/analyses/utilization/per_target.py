"""FSU of one target over the window."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TargetUtilization:
    """One target over the window."""

    target: str
    mean_fsu_pct: float | None
    busy_time_pct: float | None
    read_bytes: int | None
    write_bytes: int | None
    mean_fsu_bytes_pct: float | None = None
    mean_util_pct: float | None = None

    @property
    def mean_pct(self) -> float | None:
        """Mean FSU by whichever model."""
        return self.mean_fsu_pct if self.mean_fsu_bytes_pct is None else self.mean_fsu_bytes_pct
