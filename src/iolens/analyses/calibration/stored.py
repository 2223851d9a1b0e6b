"""Which calibration holds: the one asked for, the file system's own, or a published one, and then it says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from iolens.config import Config
from iolens.errors import UsageError
from iolens.models.transaction_time import (
    CALIBRATION_CLASSES,
    GRACE_2012,
    Calibration,
    CalibrationClass,
    CalibrationState,
    CoefficientBand,
    Coefficients,
)
from iolens.units import epoch_us, from_epoch_us, iso

YEAR_S: Final = 365.25 * 86400


@dataclass(frozen=True, slots=True)
class KnownCalibration:
    """A calibration, where it comes from in words, and how far it can be trusted.

    `low` and `high` are the ends of the coefficients' intervals, null where they are not known. `is_upper_bound`: the
    targets never reached their limit, or times of one I/O alone were seen, so FSU by it is at most what it says.
    """

    calibration: Calibration
    origin: str
    filesystem: str | None = None
    target_class: str | None = None
    valid_from: datetime | None = None
    queue_depth: int | None = None
    fullness_pct: float | None = None
    ceiling_fsu_pct: float | None = None
    state: CalibrationState = CalibrationState.CLASS
    evidence: str = ""
    low: Calibration | None = None
    high: Calibration | None = None
    is_upper_bound: bool = False

    @property
    def name(self) -> str:
        """Of the calibration."""
        return self.calibration.name


def find_calibration(
    stored: Sequence[dict[str, Any]],
    config: Config,
    name: str | None,
    filesystem: str,
    at: datetime | None,
    target_class: str | None = None,
) -> tuple[KnownCalibration, tuple[str, ...]]:
    """The calibration for a file system (and class of targets) at a time, and what the reader must know about it.

    Rows of the class come before those for all targets; of several the newest that had begun by then. Estimates count
    where nothing else is stored.
    """
    if name is not None:
        return _named(stored, config, name, filesystem), ()
    own = not_estimated_if_any([row for row in stored if row["filesystem"] == filesystem])
    if target_class is not None:
        of_class = [row for row in own if row.get("target_class") == target_class]
        own = of_class or [row for row in own if row.get("target_class") is None]
    valid = [row for row in own if at is None or row["valid_from"] is None or row["valid_from"] <= epoch_us(at)]
    if valid:
        return known_of_row(valid[-1]), ()
    if own:
        oldest = known_of_row(own[0])
        note = f"the data are older than every calibration of {filesystem}: {oldest.name} is the oldest, and later"
        return oldest, (note,)
    note = (
        f"no calibration of {filesystem} is stored: the coefficients are those of NERSC's Grace test system in 2012"
        " (--calibration grace-2012); calibrate your own disks before you trust the level"
    )
    assumed = replace(
        _shipped(CALIBRATION_CLASSES[GRACE_2012.name]),
        state=CalibrationState.ASSUMED,
        evidence=f"none: {GRACE_2012.name} stands in",
    )
    return assumed, (note,)


def state_of_row(row: Mapping[str, Any]) -> CalibrationState:
    """Of a stored row: without a state it is measured, as all were before there were states."""
    if row.get("state") is not None:
        return CalibrationState(row["state"])
    return CalibrationState.MEASURED if row.get("method") is None else CalibrationState.ESTIMATED


def not_estimated_if_any(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of one file system without the estimates of targets that a row holds for which a person stored.

    That is one of the same class, or one of all targets.
    """
    chosen = {row.get("target_class") for row in rows if state_of_row(row) is not CalibrationState.ESTIMATED}
    return [
        row
        for row in rows
        if state_of_row(row) is not CalibrationState.ESTIMATED
        or (None not in chosen and row.get("target_class") not in chosen)
    ]


@dataclass(frozen=True, slots=True)
class CoefficientChange:
    """One coefficient of two calibrations of the same targets, the later relative to the earlier."""

    coefficient: str
    before: float
    after: float
    change_pct: float | None
    change_pct_per_year: float | None


@dataclass(frozen=True, slots=True)
class Drift:
    """How the cost of an I/O changed from one calibration to the next of the same file system and class."""

    filesystem: str
    target_class: str | None
    earlier: str
    later: str
    valid_from: datetime
    years: float | None
    fullness_change_pct: float | None
    changes: list[CoefficientChange]


@dataclass(frozen=True, slots=True)
class KnownCalibrations:
    """All that can be asked for by name, and their drift."""

    calibrations: list[KnownCalibration]
    drift: list[Drift]


def known_calibrations(stored: Sequence[dict[str, Any]], config: Config) -> list[KnownCalibration]:
    """Every calibration that can be asked for by name."""
    return [
        *(_shipped(shipped) for shipped in CALIBRATION_CLASSES.values()),
        *(_configured(config, name) for name in config.calibrations),
        *(known_of_row(row) for row in stored),
    ]


def drift(known: Sequence[KnownCalibration]) -> list[Drift]:
    """Each dated calibration against the one before it of the same file system, class and queue depth."""
    groups: dict[tuple[str, str, str], list[KnownCalibration]] = {}
    for calibration in known:
        if calibration.filesystem is not None and calibration.valid_from is not None:
            key = (calibration.filesystem, calibration.target_class or "", str(calibration.queue_depth))
            groups.setdefault(key, []).append(calibration)
    result = []
    for same in groups.values():
        dated = sorted(
            same,
            key=lambda known_calibration: epoch_us(known_calibration.valid_from) if known_calibration.valid_from else 0,
        )
        result += [_drift(earlier, later) for earlier, later in pairwise(dated)]
    return result


def _drift(earlier: KnownCalibration, later: KnownCalibration) -> Drift:
    assert earlier.valid_from is not None
    assert later.valid_from is not None
    years = (later.valid_from - earlier.valid_from).total_seconds() / YEAR_S
    fuller = None
    if earlier.fullness_pct is not None and later.fullness_pct is not None:
        fuller = later.fullness_pct - earlier.fullness_pct
    return Drift(
        filesystem=str(later.filesystem),
        target_class=later.target_class,
        earlier=earlier.calibration.name,
        later=later.calibration.name,
        valid_from=later.valid_from,
        years=years if years > 0 else None,
        fullness_change_pct=fuller,
        changes=[
            _change(f"{direction}_{name}", _cost(earlier, direction, name), _cost(later, direction, name), years)
            for direction in ("write", "read")
            for name in ("latency_s", "s_per_byte")
        ],
    )


def _cost(known: KnownCalibration, direction: str, name: str) -> float:
    return float(getattr(known.calibration.of(direction), name))


def _change(name: str, before: float, after: float, years: float) -> CoefficientChange:
    relative = 100 * (after / before - 1) if before > 0 else None
    yearly = relative / years if relative is not None and years > 0 else None
    return CoefficientChange(name, before, after, relative, yearly)


def _shipped(shipped: CalibrationClass) -> KnownCalibration:
    row = {"name": shipped.name, **_ends(shipped)}
    return KnownCalibration(
        shipped.calibration, f"shipped: {shipped.about}", queue_depth=shipped.queue_depth, evidence=shipped.name,
        low=_end_of_row(row, "low"), high=_end_of_row(row, "high"),
    )  # fmt: skip


def _configured(config: Config, name: str) -> KnownCalibration:
    known = config.calibrations[name]
    calibration = Calibration(
        name,
        Coefficients(known.write_latency_s, known.write_s_per_byte),
        Coefficients(known.read_latency_s, known.read_s_per_byte),
    )
    return KnownCalibration(calibration, "configured", evidence=name)


def _named(stored: Sequence[dict[str, Any]], config: Config, name: str, filesystem: str) -> KnownCalibration:
    for row in reversed(stored):
        if row["name"] == name:
            return borrowed(known_of_row(row), filesystem)
    if name in config.calibrations:
        return _configured(config, name)
    if name in CALIBRATION_CLASSES:
        return _shipped(CALIBRATION_CLASSES[name])
    names = sorted({str(row["name"]) for row in stored} | set(config.calibrations) | set(CALIBRATION_CLASSES))
    raise UsageError(f"no calibration is called {name!r}; there are: {', '.join(names)}")


def chosen_record(
    stored: Sequence[dict[str, Any]], config: Config, name: str, filesystem: str, target_class: str | None
) -> dict[str, Any]:
    """A calibration known by its name as a row for these targets: coefficients, their ends, state and evidence.

    A stored one keeps its state where it was made for the same targets or for none named; of others it is a class.
    """
    calibration = _named(stored, config, name, filesystem).calibration
    for row in reversed(stored):
        if row["name"] == name:
            return _record_of_row(row, filesystem, target_class)
    if name in config.calibrations or name not in CALIBRATION_CLASSES:
        return {**_costs(calibration), "state": CalibrationState.CLASS, "evidence": f"configured as {name}"}
    shipped = CALIBRATION_CLASSES[name]
    evidence = f"shipped class: {shipped.about}"
    return {
        **_costs(calibration), **_ends(shipped), "queue_depth": shipped.queue_depth, "state": CalibrationState.CLASS,
        "evidence": evidence,
    }  # fmt: skip


def _record_of_row(row: Mapping[str, Any], filesystem: str, target_class: str | None) -> dict[str, Any]:
    others = {"time", "source", "filesystem", "target_class", "valid_from"}
    record = {key: value for key, value in row.items() if key not in others}
    is_own = row["filesystem"] in (None, filesystem) and row["target_class"] in (None, target_class)
    evidence = row["evidence"] or "no evidence noted"
    if is_own or row["state"] == CalibrationState.CLASS:
        return {**record, "evidence": evidence}
    of_class = f", class {row['target_class']}" if row["target_class"] else ""
    return {
        **record,
        "state": CalibrationState.CLASS,
        "evidence": f"made for {row['filesystem']}{of_class}: {evidence}",
    }


def _costs(calibration: Calibration) -> dict[str, Any]:
    return {"name": calibration.name} | {
        f"{direction}_{name}": getattr(calibration.of(direction), name)
        for direction in ("write", "read")
        for name in ("latency_s", "s_per_byte")
    }


def _ends(shipped: CalibrationClass) -> dict[str, float | None]:
    return {
        f"{direction}_{end.name}": getattr(shipped.band(direction), end.name)
        for direction in ("write", "read")
        for end in fields(CoefficientBand)
    }


def borrowed(known: KnownCalibration, filesystem: str) -> KnownCalibration:
    """A stored calibration that a person chose for a file system: that of another one is a class here."""
    if known.filesystem in (None, filesystem):
        return known
    evidence = f"{known.name}: {known.state} on {known.filesystem}"
    return replace(known, state=CalibrationState.CLASS, evidence=evidence)


def known_of_row(row: Mapping[str, Any]) -> KnownCalibration:
    """A row of the table `calibrations`."""
    since = f" from {iso(from_epoch_us(row['valid_from']))}" if row["valid_from"] is not None else ""
    evidence = row.get("evidence") or "no evidence noted"
    is_upper_bound = bool(row.get("upper_bound") or row.get("one_at_a_time"))
    calibration = calibration_of_row(row)
    high = _end_of_row(row, "high")
    return KnownCalibration(
        calibration,
        f"stored for {row['filesystem'] or 'any file system'}{since}: {evidence}",
        row["filesystem"],
        row.get("target_class"),
        None if row["valid_from"] is None else from_epoch_us(row["valid_from"]),
        row.get("queue_depth"),
        row.get("fullness_pct"),
        row.get("ceiling_fsu_pct"),
        state_of_row(row),
        f"{calibration.name}: {evidence}",
        _end_of_row(row, "low"),
        high or calibration if is_upper_bound else high,
        is_upper_bound,
    )


def calibration_of_row(row: Mapping[str, Any]) -> Calibration:
    """The coefficients of a row of the table `calibrations`."""
    return Calibration(
        str(row["name"]),
        Coefficients(row["write_latency_s"], row["write_s_per_byte"]),
        Coefficients(row["read_latency_s"], row["read_s_per_byte"]),
    )


def _end_of_row(row: Mapping[str, Any], end: str) -> Calibration | None:
    """The `low` or `high` end of all four intervals; None where one of them is not known."""
    values = [
        row.get(name)
        for direction in ("write", "read")
        for name in (f"{direction}_latency_{end}_s", f"{direction}_s_per_byte_{end}")
    ]
    if any(value is None for value in values):
        return None
    write_latency, write_rate, read_latency, read_rate = (float(value or 0.0) for value in values)
    return Calibration(
        f"{row['name']} {end}", Coefficients(write_latency, write_rate), Coefficients(read_latency, read_rate)
    )
