"""Which part of a store a question is about: file system, window, targets, source and resolution in one object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypedDict, Unpack

from iolens.errors import UsageError
from iolens.times import utc_period, utc_time

RAW: Final = "raw"  # the resolution of rows that were not summed up


class Narrowing(TypedDict, total=False):
    """Keyword arguments that narrow a question; times are texts (`2026-01-05`, `-7d`) or datetimes, in UTC if not said.

    `during` is a whole day, week or month (`yesterday`, `2026-W03`), in place of `since` and `until`.
    """

    since: str | datetime | None
    until: str | datetime | None
    during: str
    targets: Sequence[str]
    source: str | None
    resolution: str | None


NARROWING: Final = tuple(name for name in Narrowing.__annotations__ if name != "during")  # what a scope holds of it


@dataclass(frozen=True, slots=True)
class Scope:
    """One file system (None: the only one of the store) in the window [since, until), in UTC.

    `targets` and `source` keep only their rows. `resolution` is `raw` or that of a rollup; None leaves the choice to
    whoever reads.
    """

    filesystem: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    targets: tuple[str, ...] = ()
    source: str | None = None
    resolution: str | None = None

    @classmethod
    def of(cls, given: str | Scope | None = None, **narrowing: Unpack[Narrowing]) -> Scope:
        """The scope of a file system's name, or a scope; narrowed by keyword arguments."""
        values: dict[str, Any] = {**narrowing}
        if "during" in values:
            if values.keys() & {"since", "until"}:
                raise UsageError("during is a whole window: leave out since and until")
            values["since"], values["until"] = utc_period(values.pop("during"))
        values |= {name: utc_time(values[name]) for name in ("since", "until") if name in values}
        if "targets" in values:
            values["targets"] = tuple(values["targets"])
        return replace(given, **values) if isinstance(given, Scope) else cls(given, **values)

    @classmethod
    def taken_from(cls, options: dict[str, Any], given: str | Scope | None = None) -> Scope:
        """The same; what narrows the rows is taken out of options that also hold others."""
        return cls.of(given, **{name: options.pop(name) for name in Narrowing.__annotations__ if name in options})

    def only(self, *names: str) -> Scope:
        """The file system with these of its narrowings alone."""
        return Scope(self.filesystem, **{name: getattr(self, name) for name in names})

    @property
    def rollup(self) -> str | None:
        """The rollup that is asked for; None: raw rows."""
        return None if self.resolution == RAW else self.resolution
