"""Which targets move data in a window, how often they are sampled and from when to when: what `Ticks` are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import narwhals as nw
import numpy as np

from iolens.analyses.intervals.fsu_sums import data_targets
from iolens.analyses.intervals.tick_matrix import MEASURES, TABLE, Ticks
from iolens.part_form import PartForm
from iolens.schema import DATA_KINDS, SUM_KINDS
from iolens.store.parts import Days, EngineParts
from iolens.store.selection import Selection

SECOND_US, MILLISECOND_US = 1_000_000, 1_000


@dataclass(slots=True)
class Surveyed:
    """One target as one kind: its rows by how far apart they are, the ends of the first and the last."""

    spacings: Counter[int]  # in microseconds; from a second on in whole milliseconds
    first_us: int
    last_us: int

    @property
    def rows(self) -> int:
        """How many."""
        return self.spacings.total()

    def take(self, other: Surveyed) -> None:
        """Other rows of the same."""
        self.spacings.update(other.spacings)
        self.first_us, self.last_us = min(self.first_us, other.first_us), max(self.last_us, other.last_us)


@dataclass(slots=True)
class Survey:
    """Some rows of `target_io`, by target and kind; and the measures that have a value, by kind."""

    targets: dict[tuple[str, str | None], Surveyed] = field(default_factory=dict)
    known: dict[str | None, frozenset[str]] = field(default_factory=dict)

    def take(self, other: Survey) -> None:
        """Other rows."""
        for key, surveyed in other.targets.items():
            if key in self.targets:
                self.targets[key].take(surveyed)
            else:
                self.targets[key] = surveyed
        for kind, measures in other.known.items():
            self.known[kind] = self.known.get(kind, frozenset()) | measures

    def ticks(self) -> Ticks | None:
        """Of the targets of one kind, where several tell of the same bytes; None without any."""
        if not self.targets:
            return None
        kind = min((kind for _, kind in self.targets), key=_rank)
        chosen = sorted((name, surveyed) for (name, own), surveyed in self.targets.items() if own == kind)
        names = tuple(name for name, _ in chosen)
        medians = sorted((_median(surveyed.spacings), surveyed.rows) for _, surveyed in chosen)
        return Ticks(
            names,
            () if kind is None else (kind,),
            max(round(_weighted_median(medians)), 1),
            self.known.get(kind, frozenset()),
            tuple((surveyed.first_us, surveyed.last_us) for _, surveyed in chosen),
            frozenset(name for name, _ in self.targets) - set(names),
            sum(surveyed.rows for _, surveyed in chosen),
        )


FORM: Final = PartForm("survey", 1, (Survey, Surveyed))


def survey_part(days: Days) -> Survey:
    """Of some days."""
    frame = data_targets(days.frame(TABLE))
    names = set(frame.collect_schema().names())
    measures = [name for name in MEASURES if name in names]
    filled = days.filled_columns(TABLE, measures)
    counted = measures if filled is None else []
    kind = nw.col("target_kind") if "target_kind" in names else nw.lit(None, nw.String)
    spacing = nw.col("epoch_us") - nw.col("start_us")
    whole_ms = (spacing + MILLISECOND_US // 2) // MILLISECOND_US * MILLISECOND_US
    rounded = nw.when(spacing >= SECOND_US).then(whole_ms).otherwise(spacing)
    rows = frame.select("target", kind.alias("kind"), rounded.alias("spacing"), "epoch_us", *counted)
    sums = rows.group_by("target", "kind", "spacing").agg(
        nw.len().alias("rows"),
        nw.col("epoch_us").min().alias("first"),
        nw.col("epoch_us").max().alias("last"),
        *(nw.col(name).count() for name in counted),
    )
    return _survey(sums.collect(backend="pyarrow").to_native().to_pylist(), counted, filled or ())


SURVEY_PARTS: Final = EngineParts(survey_part, FORM, (TABLE,), is_kept=True)


def ticks_of(selection: Selection) -> Ticks | None:
    """The ticks of a window; None without any target that moves data."""
    return selection.once("ticks", lambda: _surveyed(selection).ticks())


def _surveyed(selection: Selection) -> Survey:
    whole = Survey()
    for part in selection.parts(SURVEY_PARTS):
        whole.take(part)
    return whole


def _survey(rows: list[dict[str, Any]], counted: Iterable[str], filled: Iterable[str]) -> Survey:
    survey = Survey()
    for row in rows:
        surveyed = Surveyed(Counter({int(row["spacing"]): int(row["rows"])}), int(row["first"]), int(row["last"]))
        kind = None if row["kind"] is None else str(row["kind"])
        measures = frozenset([*filled, *(name for name in counted if row[name])])
        survey.take(Survey({(str(row["target"]), kind): surveyed}, {kind: measures}))
    return survey


def _rank(kind: str | None) -> tuple[int, str]:
    """Kinds in the order in which they are believed."""
    order = {name: place for place, name in enumerate((*DATA_KINDS, None, *SUM_KINDS))}
    return order.get(kind, len(DATA_KINDS)), kind or ""


def _median(counts: Counter[int]) -> float:
    """Of values that stand for so many each; the mean of the middle two of an even number."""
    values = np.array(sorted(counts))
    reached = np.cumsum([counts[value] for value in values.tolist()])
    middle = np.searchsorted(reached, [(reached[-1] - 1) // 2, reached[-1] // 2], side="right")
    return float(values[middle].mean())


def _weighted_median(pairs: list[tuple[float, int]]) -> float:
    half, reached = sum(weight for _, weight in pairs) / 2.0, 0
    for value, weight in pairs:
        reached += weight
        if reached >= half:
            return value
    return pairs[-1][0]
