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
    from iolens.api.notebook import frame as frame
    from iolens.api.notebook import tables as tables


def open(  # noqa: A001
    url: str | None = None,
    *,
    engine: str | None = None,
    config: str | None = None,
    workers: int | None = None,
    fresh: bool = False,
) -> OpenStore:
    """Open a store for analysis: a directory or object-store URL (default: as the command line chooses).

    `workers` are the processes that make an answer [one per core]; with `fresh` nothing that was remembered is used.
    """
    from iolens.api import OpenStore

    return OpenStore(url, engine=engine, config=config, workers=workers, fresh=fresh)


def plan(
    name: str,
    filesystem: str | None = None,
    *,
    store: str | None = None,
    engine: str | None = None,
    config: str | None = None,
    timezone: str | None = None,
    **options: Any,
) -> Any:
    """A plan, from options alone or from a store, which is opened only where it is named or needed.

    Otherwise as `store.plan`: `iolens.plan("capacity", ssi=[3, 4], daily_growth="133TB")`.
    """
    from iolens.api.plan_by_address import plan_by_address

    return plan_by_address(name, filesystem, options, store=store, engine=engine, config=config, timezone=timezone)


def __getattr__(name: str) -> Any:
    """`frame` and `tables` of an answer; every analysis, for frames one already has: `utilization(target_sizes=…)`."""
    if name in ("frame", "tables"):
        from iolens.api import notebook

        return getattr(notebook, name)
    from importlib.util import find_spec

    if find_spec(f"{__name__}.{name}") is None:  # else it is a module that is about to be imported
        from iolens.analyses import analysis_names

        if name in analysis_names():
            from iolens.api import on_frames

            return on_frames(name)
    raise AttributeError(f"module 'iolens' has no attribute {name!r}")
