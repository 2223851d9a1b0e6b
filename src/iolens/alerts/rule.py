"""A rule as it is in force, and what it asks of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

from iolens.alerts.results import Severity, Unit, WhoTook, quantity_text

# What a rule asks of a store, and what one check sees of each of its subjects -----------------------------------------

Level = Literal["reached", "between", "clear", "unknown"]
EVERY_SUBJECT: Final = None  # subject of a condition that nothing is known of any of them


@dataclass(frozen=True, slots=True)
class EvidenceQuestion:
    """An analysis with its options, or a question of our own, over a window that ends with the check."""

    name: str
    window_s: float
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedWindow:
    """The file system ("": the whole store) and the time a rule is checked for; `end` is the time of the check."""

    filesystem: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Condition:
    """One subject at one check.

    `reached`: the threshold; `clear`: well away from it; `between`: neither, which keeps a firing alert firing.
    `since` is when it began, where rows tell; `stretch` is the time that the link and the command show.
    """

    subject: str | None
    level: Level
    why: str
    value: float | None = None
    since: datetime | None = None
    stretch: tuple[datetime, datetime] | None = None
    who: tuple[WhoTook, ...] | None = None
    filesystem: str | None = None  # where the rule is checked for the whole store


def unknown(why: str, subject: str | None = EVERY_SUBJECT) -> Condition:
    """Nothing can be said of a subject, or of any."""
    return Condition(subject, "unknown", why)


Answers = Mapping[str, Any]  # by the name of the question


# A rule as it is in force, and a kind of rule -------------------------------------------------------------------------
# What it measures, its defaults, and how it sees its subjects.

Page = Literal["filesystem", "target", "job", "contents", "data"]
Option = float | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AlertRule:
    """One rule. `threshold` and `clear` are in the unit of its kind; `filesystem` and `subject` are patterns."""

    name: str
    kind: RuleKind
    threshold: float
    clear: float
    window_s: float
    for_s: float
    clear_for_s: float
    severity: Severity
    filesystem: str = "*"
    subject: str = "*"
    receivers: tuple[str, ...] | None = None  # None: all
    repeat_s: float | None = None
    optional: bool = False
    options: Mapping[str, Option] = field(default_factory=dict)

    def level(self, value: float) -> Level:
        """Where a value stands between the threshold and the level at which an alert ends."""
        sign = -1.0 if self.kind.is_below else 1.0
        if sign * value >= sign * self.threshold:
            return "reached"
        return "clear" if sign * value < sign * self.clear else "between"

    def concerns(self, filesystem: str) -> bool:
        """Whether it is checked for a file system."""
        return fnmatchcase(filesystem, self.filesystem)

    def watches(self, subject: str) -> bool:
        """Whether it looks at a subject."""
        return fnmatchcase(subject, self.subject)

    def number(self, option: str) -> float:
        """An option of the kind that is a number."""
        value = self.options[option]
        assert isinstance(value, float)
        return value

    def words(self, option: str) -> tuple[str, ...]:
        """An option of the kind that is a list of words."""
        value = self.options[option]
        assert isinstance(value, tuple)
        return value

    def text(self, value: float | None) -> str:
        """A value in the unit of the rule."""
        return quantity_text(value, self.kind.unit)


@dataclass(frozen=True, slots=True)
class KindOption:
    """A key that only rules of this kind have: a quantity in a unit, a rate, or some of these words."""

    default: Option
    unit: Unit | Literal["rate", "words"]
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleKind:
    """What all rules of a kind share.

    `absent` is how a subject counts that an alert is about and that a check no longer sees, and `absent_why` says so.
    `of_store`: it is checked once for the whole store, not for each file system. `forecasts`: it is about time to come,
    and what is to be known of a forecast concerns it.
    """

    summary: str
    measure: str
    unit: Unit
    threshold: float
    clear: float
    window_s: float
    questions: Callable[[AlertRule], Sequence[EvidenceQuestion]]
    conditions: Callable[[AlertRule, Answers, CheckedWindow], Iterable[Condition]]
    verb: tuple[str, ...]
    page: Page
    for_s: float = 0.0
    clear_for_s: float = 0.0
    severity: Severity = "warning"
    is_below: bool = False
    has_who: bool = False
    of_store: bool = False
    forecasts: bool = False
    absent: Level = "unknown"
    absent_why: str = "Nothing is stored of it in the window."
    options: Mapping[str, KindOption] = field(default_factory=dict)
    name: str = ""


def default_rule(name: str, kind: RuleKind, *, optional: bool = False) -> AlertRule:
    """A rule of a kind with all of its defaults."""
    return AlertRule(
        name=name,
        kind=kind,
        threshold=kind.threshold,
        clear=kind.clear,
        window_s=kind.window_s,
        for_s=kind.for_s,
        clear_for_s=kind.clear_for_s,
        severity=kind.severity,
        optional=optional,
        options={key: option.default for key, option in kind.options.items()},
    )
