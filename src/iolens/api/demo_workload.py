"""The centre of the demo: `scratch` with an application that runs every hour, and a job that slows two of its runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from iolens.simulator.workload import PlantedJob, SimulatedWorkload, load_workload
from iolens.units import KIB, MIB

NODES: Final = 14  # of which planted jobs have six, and the others share the rest
FIRST_ID: Final = 70_000_000
CULPRIT_ID: Final = str(FIRST_ID)
HOUR_S: Final = 3600
RUN_S: Final = 1800  # of the application
CULPRIT_HOURS: Final = (38, 40)  # after the start
VICTIM_HOUR: Final = 38


def demo_workload(start: datetime, days: int) -> SimulatedWorkload:
    """`vera` runs a weather model that writes 1 MiB at a time, `marco` an assembler that writes 4 KiB anywhere."""
    first_s = int(start.timestamp())
    runs = tuple(
        PlantedJob(
            victim_id(hour), "vera", "weather", "wrf.exe", 4, first_s + hour * HOUR_S, first_s + hour * HOUR_S + RUN_S,
            level_pct=8.0, ios={("write", MIB): 1.0}, strategy="file_per_process",
        )
        for hour in range(24 * days - 1)
    )  # fmt: skip
    first, last = (first_s + hour * HOUR_S for hour in CULPRIT_HOURS)
    culprit = PlantedJob(
        CULPRIT_ID, "marco", "genomes", "assemble.x", 2, first, last, level_pct=55.0, ios={("write", 4 * KIB): 1.0},
        metadata={"open": 5.0, "close": 5.0}, strategy="shared",
        is_random=True,
    )  # fmt: skip
    return replace(load_workload("scratch"), planted=(culprit, *runs))


def victim_id(hour: int = VICTIM_HOUR) -> str:
    """Job of the run that begins in that hour."""
    return str(FIRST_ID + 1 + hour)
