"""iolens measures, characterises, models and plans HPC storage.

>>> import iolens
>>> store = iolens.open("iolens-store")                       # doctest: +SKIP
>>> store.utilization("scratch", since="2012-10-22")          # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from iolens.api import OpenStore


def open(url: str | None = None, *, engine: str | None = None, config: str | None = None) -> OpenStore:  # noqa: A001
    """Open a store for analysis: a directory or object-store URL (default: as the command line chooses)."""
    from iolens.api import OpenStore

    return OpenStore(url, engine=engine, config=config)


def __getattr__(name: str) -> Any:
    """Every analysis by its name, for frames the user already has: `iolens.utilization(target_sizes=frame)`."""
    from iolens.analyses import analysis_names

    if name in analysis_names():
        from iolens.api import on_frames

        return on_frames(name)
    raise AttributeError(f"module 'iolens' has no attribute {name!r}")
