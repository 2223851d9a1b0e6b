"""The application layer: what the command line, notebooks and services ask through.

Open a store and analyse it, load files, scan trees, plan, calibrate and report; nothing here prints or reads options.
Modules are imported when they are needed: opening `iolens.api` loads no engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from iolens.api.listener import Listener
    from iolens.api.open_store import OpenStore
    from iolens.api.plans.rationale import write_rationale
    from iolens.api.scan import scan_tree
    from iolens.api.store_analyses import on_frames
    from iolens.store.scope import Scope

__all__ = ["Listener", "OpenStore", "Scope", "on_frames", "scan_tree", "write_rationale"]

_HOMES: Final = {
    "Listener": "iolens.api.listener",
    "OpenStore": "iolens.api.open_store",
    "Scope": "iolens.store.scope",
    "on_frames": "iolens.api.store_analyses",
    "scan_tree": "iolens.api.scan",
    "write_rationale": "iolens.api.plans.rationale",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
