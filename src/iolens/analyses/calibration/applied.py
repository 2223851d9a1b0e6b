"""Which calibration holds for which targets and when (U10): by target class and by date, as one engine expression."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import narwhals as nw

from iolens.analyses.calibration.stored import (
    KnownCalibration,
    borrowed,
    find_calibration,
    known_of_row,
    not_estimated_if_any,
    state_of_row,
)
from iolens.config import Config
from iolens.models.transaction_time import Calibration, CalibrationState
from iolens.target_names import members_by_pattern
from iolens.units import epoch_us, from_epoch_us


@dataclass(frozen=True, slots=True)
class AppliedCalibration:
    """A calibration and where it holds: intervals of some targets that start in [valid_from, valid_until).

    Without a class, `targets` is null: all that no class names. Open ends are null. `ceiling_fsu_pct` is the FSU seen
    while a saturating test ran; null: none was. `state`, `evidence`, `low`, `high` and `is_upper_bound` are as those of
    a known calibration; one that a caller gives is chosen. Parts do not depend on them: they are not in its `repr`.
    """

    target_class: str | None
    targets: list[str] | None
    valid_from: datetime | None
    valid_until: datetime | None
    calibration: Calibration
    ceiling_fsu_pct: float | None = None
    state: CalibrationState = field(default=CalibrationState.CLASS, repr=False)
    evidence: str = field(default="given", repr=False)
    low: Calibration | None = field(default=None, repr=False)
    high: Calibration | None = field(default=None, repr=False)
    is_upper_bound: bool = field(default=False, repr=False)

    @classmethod
    def of(
        cls, known: KnownCalibration, valid_from: datetime | None = None, valid_until: datetime | None = None
    ) -> AppliedCalibration:
        """Of all targets, in that time."""
        return cls(
            None, None, valid_from, valid_until, known.calibration, known.ceiling_fsu_pct, known.state, known.evidence,
            known.low, known.high, known.is_upper_bound,
        )  # fmt: skip

    @classmethod
    def given(cls, calibration: Calibration) -> AppliedCalibration:
        """One that a caller chose, of all targets and at all times."""
        return cls(None, None, None, None, calibration, evidence=calibration.name)

    def condition(self) -> nw.Expr | None:
        """Whether a row is one of them, where the ones after this in the list are not asked yet; None: always."""
        parts = []
        if self.targets is not None:
            parts.append(nw.col("target").is_in(list(self.targets)))
        if self.valid_from is not None:
            parts.append(nw.col("start_us") >= epoch_us(self.valid_from))
        if self.targets is not None and self.valid_until is not None:  # what comes after may be of all targets
            parts.append(nw.col("start_us") < epoch_us(self.valid_until))
        if not parts:
            return None
        return nw.all_horizontal(*parts, ignore_nulls=False) if len(parts) > 1 else parts[0]


def applied_calibrations(
    stored: Sequence[dict[str, Any]],
    config: Config,
    name: str | None,
    filesystem: str,
    extent_us: tuple[int, int] | None,
    known_targets: Collection[str],
) -> tuple[list[AppliedCalibration], tuple[str, ...]]:
    """The calibrations that hold in a window, the general one last, and what the reader must know about them.

    Stored rows of the name asked for, else of the file system, each from its date to the next one's; a class's rows
    for the targets its patterns name, or for those that it was found with. Where nothing is stored: the configured or a
    published one, for everything.
    """
    if name is not None:
        rows = [row for row in stored if row["name"] == name]
    else:
        own = not_estimated_if_any([row for row in stored if row["filesystem"] == filesystem])
        rows = list(_until_estimated_again(own))
    general = [row for row in rows if row["target_class"] is None]
    classed = [row for row in rows if row["target_class"] is not None]
    members = members_by_pattern(config.filesystem(filesystem).classes, known_targets)
    applied: list[AppliedCalibration] = []
    notes = _strangers(classed, members, filesystem)
    for target_class, targets, same in _of_classes(classed, members, filesystem, known_targets):
        applied += [
            replace(calibration, target_class=target_class, targets=targets)
            for calibration in _by_date(same, extent_us, filesystem)
        ]
    if not general and name is not None and rows and not applied:
        general = rows  # asked for by name: then it holds for all, whatever class it was made for
    if general:
        applied += _by_date(general, extent_us, filesystem)
        notes += _too_old(general, extent_us, filesystem) if name is None else ()
    else:
        known, more = find_calibration([] if rows else stored, config, None if rows else name, filesystem, None)
        applied.append(AppliedCalibration.of(known))
        notes += more
    return applied, notes


def _until_estimated_again(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows, estimates with `valid_until`: one made later, of whatever classes, takes the place of all before it."""
    estimated = [row for row in rows if state_of_row(row) is CalibrationState.ESTIMATED]
    for row in rows:
        if row not in estimated:
            yield row
            continue
        until = min((_since(later) for later in estimated if (later["time"] or 0) > (row["time"] or 0)), default=ALWAYS)
        if until > _since(row):
            yield {**row, "valid_until": until}


def _of_classes(
    rows: Sequence[dict[str, Any]],
    members: Mapping[str, list[str]],
    filesystem: str,
    known_targets: Collection[str],
) -> Iterator[tuple[str, list[str], list[dict[str, Any]]]]:
    """Each class that has targets, with its rows: the configured ones in their order, then those that were found."""
    for name, targets in members.items():
        same = [row for row in rows if row["target_class"] == name]
        if same and targets:
            yield name, targets, same
    with_targets = [row for row in rows if row["target_class"] not in members and row.get("targets")]
    for name, text in dict.fromkeys((row["target_class"], row["targets"]) for row in with_targets):
        targets = sorted(set(json.loads(text).get(filesystem, ())).intersection(known_targets))
        if targets:
            yield name, targets, [row for row in with_targets if (row["target_class"], row["targets"]) == (name, text)]


def _by_date(
    rows: Sequence[dict[str, Any]], extent_us: tuple[int, int] | None, filesystem: str
) -> list[AppliedCalibration]:
    """Those that hold at some time of the extent, the newest first; the oldest stands in for all time before it."""
    dated = {_since(row): row for row in sorted(rows, key=lambda row: (_since(row), row["time"] or 0))}
    starts = [*dated, ALWAYS]
    low, high = extent_us or (ALWAYS - 1, ALWAYS)
    result = []
    for since, next_us, row in zip(dated, starts[1:], dated.values(), strict=True):
        is_first, until = since == starts[0], min(next_us, row.get("valid_until", ALWAYS))
        if (since < high or is_first) and until > low:
            from_ = None if since == -ALWAYS or (since > low and is_first) else from_epoch_us(since)
            to = None if until == ALWAYS else from_epoch_us(until)
            result.append(AppliedCalibration.of(borrowed(known_of_row(row), filesystem), from_, to))
    return result[::-1]


ALWAYS = 1 << 62


def _since(row: Mapping[str, Any]) -> int:
    return -ALWAYS if row["valid_from"] is None else int(row["valid_from"])


def _strangers(rows: Sequence[dict[str, Any]], members: Mapping[str, list[str]], filesystem: str) -> tuple[str, ...]:
    """Classes that do not find their targets or their calibration."""
    section = f"[filesystems.{filesystem}.classes]"
    stored = dict.fromkeys(str(row["target_class"]) for row in rows)
    of_patterns = dict.fromkeys(str(row["target_class"]) for row in rows if not row.get("targets"))
    unknown = [f"a calibration of class {name} is stored, but {section} names no such targets: it is not used"
               for name in of_patterns if not members.get(name)]  # fmt: skip
    without = [f"class {name} has no calibration of its own: its targets use the general one"
               for name, targets in members.items() if targets and name not in stored]  # fmt: skip
    return (*unknown, *without)


def _too_old(rows: Sequence[dict[str, Any]], extent_us: tuple[int, int] | None, filesystem: str) -> tuple[str, ...]:
    oldest = min(rows, key=_since)
    if extent_us is None or _since(oldest) <= extent_us[0]:
        return ()
    name = oldest["name"]
    return (f"the data are older than every calibration of {filesystem}: {name} is the oldest, and later",)


def chosen(applied: Sequence[AppliedCalibration], of: Callable[[Calibration], nw.Expr]) -> nw.Expr:
    """`of` the calibration that holds for a row: the first in the list whose condition is met, else the last."""
    expression = of(applied[-1].calibration)
    for calibration in reversed(applied[:-1]):
        condition = calibration.condition()
        expression = (
            of(calibration.calibration)
            if condition is None
            else nw.when(condition).then(of(calibration.calibration)).otherwise(expression)
        )
    return expression
