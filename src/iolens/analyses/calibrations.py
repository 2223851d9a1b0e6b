"""Which calibration holds: the one asked for, the file system's own, or a published one, and then it says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from iolens.config import Config
from iolens.errors import UsageError
from iolens.models.transaction_time import GRACE_2012, Calibration, Coefficients
from iolens.units import epoch_us, from_epoch_us, iso

SHIPPED: Final = {GRACE_2012.name: GRACE_2012}


def find_calibration(
    stored: Sequence[dict[str, Any]], config: Config, name: str | None, filesystem: str, at: datetime | None
) -> tuple[Calibration, tuple[str, ...]]:
    """The calibration, and what the reader must know about it."""
    if name is not None:
        return _named(stored, config, name), ()
    own = [row for row in stored if row["filesystem"] == filesystem]
    valid = [row for row in own if at is None or row["valid_from"] is None or row["valid_from"] <= epoch_us(at)]
    if valid:
        return _from_row(valid[-1]), ()
    if own:
        oldest = _from_row(own[0])
        note = f"the data are older than every calibration of {filesystem}: {oldest.name} is the oldest, and later"
        return oldest, (note,)
    note = (
        f"no calibration of {filesystem} is stored: the coefficients are those of NERSC's Grace test system in 2012"
        " (--calibration grace-2012); calibrate your own disks before you trust the level"
    )
    return GRACE_2012, (note,)


@dataclass(frozen=True, slots=True)
class KnownCalibration:
    """A calibration and where it comes from, in words."""

    calibration: Calibration
    origin: str


def known_calibrations(stored: Sequence[dict[str, Any]], config: Config) -> list[KnownCalibration]:
    """Every calibration that can be asked for by name."""
    found = [KnownCalibration(one, "shipped: NERSC Grace test system, 2012") for one in SHIPPED.values()]
    found += [KnownCalibration(_configured(config, name), "configured") for name in config.calibrations]
    for row in stored:
        since = f" from {iso(from_epoch_us(row['valid_from']))}" if row["valid_from"] is not None else ""
        where = f"stored for {row['filesystem'] or 'any file system'}{since}: {row['evidence'] or 'no evidence noted'}"
        found.append(KnownCalibration(_from_row(row), where))
    return found


def _configured(config: Config, name: str) -> Calibration:
    known = config.calibrations[name]
    return Calibration(
        name,
        Coefficients(known.write_latency_s, known.write_s_per_byte),
        Coefficients(known.read_latency_s, known.read_s_per_byte),
    )


def _named(stored: Sequence[dict[str, Any]], config: Config, name: str) -> Calibration:
    for row in reversed(stored):
        if row["name"] == name:
            return _from_row(row)
    if name in config.calibrations:
        return _configured(config, name)
    if name in SHIPPED:
        return SHIPPED[name]
    names = sorted({str(row["name"]) for row in stored} | set(config.calibrations) | set(SHIPPED))
    raise UsageError(f"no calibration is called {name!r}; there are: {', '.join(names)}")


def _from_row(row: dict[str, Any]) -> Calibration:
    return Calibration(
        str(row["name"]),
        Coefficients(row["write_latency_s"], row["write_s_per_byte"]),
        Coefficients(row["read_latency_s"], row["read_s_per_byte"]),
    )
