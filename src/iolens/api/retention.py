"""Dropping raw rows, once a rollup holds their sums and parts of every analysis are kept of their days."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from iolens.analyses import analysis_names, get_analysis
from iolens.api.store_analyses import StoreAnalyses
from iolens.store.rollup import Done, retain_raw
from iolens.store.scope import Scope


def retain(
    opened: StoreAnalyses,
    seconds: float,
    *,
    without_rollup: bool = False,
    dry_run: bool = False,
    step: Callable[[str], None] = lambda label: None,
) -> Done:
    """Drop days of raw rows that ended more than `seconds` ago; what analyses keep of them is made first."""
    if not dry_run:
        ended = (datetime.now(UTC) - timedelta(seconds=seconds)).replace(hour=0, minute=0, second=0, microsecond=0)
        for filesystem in sorted(opened.store.targets_by_filesystem()):
            for name in analysis_names():
                step(f"{filesystem}: parts of {name}")
                _keep(opened, name, Scope(filesystem, until=ended))
    return retain_raw(opened.store, seconds, without_rollup=without_rollup, dry_run=dry_run)


def _keep(opened: StoreAnalyses, name: str, scope: Scope) -> None:
    kept_of = get_analysis(name).kept_of
    if kept_of is not None:
        opened.ask(lambda selection: [selection.keep(maker) for maker in kept_of(opened.known, selection)], scope)
