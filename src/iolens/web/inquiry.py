"""A question with the values of its parameters, as a URL gives them: what is cached, asked, and shown as a command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from iolens.errors import UsageError
from iolens.nearest_names import not_among
from iolens.units import from_epoch_us
from iolens.views.render.shown_times import time_with_zone
from iolens.web.parameters import AUTO, TIMEZONE, last_s, scope_words
from iolens.web.questions import QUESTIONS, ServedQuestion

if TYPE_CHECKING:
    from iolens.api import OpenStore
    from iolens.store.scope import Scope
    from iolens.store.selection import StoreSelection

ENDS: Final = ("from", "to", "during", "last")
SCOPE: Final = ("filesystem", *ENDS, "target", "source", "resolution")
INTERVALS: Final = ("target_io", "target_sizes", "metadata_ops")
RECORDS: Final = ("runs", "jobs")
# The longest window that is read row by row, and of which minutes are read: 150 targets then take about a second.
LEAST_BEHIND: Final = timedelta(hours=2)  # of a rollup that readers should know of
LONGEST_RAW: Final = timedelta(hours=6)
LONGEST_IN_MINUTES: Final = timedelta(days=4)


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question and its values, in the order of their names; equal inquiries have the same answer."""

    name: str
    values: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, name: str, given: Mapping[str, str]) -> Inquiry:
        """Checked: an unknown question or parameter and a value that cannot be read are errors."""
        if name not in QUESTIONS:
            raise UsageError(f"no question is called {name!r}{not_among(name, QUESTIONS)}")
        known = QUESTIONS[name].known
        for key in given:
            if key not in known:
                raise UsageError(f"{name} has no parameter {key!r}{not_among(key, known)}")
        zone = _zone(given)
        for key, text in given.items():
            known[key].read(text, zone)
        if missing := [key for key, parameter in known.items() if parameter.is_needed and not given.get(key)]:
            raise UsageError(f"{name} needs {missing[0]}: {known[missing[0]].meaning}")
        ends = [key for key in ENDS if key in given]
        if ("during" in ends or "last" in ends) and len(ends) > 1:
            raise UsageError(f"{' and '.join(ends)} do not go together: each is a window")
        return cls(name, tuple(sorted(given.items())))

    @property
    def question(self) -> ServedQuestion:
        """The question that is asked."""
        return QUESTIONS[self.name]

    def value(self, name: str) -> str | None:
        """The text of a parameter."""
        return dict(self.values).get(name)

    def but(self, **values: str | None) -> Inquiry:
        """The same with other values; None takes one away."""
        merged = {**dict(self.values), **values}
        return Inquiry.of(self.name, {key: text for key, text in merged.items() if text is not None})

    @property
    def query(self) -> str:
        """As the part of a URL behind the question mark."""
        return urlencode(self.values)

    def options(self) -> dict[str, Any]:
        """Values of the question's own parameters, their times in the zone, and the zone, as Python calls them."""
        known, zone = self.question.known, _zone(dict(self.values))
        return {known[key].in_python: known[key].read(text, zone) for key, text in self._own}

    @property
    def _own(self) -> list[tuple[str, str]]:
        """Values that are not those of a scope."""
        return [(key, text) for key, text in self.values if key not in SCOPE or self.question.about == "store"]

    def scope(self, opened: OpenStore, now: datetime | None = None) -> Scope:
        """Which rows it is about; `last` is counted from the newest data, and `auto` becomes a resolution.

        Data that are later than `now`, the clock, do not count as the newest.
        """
        from iolens.store.scope import Scope

        if self.question.about == "store":
            return Scope()
        read = {key: self.question.known[key].read(text) for key, text in self.values if key in SCOPE}
        scope = Scope(read.get("filesystem"), *_ends(read), read.get("target", ()), read.get("source"))
        text, resolution = self.value("last"), read.get("resolution")
        whole = _whole(opened, scope) if text is not None or resolution == AUTO else []
        if text is not None:
            scope = _last(whole, scope, last_s(text), now or datetime.now(UTC))
        return replace(scope, resolution=_fitting(whole, scope) if resolution == AUTO else resolution)

    def command(self, scope: Scope) -> str:
        """The command that gives the same answer, with the window and resolution it was asked with."""
        if not self.question.command:
            return ""
        known = self.question.known
        own = [(known[key], text) for key, text in self._own]
        options = [word for parameter, text in own if not parameter.is_argument for word in parameter.words(text)]
        arguments = [text for parameter, text in own if parameter.is_argument]
        end = ["--"] if any(text.startswith("-") for text in arguments) else []
        return shlex.join(["iolens", *self.question.command, *options, *scope_words(scope), *end, *arguments])


def rollup_note(opened: OpenStore, scope: Scope) -> str:
    """What a reader must know where the rollup ends before the window; "": nothing."""
    if scope.rollup is None or scope.filesystem is None:
        return ""
    whole = opened.store.select(scope.filesystem)
    rolled, raw = (
        whole.another(window=(scope.since, scope.until), resolution=name).extent_us(*INTERVALS)
        for name in (scope.rollup, None)
    )
    if rolled is None or raw is None or raw[1] - rolled[1] <= LEAST_BEHIND / timedelta(microseconds=1):
        return ""
    end = time_with_zone(from_epoch_us(rolled[1]))
    return f"Rolled up until {end} only: later data are missing here. `iolens store rollup` adds them."


def _zone(given: Mapping[str, str]) -> str | None:
    """In which times are that say no zone."""
    return TIMEZONE.read(given[TIMEZONE.name]) if TIMEZONE.name in given else None


def _ends(read: Mapping[str, Any]) -> tuple[datetime | None, datetime | None]:
    if "during" in read:
        first, last = read["during"]
        return first, last
    return read.get("from"), read.get("to")


def _whole(opened: OpenStore, scope: Scope) -> list[StoreSelection]:
    """All rows of the scope's file system; without one, those of every file system, of runs and of jobs."""
    from iolens.store.scope import Scope

    if scope.filesystem is not None:
        return [opened.store.select(scope.filesystem)]
    names = opened.store.targets_by_filesystem()
    return [*map(opened.store.select, names), opened.store.select_all(Scope())]


def _extent(whole: list[StoreSelection]) -> tuple[datetime, datetime] | None:
    """From when to when there are data; None: there are none."""
    tables = [INTERVALS if selection.filesystem else RECORDS for selection in whole]
    extents = [selection.extent_us(*names) for selection, names in zip(whole, tables, strict=True)]
    known = [extent for extent in extents if extent is not None]
    if not known:
        return None
    return from_epoch_us(min(first for first, _ in known)), from_epoch_us(max(last for _, last in known))


def _last(whole: list[StoreSelection], scope: Scope, seconds: float | None, now: datetime) -> Scope:
    """The last part of the data up to now."""
    extent = _extent(whole)
    if extent is None or seconds is None:
        return scope
    until = min(extent[1], now)
    since = until - timedelta(seconds=seconds)
    return replace(scope, since=max(extent[0], since) if extent[0] < until else since, until=until)


def _fitting(whole: list[StoreSelection], scope: Scope) -> str | None:
    """The finest resolution that the length of the window allows and that covers its days; None: raw rows."""
    extent = _extent(whole)
    if extent is None or scope.filesystem is None:
        return None
    length = min(scope.until or extent[1], extent[1]) - max(scope.since or extent[0], extent[0])
    if length <= LONGEST_RAW:
        return None
    fitting = ("60s", "1h") if length <= LONGEST_IN_MINUTES else ("1h", "60s")
    return next((name for name in fitting if _covers(whole[0], scope, name)), None)


def _covers(whole: StoreSelection, scope: Scope, resolution: str) -> bool:
    """Whether the rollup has every day of the window that has rows, but for the newest: it may not be over."""
    window = (scope.since, scope.until)
    raw = whole.another(window=window).days(*INTERVALS)
    rolled = whole.another(window=window, resolution=resolution).days(*INTERVALS)
    return bool(rolled) and not raw - rolled - {max(raw, default=None)}
