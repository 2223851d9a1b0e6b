"""A plan by its name, with the store of an address or without any: `iolens.plan`."""

from __future__ import annotations

from typing import Any

from iolens.api.open_store import OpenStore
from iolens.api.question_methods import answer_call, call_text, plan_question
from iolens.config import load_config


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
    return answer_call(
        plan_question(name), (filesystem,), {**options, "timezone": timezone},
        open=lambda: OpenStore(store, engine=engine, config=config), load_config=lambda: load_config(config),
        is_named=store is not None, is_lent=False,
        command=call_text("iolens.plan", name, filesystem, **named, **options),
    )  # fmt: skip
