"""What `demand` keeps of some days: their ticks, each with the sums of its targets' rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import numpy as np

from iolens.analyses.intervals.disk_time import number, total
from iolens.analyses.intervals.fsu_sums import collect, data_targets, of_kinds
from iolens.arrays import Booleans, Columns
from iolens.part_form import PartForm
from iolens.store.parts import Days

WHOLE: Final = ("bytes_per_s",)  # measures of which every part must be known

Terms = Mapping[str, tuple[str, ...]]  # measure → columns it adds up


@dataclass(slots=True)
class DemandTicks:
    """In time order: end, number of targets, their summed seconds, and every measure, NaN where nobody knew it."""

    columns: Columns

    def take(self, later: DemandTicks) -> None:
        """Later ticks."""
        self.columns = {name: np.concatenate([values, later.columns[name]]) for name, values in self.columns.items()}

    def at(self, places: Booleans) -> DemandTicks:
        """Only some of them."""
        return DemandTicks({name: values[places] for name, values in self.columns.items()})


FORM: Final = PartForm("demand", 1, (DemandTicks,))


def demand_part(days: Days, table: str, terms: Terms, kinds: tuple[str, ...]) -> DemandTicks:
    """Ticks of some days, over targets of these kinds."""
    rows = collect(_by_tick(days.frame(table), terms, kinds))
    order = np.argsort(rows["epoch_us"])
    columns = {name: rows[name][order] for name in ("epoch_us", "targets", "duration_s")}
    rates = {name: np.where(rows[f"{name}_known"] > 0, rows[name], np.nan)[order] for name in terms}
    return DemandTicks(columns | rates)


def _by_tick(frame: nw.LazyFrame[Any], terms: Terms, kinds: tuple[str, ...]) -> nw.LazyFrame[Any]:
    """Sums of rates over the targets of each tick, and how many of them knew each."""
    mine = of_kinds(frame, kinds) if kinds else data_targets(frame)
    rows = mine.select("epoch_us", "duration_s", *(_rate(name, columns) for name, columns in terms.items()))
    return rows.group_by("epoch_us").agg(
        nw.len().alias("targets"),
        nw.col("duration_s").sum(),
        *(nw.col(name).sum() for name in terms),
        *(nw.col(name).count().alias(f"{name}_known") for name in terms),
    )


def _rate(name: str, columns: Sequence[str]) -> nw.Expr:
    """NULL where a part of it is not known; but in a listing, what is not listed has not happened."""
    amounts = [nw.col(column).cast(nw.Float64).fill_null(0.0) for column in columns]
    known = [nw.when(nw.col(column).is_null()).then(number(0.0)).otherwise(number(1.0)) for column in columns]
    needed = len(columns) if name in WHOLE else 1
    rate = total(amounts) / nw.col("duration_s")
    return nw.when(total(known) >= number(float(needed))).then(rate).alias(name)
