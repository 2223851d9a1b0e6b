"""What the exporter of a server needs beside its counters."""

from __future__ import annotations

from iolens.agent.exporter.fsu import ChosenCalibration
from iolens.analyses.calibration.stored import find_calibration
from iolens.config import Config
from iolens.models.saturation import ceiling_of


def exported_calibration(config: Config, name: str | None, filesystem: str) -> ChosenCalibration:
    """The calibration asked for, else the file system's configured one, else a published one; and the ceiling.

    A server has no store, so a measured ceiling has to be configured here.
    """
    known = config.filesystem(filesystem)
    asked = name or known.calibration
    calibration = find_calibration((), config, asked, filesystem, None)[0]
    return ChosenCalibration(calibration, asked is None, ceiling_of(None, calibration.name, known.ceiling_fsu_pct))
