"""Kinds of rules, one module each: `dead_target.py` is the kind `dead-target`.

A module below this package that assigns `KIND` is a kind, and so is what another package registers under
`iolens.alerts`.
"""

from __future__ import annotations

from dataclasses import replace

from iolens.alerts.rule import RuleKind
from iolens.errors import UsageError
from iolens.registry import RegisteredObject, load, registered


def kind_names() -> list[str]:
    """Names of all kinds."""
    return list(_registered())


def get_kind(name: str) -> RuleKind:
    """The kind of that name."""
    if name not in _registered():
        raise UsageError(f"no kind of alert is called {name!r}; there are: {', '.join(kind_names())}")
    kind: RuleKind = load(_registered()[name])
    return replace(kind, name=name)


def _registered() -> dict[str, RegisteredObject]:
    return registered("iolens.alerts", "KIND", "iolens.alerts.kinds")
