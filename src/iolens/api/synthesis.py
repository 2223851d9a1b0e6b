"""A workload model of a store or a file, the telemetry made of it, and how well the two match."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from iolens.analyses.workload.analysis import Workload
from iolens.analyses.workload.fit import fit_workload
from iolens.analyses.workload.match import WorkloadMatch, match_workloads
from iolens.api.store_analyses import StoreAnalyses
from iolens.models.workload_model import WorkloadModel
from iolens.simulator.synthetic import load_model, model_text
from iolens.simulator.synthetic_telemetry import SOURCE, SyntheticOrder, order_of
from iolens.store.scope import RAW, Scope
from iolens.units import epoch_us, from_epoch_us, iso


class Origin(NamedTuple):
    """Where a model comes from: a name, more in words, and the characterisation it was fitted to, if it was."""

    model: WorkloadModel
    name: str
    words: list[str]
    workload: Workload | None

    def text(self) -> str:
        """The model as TOML, with where it comes from."""
        return model_text(self.model, "\n".join([f"A workload model, from {self.name}", *self.words]))


def fitted_model(
    opened: StoreAnalyses,
    name: str,
    scope: Scope,
    *,
    timezone: str | None,
    without_maintenance: bool,
    step: Callable[[str], None],
) -> Origin:
    """The model of a store's telemetry; `name` is the store's, as the user wrote it. Raw rows: rollups differ."""
    workload: Workload = opened.analyse(
        "workload",
        scope,
        resolution=RAW,
        timezone=timezone,
        without_maintenance=without_maintenance,
        progress=lambda day: step(str(day)),
    )
    fitted = opened.ask(lambda selection: fit_workload(selection, workload), scope, resolution=RAW)
    assert workload.window_start is not None
    assert workload.window_end is not None
    extent = f"{iso(workload.window_start)} to {iso(workload.window_end)}"
    about = f"Fitted to {extent}: {workload.samples} samples of {len(workload.targets)} targets"
    return Origin(fitted.model, f"{workload.filesystem} of {name}", [about, *fitted.notes], workload)


def model_of_file(name: str) -> Origin:
    """The model of a file, or a shipped one."""
    return Origin(load_model(name), f"the model {name}", [], None)


def synthetic_order(
    origin: Origin, store: str, *, days: float | None, start: datetime | None, otherwise: datetime, seed: int
) -> SyntheticOrder:
    """Telemetry of the model: as long as the original and from its first tick; of a file a day, from `otherwise` on."""
    workload = origin.workload
    if workload is not None and workload.window_start is not None and workload.window_end is not None:
        days = days or (workload.window_end - workload.window_start) / timedelta(days=1)
        start = start or _on_tick(workload.window_start, origin.model.tick_s)
    return order_of(store, origin.model, start=start or otherwise, days=days or 1.0, seed=seed)


def _on_tick(time: datetime, tick_s: float) -> datetime:
    """The last whole tick at or before a time."""
    tick_us = round(tick_s * 1e6)
    return from_epoch_us(epoch_us(time) // tick_us * tick_us)


def synthetic_match(origin: Origin, order: SyntheticOrder, opened: StoreAnalyses) -> WorkloadMatch:
    """What was made, characterised and set beside the original."""
    start, end = (from_epoch_us(time_us) for time_us in order.window_us)
    scope = Scope(order.model.filesystem, start, end, (), SOURCE, RAW)
    workload = opened.analyse("workload", scope, timezone=order.model.timezone)
    again = opened.ask(lambda selection: fit_workload(selection, workload), scope)
    return match_workloads(origin.model, again.model, workload, origin.workload, origin.name)
