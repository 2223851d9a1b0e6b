"""A plan by its name, from a store that is open where it is needed."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from iolens.api.access.listener import Listener
from iolens.api.plans.options import PlanOptions
from iolens.api.plans.reference_system import ReferenceSystem, StoreAccess
from iolens.plans.plausibility import check_size
from iolens.store.scope import Scope


def make_plan(
    name: str,
    access: StoreAccess,
    scope: Scope,
    options: PlanOptions,
    timezone: str | None = None,
    listener: Listener | None = None,
    command: str = "",
) -> Any:
    """The plan of that name; `command` is how to make it again.

    One that asks for less than is used today is refused, unless a `smaller` system is meant.
    """
    reference_of = partial(ReferenceSystem, access, scope, timezone, listener or Listener(), command)
    plan = import_module(f"iolens.api.plans.{name}").make(options, reference_of)
    if not options.values.get("smaller", False):
        check_size(plan.warnings)
    return plan
