"""The newest load of a file system beside that of the whole window: means over the last minutes of its series."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np

from iolens.arrays import Floats, Integers
from iolens.units import from_epoch_us

LATEST_US: Final = 300_000_000


@dataclass(frozen=True, slots=True)
class LatestLoad:
    """Means over the last `length_s` seconds of a series; bytes per second also over all of it; None: not known."""

    end: datetime
    length_s: float
    fsu_pct: float | None
    bytes_per_s: float | None
    whole_bytes_per_s: float | None

    @classmethod
    def of(cls, time_us: Integers, bucket_s: float, fsu_pct: Floats, bytes_per_s: Floats) -> LatestLoad | None:
        """Of the last five minutes, or of the last bucket where buckets are longer; None: there is no series."""
        if len(time_us) == 0:
            return None
        end_us = int(time_us[-1])
        last = time_us > end_us - LATEST_US
        length_s = float(last.sum()) * bucket_s
        return cls(from_epoch_us(end_us), length_s, _mean(fsu_pct[last]), _mean(bytes_per_s[last]), _mean(bytes_per_s))


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    mean = float(known.mean()) if len(known) else math.nan
    return mean if math.isfinite(mean) else None
