"""Write amplification of every drive: bytes written to flash ÷ bytes written by the host, at its last reading."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import narwhals as nw
import numpy as np

from iolens.store.selection import Selection
from iolens.units import epoch_us, from_epoch_us

TABLE: Final = "drives"


@dataclass(frozen=True, slots=True)
class DriveWafs:
    """Drives whose host and flash counters are known; `drives` counts the others too."""

    filesystem: str
    drives: int
    first_reading: datetime
    last_reading: datetime
    sources: list[str]
    wafs: list[float]
    host_write_bytes: list[float]  # of the same drives: what each weighs in the fleet
    median_capacity_bytes: float | None

    @property
    def origin(self) -> str:
        """In words."""
        known = f"{len(self.wafs):,} of {self.drives:,} drives"
        return f"{self.filesystem}: {known}, last read on {self.last_reading:%Y-%m-%d} ({', '.join(self.sources)})"

    @property
    def fleet(self) -> float | None:
        """Of all drives together: idle ones weigh little."""
        flash = sum(waf * host for waf, host in zip(self.wafs, self.host_write_bytes, strict=True))
        return flash / sum(self.host_write_bytes) if self.wafs else None


def drive_wafs(selection: Selection) -> DriveWafs | None:
    """The last reading of each drive before the window ends; None where there is no drive."""
    frame = selection.frame(TABLE)
    _, until = selection.window
    if until is not None:
        frame = frame.filter(nw.col("epoch_us") < epoch_us(until))
    newest = frame.group_by("serial").agg(nw.col("epoch_us").max())
    last = frame.join(newest, on=["serial", "epoch_us"], how="inner")
    rows = last.select("serial", "source", "epoch_us", "capacity_bytes", "host_write_bytes", "nand_write_bytes")
    found = {row["serial"]: row for row in rows.collect(backend="pyarrow").to_native().to_pylist()}
    if not found:
        return None
    drives = [found[serial] for serial in sorted(found, key=str)]
    known = [row for row in drives if row["host_write_bytes"] and row["nand_write_bytes"] is not None]
    sizes = [float(row["capacity_bytes"]) for row in drives if row["capacity_bytes"]]
    moments = [int(row["epoch_us"]) for row in drives]
    return DriveWafs(
        filesystem=selection.filesystem,
        drives=len(drives),
        first_reading=from_epoch_us(min(moments)),
        last_reading=from_epoch_us(max(moments)),
        sources=sorted({str(row["source"]) for row in drives}),
        wafs=[float(row["nand_write_bytes"]) / float(row["host_write_bytes"]) for row in known],
        host_write_bytes=[float(row["host_write_bytes"]) for row in known],
        median_capacity_bytes=float(np.median(sizes)) if sizes else None,
    )
