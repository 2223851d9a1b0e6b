"""A plan by its name, from a store that is open, by its address, or without any."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any

from iolens.api.access.listener import Listener
from iolens.api.plans.defaults import DEFAULTS, SMALLER
from iolens.api.plans.options import PlanOptions
from iolens.api.plans.reference_system import ReferenceSystem, StoreAccess
from iolens.errors import UsageError
from iolens.nearest_names import not_among
from iolens.plans.plausibility import check_size
from iolens.store.scope import Scope


def make_plan(
    name: str,
    access: StoreAccess,
    scope: Scope,
    options: Mapping[str, Any],
    *,
    timezone: str | None = None,
    listener: Listener | None = None,
    command: str = "",
) -> Any:
    """The plan of that name; `options` are those that were given, `command` is how to make it again.

    One that asks for less than is used today is refused, unless a `smaller` system is meant.
    """
    if name not in DEFAULTS:
        raise UsageError(f"no plan is called {name!r}{not_among(name, DEFAULTS)}")
    wanted = PlanOptions(name, DEFAULTS[name], options)
    reference_of = partial(ReferenceSystem, access, scope, timezone, listener or Listener(), command)
    with access:
        plan = import_module(f"iolens.api.plans.{name}").make(wanted, reference_of)
    if not wanted.values.get(SMALLER, False):
        check_size(plan.warnings)
    return plan


def plan_by_address(
    name: str,
    filesystem: str | None,
    options: dict[str, Any],
    *,
    store: str | None,
    engine: str | None,
    config: str | None,
    timezone: str | None,
) -> Any:
    """The plan with the store of an address, or the usual one, opened where it is named or needed."""
    where = {"store": store, "engine": engine, "config": config, "timezone": timezone}
    named = {key: value for key, value in where.items() if value is not None}
    command = call_text("iolens.plan", name, filesystem, **named, **options)
    scope = Scope.taken_from(options, filesystem)
    access = StoreAccess.to(store, config, engine=engine)
    return make_plan(name, access, scope, options, timezone=timezone, command=command)


def call_text(function: str, *arguments: str | Scope | None, **options: Any) -> str:
    """How the call is written in Python."""
    given = [repr(argument) for argument in arguments if argument is not None]
    return f"{function}({', '.join([*given, *(f'{name}={value!r}' for name, value in options.items())])})"
