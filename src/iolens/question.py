"""A question: one declaration, of which its command, its URL, its method in Python and their words are made.

    @question(
        "runs interfaces", "POSIX, STDIO, MPI-IO, HDF5 and PnetCDF by the size of runs", LIKE_RUNS,
        about="runs", rights=OWN, examples=("--from 2026-11-01 --figure interfaces.svg",),
    )
    def interfaces(ask: Ask, like: RunConditions) -> RunInterfaces:
        \"\"\"Which I/O interfaces runs use, in runs and bytes, by their processes (Fig. 3a).\"\"\"

is `iolens runs interfaces`, `/api/v1/runs/interfaces` and `store.runs_interfaces()`. Nothing here reads or computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from numbers import Real
from pathlib import Path
from types import GenericAlias
from typing import Any, Final, Literal

from iolens.errors import UsageError
from iolens.nearest_names import not_among
from iolens.times import local_day, time_zone, utc_time
from iolens.units import parse_bytes, parse_capacity, parse_duration, parse_rate

MOST_LISTED: Final = 1000  # lines of a list that a URL may ask for
LARGEST_COUNT: Final = 10**8  # … and any other number of things
_MOST_DIGITS: Final = 9

About = Literal["rows", "raw", "jobs", "runs", "times", "store"]
Means = Literal["", "person", "project", "job", "others"]


# Kinds of values ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kind:
    """What values an option takes: `read` makes one of text, in a zone; a ValueError says what would be right.

    `word` names the kind in help, `python` is the type of such values in signatures.
    """

    word: str
    read: Callable[[str, str | None], Any]
    python: Any = str


@dataclass(frozen=True, slots=True)
class ChoiceKind(Kind):
    """One of some words."""

    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NumberKind(Kind):
    """A number within bounds; `above`: more than the least."""

    least: float | None = None
    most: float | None = None
    above: bool = False


@dataclass(frozen=True, slots=True)
class ListKind(Kind):
    """Several values of a kind, with commas; a list in Python has the same members."""

    member: Kind | None = None


def choice(*words: str) -> ChoiceKind:
    """One of some words."""

    def read(text: str, _: str | None) -> str:
        if text not in words:
            raise ValueError(f"{text!r} is not known{not_among(text, words)}")
        return text

    return ChoiceKind("choice", read, Literal[words], words)


def whole(least: int | None = None, most: int | None = None) -> NumberKind:
    """A whole number within bounds; one without an upper bound has one in a URL and in Python."""
    low, high = least or 0, LARGEST_COUNT if most is None else most

    def read(text: str, _: str | None) -> int:
        plain = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
        if not (plain and low <= int(text) <= high):
            raise ValueError(f"{text!r} is not a whole number from {low:,} to {high:,}")
        return int(text)

    return NumberKind("integer", read, int, least, most)


def number(least: float | None = None, most: float | None = None, *, above: bool = False) -> NumberKind:
    """A number within bounds; `above`: more than the least."""

    def read(text: str, _: str | None) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ValueError(f"{text!r} is not a number")
        if (least is not None and (value <= least if above else value < least)) or (most is not None and value > most):
            raise ValueError(f"{text!r} is not within {_bounds(least, most, above=above)}")
        return value

    return NumberKind("number", read, float, least, most, above)


def _bounds(least: float | None, most: float | None, *, above: bool) -> str:
    low = "" if least is None else f"{least:g}{'<' if above else '<='}"
    return f"{low}x{'' if most is None else f'<={most:g}'}"


def quantity(word: str, parse: Callable[[str], Any], python: Any = float) -> Kind:
    """A value that is written with its unit, or a list of such."""
    return Kind(word, lambda text, _: parse(text), python)


def several(member: Kind, word: str = "list", *, may_be_none: bool = False) -> ListKind:
    """Values of a kind with commas: at least one, unless it may be none."""

    def read(text: str, zone: str | None) -> tuple[Any, ...]:
        members = words_of(text) if may_be_none else text.split(",")
        return tuple(member.read(part.strip(), zone) for part in members)

    return ListKind(word, read, GenericAlias(tuple, (member.python, ...)), member)


def words_of(text: str) -> tuple[str, ...]:
    """A list with commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _switched(text: str, _: str | None) -> bool:
    if text not in ("0", "1"):
        raise ValueError(f"{text!r} is not known{not_among(text, ('0', '1'))}")
    return text == "1"


TEXT: Final = Kind("text", lambda text, _: text)
WORDS: Final = several(TEXT, may_be_none=True)
SWITCH: Final = Kind("switch", _switched, bool)
RATE: Final = quantity("rate", parse_rate)
BYTES: Final = quantity("bytes", parse_bytes, int)
CAPACITY: Final = quantity("capacity", parse_capacity, int)
DURATION: Final = quantity("duration", parse_duration)
TIME: Final = Kind("time", utc_time, datetime)
TIMES: Final = several(TIME)
DAY: Final = Kind("day", local_day, date)
FILE: Final = Kind("file", lambda text, _: Path(text), Path)  # on this machine: no URL may name one
ZONE: Final = quantity("zone", lambda text: time_zone(text).key, str)


def _understood(kind: Kind, value: Any, zone: str | None) -> Any:
    """What a value in Python means: numbers have the bounds of their text, a time without a zone is in `zone`."""
    if isinstance(value, str):
        return kind.read(value, zone)
    if isinstance(kind, NumberKind) and isinstance(value, Real) and not isinstance(value, bool):
        return kind.read(str(value), zone)
    if isinstance(kind, ListKind) and kind.member is not None and isinstance(value, list | tuple):
        return tuple(_understood(kind.member, member, zone) for member in value)
    if isinstance(value, datetime) and kind is not DAY:
        return utc_time(value, zone)
    return tuple(value) if isinstance(value, list) else value


# Options --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a question: `name` is its keyword in Python, `flag` how the command line has it (`--name`).

    A URL calls it like the flag, with `_` for `-`, or as `in_url` says. `default` is a value or its text. `means` says
    whom or what a value names, whatever the option is called: rights go by it (`others`: it adds names of others to an
    answer). `many`: may be given again; `at_url`: a URL may give it, and no number above `most_at_url`.
    """

    name: str
    meaning: str
    kind: Kind = TEXT
    default: Any = None
    flag: str = ""
    metavar: str = ""
    means: Means = ""
    is_argument: bool = False
    is_needed: bool = False
    many: bool = False
    at_url: bool = True
    in_url: str = ""
    most_at_url: int | None = None

    @property
    def option(self) -> str:
        """As it is written on the command line."""
        return self.flag or f"--{self.name.replace('_', '-')}"

    @property
    def url_name(self) -> str:
        """As a URL calls it."""
        if self.in_url or self.is_argument:
            return self.in_url or self.name
        return self.option.removeprefix("--").replace("-", "_")

    @property
    def is_at_url(self) -> bool:
        """Whether a URL may give it."""
        return self.at_url and self.kind is not FILE

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off, without a value on the command line."""
        return self.kind is SWITCH

    def at_a_url(self, text: str, zone: str | None = None) -> Any:
        """What the text of a URL means; ValueError where it means nothing."""
        kind = self.kind
        if self.most_at_url is not None and isinstance(kind, NumberKind):
            kind = whole(int(kind.least or 0), self.most_at_url)
        value = kind.read(text, zone)
        return (value,) if self.many else value

    def in_python(self, value: Any, zone: str | None = None) -> Any:
        """What a caller in Python means: text is read as the command line reads it, lists become tuples.

        A mapping stands for several `NAME=VALUE`, which whoever takes them reads.
        """
        try:
            if self.many and not isinstance(value, Mapping):
                members = (value,) if isinstance(value, str) else value
                return tuple(_understood(self.kind, member, zone) for member in members)
            return _understood(self.kind, value, zone)
        except ValueError as error:
            raise UsageError(f"{self.name}: {error}") from None

    @property
    def usual(self) -> Any:
        """The value where nobody gives one."""
        if self.default is None:
            return () if self.many else False if self.is_switch else None
        return self.in_python(self.default)


@dataclass(frozen=True, slots=True)
class Gathered:
    """Options that a question takes as one object of the name: the conditions on runs, those on jobs."""

    name: str
    make: Callable[..., Any]
    options: tuple[Option, ...]


TOP: Final = Option("top", "How many", whole(1), 20, most_at_url=MOST_LISTED)


# Rights ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rights:
    """How people with the role `user` may ask a question; those with other roles may ask all.

    `public`: as it is. `own`: with every option that names a person set to their login name. `owner` tells whose a
    result is that concerns one person, and only they get it; `owner_in` is the option that names the owner, so that
    others need not be asked about; `without_others` takes the names of others out of the result.
    """

    public: bool = False
    own: bool = False
    owner: Callable[[Any], str | None] | None = None
    owner_in: str = ""
    without_others: Callable[[Any], Any] | None = None

    @property
    def is_open_to_users(self) -> bool:
        """Whether the role may ask at all."""
        return self.public or self.own or self.owner is not None

    def check(self, words: str, means: Collection[Means]) -> None:
        """Refuse what would show a user the jobs of others: `means` are those of all that a URL can say."""
        if self.own and "person" not in means:
            raise ValueError(f"{words}: users may ask it of themselves, but no option says of whom")
        if self.is_open_to_users and "job" in means and self.owner is None:
            raise ValueError(f"{words}: users may ask it of any job, and nothing says whose it is")


STAFF: Final = Rights()
EVERYBODY: Final = Rights(public=True)
OWN: Final = Rights(own=True)


# Questions ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """A question as it is declared; `answer` takes an `Ask` and the options as keywords.

    `about` says which part of a store it is about, so which options it shares with others: `rows` of targets, or `raw`
    ones that have no rollup, of one file system; `jobs` of one or of all; `runs` of the centre in a window; `times`:
    a window alone; `store`: nothing. `url` is its address where that is not made of its words, "" where it has none;
    `view` has its figures where it is not called like the question.
    `published` is the answer as a server gives it to others; `lasts_s`: how long that holds while the store is
    unchanged.
    """

    words: str
    summary: str
    answer: Callable[..., Any]
    parts: tuple[Option | Gathered, ...] = ()
    about: About = "rows"
    rights: Rights = STAFF
    examples: tuple[str, ...] = ()
    url: str | None = None
    view: str = ""
    has_figures: bool = True
    published: Callable[[Any], Any] | None = None
    lasts_s: float = math.inf
    options: tuple[Option, ...] = field(init=False)

    def __post_init__(self) -> None:
        flat = [option for part in self.parts for option in (part.options if isinstance(part, Gathered) else (part,))]
        object.__setattr__(self, "options", tuple(flat))
        self.rights.check(self.words, {option.means for option in flat if option.is_at_url})

    @property
    def name(self) -> str:
        """Its method in Python."""
        return self.words.replace(" ", "_")

    @property
    def shown_by(self) -> str:
        """The view that has its figures; of another package the module that declares it."""
        home = self.answer.__module__
        return self.view or self.name if home.partition(".")[0] == "iolens" else home

    @property
    def address(self) -> str:
        """Its place below `/api/v1/`; "" where it has none."""
        return self.words.replace(" ", "/") if self.url is None else self.url

    @property
    def text(self) -> str:
        """What its help says: the docstring of the function that answers."""
        return self.answer.__doc__ or self.summary

    def keywords(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the function that answers takes, of values by names of options; others have their default.

        What is gathered from several options may be given as it is.
        """
        values = {option.name: given.get(option.name, option.usual) for option in self.options}
        taken = {part.name: values[part.name] for part in self.parts if isinstance(part, Option)}
        for part in self.parts:
            if isinstance(part, Gathered):
                taken[part.name] = given.get(part.name) or part.make(
                    **{option.name: values[option.name] for option in part.options}
                )
        return taken


_DECLARED: Final[dict[str, Question]] = {}


def question(words: str, summary: str, *parts: Option | Gathered, **settings: Any) -> Callable[[Any], Question]:
    """Declare what the function under it answers; its docstring is the help. `settings` are fields of `Question`."""

    def declare(answer: Callable[..., Any]) -> Question:
        declared = Question(words, summary, answer, parts, **settings)
        return _DECLARED.setdefault(words, declared)

    return declare


def declared(words: str) -> Question:
    """The question of these words, whose module was imported."""
    return _DECLARED[words]
