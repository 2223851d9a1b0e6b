"""What a rule asks of a store, and what one check sees of each of its subjects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from iolens.alerts.results import WhoTook

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
