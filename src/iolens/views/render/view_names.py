"""Which package below `views/` shows a result, by the module that defines the result's class."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

_OURS: Final = "iolens"


def view_name(result: object) -> str:
    """`imbalance` for `analyses/imbalance/analysis.py`, `blame` for `analyses/blame.py`.

    `workload_match` for `analyses/workload/match.py`, `plan_capacity` for `plans/capacity.py`.
    """
    *packages, module = type(result).__module__.split(".")
    if module in ("analysis", "results"):
        return packages[-1]
    if packages[-1:] == ["plans"]:  # a module of another package may stand alone
        return f"plan_{module}"
    return "_".join((*packages[2:], module)) if packages[:2] == [_OURS, "analyses"] else module


def view_of(result: object, *parts: str) -> Any:
    """The module that shows a result: `views/blame.py`, or the first of these modules of a package `views/workload`.

    Another package shows its results itself.
    """
    home = type(result).__module__
    if home.partition(".")[0] != _OURS:
        return import_module(home)
    return view_module(view_name(result), *parts)


def view_module(view: str, *parts: str) -> Any:
    """The module of a view, or of its package the first of these that it has: `tables`, `report`.

    A name with dots is a module of another package.
    """
    if "." in view:
        return import_module(view)
    names = [f"iolens.views.{view}.{part}" for part in parts]
    whole = import_module(f"iolens.views.{view}")
    if not hasattr(whole, "__path__"):
        return whole
    return import_module(next((name for name in names if find_spec(name) is not None), names[-1]))
