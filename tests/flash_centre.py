"""An ordinary flash file system whose coefficients nobody knows: by the shipped default its FSU is 1,665 %."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iolens.api import OpenStore
from iolens.api.calibration import add_calibration
from iolens.schema import size_column
from iolens.store.store import Store
from tests.alerts.centres import LAST, OSTS, TICK_S, Rows, interval, store_of

MIB = 1 << 20
READ_BYTES_PER_S, WRITES_PER_S = 3.1e9, 10_000  # of each OST: reads of 1 MiB, writes of 4 KiB
FLASH = (60e-6, 0.25e-9), (40e-6, 0.15e-9)  # seconds and seconds per byte of a write and of a read
NULL_WITHOUT_LEVELS = ("busy_time_pct", "optimal_busy_time_pct", "under_report_factor", "plateaus")
# Words that say how much the targets can take; parts of keys and of other words are none.
LEVELS = re.compile(
    r"(?<![\w./-])(?:busy|busier|idle|idler|moderate|saturated|saturation|ceiling|overload\w*)(?![\w-])", re.I
)


def flash(share: float = 1.0) -> Rows:
    """That share of its rates, in ticks of 30 s."""
    rows: Rows = {"target_sizes": [], "target_io": []}
    reads, writes = round(share * READ_BYTES_PER_S / MIB * TICK_S), round(share * WRITES_PER_S * TICK_S)
    for target in OSTS:
        for end_s in range(TICK_S, LAST * 60 + 1, TICK_S):
            row = interval(end_s, TICK_S, target=target, target_kind="ost")
            rows["target_sizes"].append({**row, size_column("read", MIB): reads, size_column("write", 4096): writes})
            rows["target_io"].append({
                **row, "read_bytes": reads * MIB, "write_bytes": writes * 4096, "read_ops": reads, "write_ops": writes,
            })  # fmt: skip
    return rows


def flash_store(folder: Path, share: float = 1.0) -> OpenStore:
    return OpenStore(str(store_of(folder, flash(share))), workers=1)


def calibrate(opened: OpenStore, name: str = "ours", **more: Any) -> None:
    """A calibration of the whole file system that holds from the beginning."""
    coefficients: dict[str, Sequence[float]] = {"write": FLASH[0], "read": FLASH[1]}
    more = {"filesystem": "scratch", "evidence": "a sweep", **coefficients, **more}
    add_calibration(Store(str(opened.store.url)), name, **more)


def levels_in(text: str) -> list[str]:
    """The level words of a text."""
    return LEVELS.findall(text)
