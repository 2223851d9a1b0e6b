"""Which rows FSU rests on: disk I/O sizes of OSTs, or counters of disks (SPEC U7, U9).

Devices, controllers and OSTs move the same bytes: one kind is counted, the answer says which were left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import narwhals as nw

from iolens.analyses.intervals.disk_time import OUTSIDE_COLUMNS, CounterTime, DiskTime, HistogramTime
from iolens.analyses.intervals.fsu_sums import collect, data_targets, of_kinds
from iolens.errors import UsageError
from iolens.models.transaction_time import SIZE_COLUMNS
from iolens.schema import DISK_KINDS, SUM_KINDS
from iolens.store.parts import Days
from iolens.store.selection import Selection

MODELS: Final = ("histogram", "counters")
OSTS_ARE_CLIENT_SIDE: Final = (
    "what an OST counts outside its histogram are bytes and RPCs of clients, which never stand for disk I/Os"
)
OSTS_LEFT_OUT: Final = f"rows of OSTs are left out of FSU, bandwidth and volume: {OSTS_ARE_CLIENT_SIDE}"
OTHERS_LEFT_OUT: Final = (
    "not only OSTs report: devices, controllers and servers are left out, since they move the same bytes again"
    " (--model counters is about disks)"
)
Model = Literal["histogram", "counters"]


@dataclass(frozen=True, slots=True)
class ModelRows:
    """Which rows a model rests on; `other_kinds` are there too, and would count the same bytes again."""

    model: Model
    has_util: bool
    other_kinds: Sequence[str] = ()
    notes: tuple[str, ...] = ()

    def io(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Rows of `target_io` for bandwidth and volume, and with counters for FSU as well."""
        return (
            of_kinds(frame, DISK_KINDS) if self.model == "counters" else data_targets(frame, ("mdt", *self.other_kinds))
        )

    def disk_time(self, days: Days) -> DiskTime:
        """What the model asks of the rows of some days, with the size bins that count in them."""
        if self.model == "counters":
            return CounterTime()
        return HistogramTime(
            days.live_columns("target_sizes", list(SIZE_COLUMNS)), days.live_columns("target_sizes", OUTSIDE_COLUMNS)
        )

    def left_out(self, frame: nw.LazyFrame[Any]) -> frozenset[str]:
        """Names of the targets that are not part of the answer."""
        if not self.other_kinds:
            return frozenset()
        names = of_kinds(frame, self.other_kinds).select("target").unique()
        return frozenset(collect(names)["target"])


def model_rows(selection: Selection, model: str) -> ModelRows:
    """The rows of the model asked for, or of the one there are rows for."""
    if model not in ("auto", *MODELS):
        raise UsageError(f"no model is called {model!r}; there are: auto, {', '.join(MODELS)}")
    has_util = bool(selection.live_columns("target_io", ["busy_us"]))
    if model == "histogram" or (model == "auto" and selection.holds("target_sizes")):
        return _histogram_rows(selection, has_util)
    has_osts = selection.holds("target_io", "target_kind", ("ost",))
    if selection.holds("target_io", "target_kind", DISK_KINDS):
        return ModelRows("counters", has_util, ("ost",) if has_osts else (), (OSTS_LEFT_OUT,) if has_osts else ())
    if model == "counters":
        why = f": {OSTS_ARE_CLIENT_SIDE}" if has_osts else ""
        raise UsageError(f"{selection.filesystem} has no counters of devices, LUNs or controllers in this window{why}")
    result = _histogram_rows(selection, has_util)
    return (
        replace(result, notes=(f"no FSU: there are no I/O sizes, and {OSTS_ARE_CLIENT_SIDE}",)) if has_osts else result
    )


def _histogram_rows(selection: Selection, has_util: bool) -> ModelRows:
    """Sizes as the OSTs' disks saw them; where others report the same bytes beside the OSTs, the OSTs' are taken."""
    others = (*DISK_KINDS, *SUM_KINDS)
    if all(selection.holds("target_io", "target_kind", kinds) for kinds in (("ost",), others)):
        return ModelRows("histogram", False, others, (OTHERS_LEFT_OUT,))
    return ModelRows("histogram", has_util)
