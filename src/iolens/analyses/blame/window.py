"""Which part of a window was busiest, from the FSU of its ticks (B1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.utilization.model_rows import model_rows
from iolens.analyses.utilization.part import WIDEST_BUCKET_S, UtilizationParts
from iolens.arrays import Floats, Integers
from iolens.errors import NotKnownError
from iolens.store.selection import Selection


def busiest_us(selection: Selection, applied: Sequence[AppliedCalibration], length_us: int) -> tuple[int, int]:
    """Start and end of the stretch of that length with the highest mean FSU; it begins and ends with a tick."""
    maker = UtilizationParts(model_rows(selection, "auto"), tuple(applied), WIDEST_BUCKET_S, per_target=False)
    ticks = [part.sizes for part in selection.parts(maker)]
    ends = np.concatenate([tick["epoch_us"] for tick in ticks]) if ticks else np.empty(0, np.int64)
    if not len(ends):
        raise NotKnownError(f"{selection.filesystem}: FSU is not known in this window, so its busiest part is not")
    fsu, seconds = (np.concatenate([tick[name] for tick in ticks]) for name in ("fsu", "seconds"))
    return _busiest(ends, fsu * seconds, length_us, round(float(seconds[0]) * 1e6))


def _busiest(ends: Integers, busy: Floats, length_us: int, tick_us: int) -> tuple[int, int]:
    """By sums over ticks that end within the length; gaps count as idle."""
    summed = np.concatenate([[0.0], np.cumsum(busy)])
    first = np.searchsorted(ends, ends - length_us, side="right")
    last = int((summed[1:] - summed[first]).argmax())
    end_us = int(ends[last])
    return max(end_us - length_us, int(ends[0]) - tick_us), end_us
