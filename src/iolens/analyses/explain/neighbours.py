"""Who else used the targets of a run in its time."""

from __future__ import annotations

from collections.abc import Sequence

from iolens.analyses.attribution.disk_seconds import Applied
from iolens.analyses.explain.results import RunNeighbour
from iolens.analyses.explain.window_sums import RunWindow
from iolens.store.selection import StoreSelection


def neighbours_of(
    selection: StoreSelection, window: RunWindow, targets: Sequence[str], applied: Applied
) -> list[RunNeighbour]:
    """Other jobs by their share of the targets' disk time, the largest first."""
    return []
