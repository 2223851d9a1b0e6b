"""The application layer: what the command line, notebooks and services ask through.

Open a store and analyse it, load files, scan trees, plan, calibrate and report; nothing here prints or reads options.
Modules are imported when they are needed: opening `iolens.api` loads no engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from iolens.api.open_store import OpenStore, on_frames

__all__ = ["OpenStore", "on_frames"]

_HOMES: Final = {"OpenStore": "open_store", "on_frames": "open_store"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
