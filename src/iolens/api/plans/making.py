"""A plan by its name, from a store that is open, by its address, or without any, with its options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from importlib import import_module
from typing import Any

from iolens.api.listener import Listener
from iolens.api.plans.reference_system import ReferenceSystem, StoreAccess
from iolens.plans.cases import OPTION
from iolens.plans.plausibility import check_size
from iolens.store.scope import Scope

# The options of a plan, as given on the command line or from Python, and which of them were given ---------------------


def option_name(name: str) -> str:
    """`--purge-days` of `purge_days`."""
    return f"--{name.replace('_', '-')}"


class PlanOptions:
    """Options by name, with the defaults of the plan; `given` are the names of those that the user chose.

    A list may be a text (`"3,4"`) or a sequence (`[3, 4]`); `"3..4"` is a range. A number where a size or a rate is
    expected is in bytes, or bytes per second.
    """

    def __init__(self, values: Mapping[str, Any], given: Collection[str]) -> None:
        self.values = values
        self.given = {name for name in given if values.get(name) is not None}

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def origin(self, name: str) -> str:
        """Whether it is the user's or a default."""
        return f"{OPTION}{option_name(name)}" if name in self.given else "default"

    def text(self, name: str, unit: str = "") -> str | None:
        """What is given as one text, `3,4` for a sequence; a number gets the unit."""
        value = self.values[name]
        return value if value is None or isinstance(value, str) else ",".join(_words(value, unit))

    def required_text(self, name: str) -> str:
        """The same of an option that has a default."""
        text = self.text(name)
        assert text is not None
        return text

    def words(self, name: str, unit: str = "") -> tuple[str, ...]:
        """The members of a list."""
        return tuple(_words(self.values[name], unit))

    def pairs(self, name: str, unit_of: Callable[[str], str] = lambda key: "") -> tuple[str, ...]:
        """`NAME=LIST` for each member of a mapping, numbers with the unit of the name; such texts as they are."""
        value = self.values[name]
        if isinstance(value, Mapping):
            return tuple(f"{key}={','.join(_words(members, unit_of(key)))}" for key, members in value.items())
        return (value,) if isinstance(value, str) else tuple(value)

    def cases(self, name: str) -> tuple[str, ...]:
        """`KEY=VALUE,…` for each mapping of a sequence; texts of that form as they are."""
        value = self.values[name]
        members: Sequence[Any] = (value,) if isinstance(value, str | Mapping) else value
        return tuple(member if isinstance(member, str) else ",".join(_words(member)) for member in members)

    def day(self, name: str) -> date | None:
        """A day, of a date or a time."""
        day: date | None = self.values[name]
        return day.date() if isinstance(day, datetime) else day


def _words(value: Any, unit: str = "") -> Iterator[str]:
    if isinstance(value, str):
        yield from (word.strip() for word in value.split(",") if word.strip())
    elif isinstance(value, Mapping):
        yield from (f"{key}={','.join(_words(member, unit))}" for key, member in value.items())
    elif isinstance(value, Sequence) or hasattr(value, "__iter__"):
        yield from (word for member in value for word in _words(member, unit))
    else:
        yield f"{value}{unit}"


# A plan by its name, from a store that is open where it is needed -----------------------------------------------------


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
