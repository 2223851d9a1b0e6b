"""A plan by its name, from a store that is open, by its address, or without any."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from iolens.api.access.listener import Listener
from iolens.api.plans.options import PlanOptions
from iolens.api.plans.reference_system import ReferenceSystem, StoreAccess
from iolens.api.question_methods import QUESTIONS, answer_call, call_text
from iolens.errors import UsageError
from iolens.nearest_names import not_among
from iolens.plans.plausibility import check_size
from iolens.store.scope import Scope

if TYPE_CHECKING:
    from iolens.question import Question

PLAN: Final = "plan "  # what the words of their questions begin with


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


def plan_question(name: str) -> Question:
    """What declares the plan of that name."""
    questions = import_module(QUESTIONS)
    plans = [words.removeprefix(PLAN) for words in questions.declarations() if words.startswith(PLAN)]
    if name not in plans:
        raise UsageError(f"no plan is called {name!r}{not_among(name, plans)}")
    question: Question = questions.get_question(f"{PLAN}{name}")
    return question


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
    from iolens.api.open_store import OpenStore
    from iolens.config import load_config

    where = {"store": store, "engine": engine, "config": config, "timezone": timezone}
    named = {key: value for key, value in where.items() if value is not None}
    return answer_call(
        plan_question(name), (filesystem,), {**options, "timezone": timezone},
        open=lambda: OpenStore(store, engine=engine, config=config), load_config=lambda: load_config(config),
        is_named=store is not None, is_lent=False,
        command=call_text("iolens.plan", name, filesystem, **named, **options),
    )  # fmt: skip
