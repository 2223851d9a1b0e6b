"""An open store: its analyses, and what else is made of it or for it."""

from __future__ import annotations

from typing import Any

from iolens.api.listener import Listener
from iolens.api.store_analyses import StoreAnalyses, on_frames
from iolens.store.scope import Scope

__all__ = ["OpenStore", "on_frames"]


class OpenStore(StoreAnalyses):
    """A store with every analysis as a method: `store.utilization("scratch", since="2012-10-22")`."""

    def plan(
        self,
        name: str,
        filesystem: str | Scope | None = None,
        *,
        timezone: str | None = None,
        listener: Listener | None = None,
        **options: Any,
    ) -> Any:
        """The next system: `capacity`, `endurance`, `metadata`, `performance`, or the `rationale` of all four.

        Options are those of `iolens plan NAME`, with `_` for `-`: `store.plan("performance", "scratch", ssi=[3, 4])`.
        `since`, `until`, `targets`, `source` and `resolution` narrow the rows, as those of an analysis.
        """
        from iolens.api.plans.making import call_text, make_plan
        from iolens.api.plans.reference_system import StoreAccess

        command = call_text(f"iolens.open({self.store.url!r}).plan", name, filesystem, **options)
        scope = Scope.taken_from(options, filesystem)
        return make_plan(
            name, StoreAccess.of(self), scope, options, timezone=timezone, listener=listener, command=command
        )
