"""A calibration that a test chooses: levels of FSU mean nothing by the shipped default, which nobody chose."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from iolens.api.calibration import add_calibration
from iolens.models.transaction_time import GRACE_2012, CalibrationState
from iolens.store.store import Store

GRACE: Final = GRACE_2012.name
CONFIGURED: Final = f'[filesystems.scratch]\ncalibration = "{GRACE}"\n'


def choose_grace(store: Store | str | Path, *filesystems: str) -> None:
    """Store the coefficients of Grace for file systems (`scratch`), as a class that a person chose."""
    opened = store if isinstance(store, Store) else Store(str(store))
    write, read = ((of.latency_s, of.s_per_byte) for of in (GRACE_2012.write, GRACE_2012.read))
    for filesystem in filesystems or ("scratch",):
        add_calibration(
            opened, GRACE, write, read, filesystem=filesystem, state=CalibrationState.CLASS, evidence="chosen by a test"
        )
