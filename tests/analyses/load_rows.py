"""`target_io` rows of made-up loads: a matrix of bytes per second in, rows out."""

from __future__ import annotations

import numpy as np

from tests.analyses.telemetry import T0_US

TICK_US = 2_000_000
MISSING = float("nan")


def rows_of(
    load: np.ndarray, *, first_tick: int = 0, kind: str | None = "controller", background: np.ndarray | None = None
) -> list[dict]:
    """A third of the load is read; NaN: no row. `background` (bytes per second) comes on top, NaN: not reported."""
    rows = []
    for tick, target in zip(*np.nonzero(~np.isnan(load)), strict=True):
        start = T0_US + (first_tick + int(tick)) * TICK_US
        moved = round(float(load[tick, target]) * 2)
        reported = None if background is None or np.isnan(background[tick, target]) else background[tick, target]
        rows.append({
            "time": start + TICK_US, "start": start, "duration_s": 2.0, "date": start // 86_400_000_000,
            "filesystem": "scratch", "source": "made-up", "target": f"c{target:02d}", "target_kind": kind,
            "after_reset": False, "read_bytes": moved // 3, "write_bytes": moved - moved // 3, "read_ops": 1,
            "write_ops": 1, "background_bytes": None if reported is None else round(float(reported) * 2),
        })  # fmt: skip
    return rows


def spider(seed: int = 1, ticks: int = 3000, targets: int = 24) -> np.ndarray:
    """Known imbalance: in each period one target is ten times as loaded; `c03` most often; whole bytes per second."""
    random = np.random.default_rng(seed)
    load = np.round(random.lognormal(13, 0.5, (ticks, targets)))
    tick = 0
    while tick < ticks:
        length = int(random.geometric(1 / 6))
        hot = 3 if random.random() < 0.6 else int(random.integers(targets))
        load[tick : tick + length, hot] *= 10
        tick += length + int(random.geometric(1 / 40))
    return load
