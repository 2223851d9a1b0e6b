"""The options of a plan, as given on the command line or from Python, and which of them were given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypeVar

from iolens.errors import UsageError
from iolens.nearest_names import not_among
from iolens.plans.inputs import OPTION
from iolens.times import local_day

Quantity = TypeVar("Quantity", int, float)


def option_name(name: str) -> str:
    """`--purge-days` of `purge_days`."""
    return f"--{name.replace('_', '-')}"


class PlanOptions:
    """Options by name, with the defaults of the plan.

    A list may be a text (`"3,4"`) or a sequence (`[3, 4]`); `"3..4"` is a range. A number where a size or a rate is
    expected is in bytes, or bytes per second.
    """

    def __init__(self, plan: str, defaults: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        for name in given:
            if name not in defaults:
                raise UsageError(f"plan {plan} has no option {name!r}{not_among(name, defaults)}")
        self.given = {name: value for name, value in given.items() if value is not None}
        self.values = {**defaults, **self.given}

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

    def quantity(self, name: str, parse: Callable[[str], Quantity]) -> Quantity | None:
        """A number, or a text with its unit."""
        value: Any = self.values[name]
        try:
            parsed: Quantity | None = parse(value) if isinstance(value, str) else value
        except ValueError as error:
            raise UsageError(f"{option_name(name)}: {error}") from error
        return parsed

    def day(self, name: str) -> date | None:
        """A day, of a date, a time or a text."""
        value = self.values[name]
        try:
            time = local_day(value) if isinstance(value, str) else value
        except ValueError as error:
            raise UsageError(f"{option_name(name)}: {error}") from error
        return time.date() if isinstance(time, datetime) else time

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of a few words."""
        value: str = self.values[name]
        if value not in choices:
            raise UsageError(f"{option_name(name)}: {value!r} is not one of {', '.join(choices)}")
        return value

    def number(self, name: str, low: float, high: float = float("inf")) -> float:
        """A number between two ends."""
        value = float(self.values[name])
        if not low <= value <= high:
            raise UsageError(f"{option_name(name)}: {value:g} is not between {low:g} and {high:g}")
        return value


def _words(value: Any, unit: str = "") -> Iterator[str]:
    if isinstance(value, str):
        yield from (word.strip() for word in value.split(",") if word.strip())
    elif isinstance(value, Mapping):
        yield from (f"{key}={','.join(_words(member, unit))}" for key, member in value.items())
    elif isinstance(value, Sequence) or hasattr(value, "__iter__"):
        yield from (word for member in value for word in _words(member, unit))
    else:
        yield f"{value}{unit}"
