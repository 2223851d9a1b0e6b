"""What became of an answer: equal, other in its last digits, with new keys, or different; and what is meant."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

CLOSE: Final = 1e-12  # relative: a double has sixteen digits
SHOWN: Final = 3  # differences of one answer
WIDTH: Final = 90  # characters of a value that are shown
NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")

EQUAL, SAME_ERROR, LAST_DIGITS, NEW_KEYS, MEANT = "equal", "same error", "last digits", "new keys", "meant"
DIFFERS, GONE, NEW, UNANSWERED = "differs", "gone", "new", "no answer"
BAD: Final = (DIFFERS, GONE, NEW, UNANSWERED)
NO_ANSWER: Final = re.compile(r"no answer in|the process ended")


@dataclass(frozen=True, slots=True)
class Rule:
    """What differs from run to run and says nothing of an answer: a pattern, and what stands for it."""

    name: str
    pattern: re.Pattern[str]
    instead: str


RULES: Final = (
    Rule("place of the answers", re.compile(r"/[^\s\"'<>|:,;)\]]*/(?:old|new)/[\w-]+(?=[/\s\"'<>|:,;)\]]|$)"), "HERE"),
    Rule("temporary file", re.compile(r"/(?:tmp|dev/shm)/[\w.-]+"), "TEMPORARY"),
    Rule("duration of a reading", re.compile(r"\b\d+(?:\.\d+)? (?:ms|s) in all\b"), "SECONDS in all"),
    Rule("age of a reading", re.compile(r'("\w*age_s": )[\d.]+'), r"\g<1>0"),
    Rule("number of an error", re.compile(r"\bas [0-9a-f]{8}\b"), "as NUMBER"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one revision said."""

    text: str
    error: str = ""
    code: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an answer; `kind` is one of the words above."""

    kind: str
    details: str = ""

    @property
    def words(self) -> str:
        """Both."""
        return f"{self.kind}: {self.details}" if self.details else self.kind


@dataclass(frozen=True, slots=True)
class MeantChange:
    """Answers that are meant to change: a pattern of their names, as `*/verbs/latency *`, and the reason."""

    names: str
    reason: str

    def covers(self, name: str) -> bool:
        """Whether it speaks of that answer; brackets stand for themselves."""
        return fnmatchcase(name, self.names.replace("[", "[[]"))


def rules_of(began: datetime, ended: datetime) -> tuple[Rule, ...]:
    """All rules: also any time of the day or days on which the revisions were asked."""
    days = {(began + timedelta(days=day)).date() for day in range((ended.date() - began.date()).days + 1)}
    dates = "|".join(sorted(form for day in days for form in (f"{day:%Y-%m-%d}", f"{day:%d} {day:%b} {day:%Y}")))
    now = Rule("now", re.compile(rf"(?:{dates})(?:[T ,]+\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|\+00:00)?"), "NOW")
    return (*RULES, now)


def normalised(answer: Answer, rules: Iterable[Rule]) -> Answer:
    """The answer with what is volatile replaced."""
    text, error = answer.text, answer.error
    for rule in rules:
        text, error = rule.pattern.sub(rule.instead, text), rule.pattern.sub(rule.instead, error)
    return Answer(text, error, answer.code)


def verdict(old: Answer | None, new: Answer | None) -> Verdict:
    """What became of one answer; None: that revision has no such question."""
    if old is None or new is None:
        return Verdict(NEW if old is None else GONE)
    if NO_ANSWER.match(old.error) or NO_ANSWER.match(new.error):
        return Verdict(UNANSWERED, f"{old.error or 'an answer'} → {new.error or 'an answer'}")
    if (old.error, old.code) != (new.error, new.code):
        return Verdict(DIFFERS, f"{_ending(old)} → {_ending(new)}")
    if old == new:
        return Verdict(SAME_ERROR, old.error.partition("\n")[0][:WIDTH]) if old.error else Verdict(EQUAL)
    before, after = _document(old.text), _document(new.text)
    return _of_documents(before, after) if before is not None and after is not None else _of_texts(old.text, new.text)


def _ending(answer: Answer) -> str:
    return answer.error or f"an answer with {answer.code}"


def _document(text: str) -> Any:
    if not text.startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value of a JSON document, with where it is."""
    if isinstance(value, dict | list) and value:
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, f"{path}.{name}" if path else str(name))
    else:
        yield path, value


def is_close(old: object, new: object) -> bool:
    """Whether two numbers differ in their last digits only."""
    return isinstance(old, float) and isinstance(new, float) and math.isclose(old, new, rel_tol=CLOSE)


def _of_documents(old: Any, new: Any) -> Verdict:
    before, after = dict(leaves(old)), dict(leaves(new))
    apart = [path for path, value in before.items() if path not in after or after[path] != value]
    apart = [path for path in apart if not _are_nan(before[path], after.get(path))]
    rest = [path for path in apart if not (path in after and is_close(before[path], after[path]))]
    if rest:
        changes = [f"{path}: {_short(before[path])} → {_short(after.get(path, 'absent'))}" for path in rest[:SHOWN]]
        return Verdict(DIFFERS, f"{len(rest)} of {len(before)} values; {'; '.join(changes)}")
    added = dict.fromkeys(path.partition(".")[0] for path in after if path not in before)
    if added:
        return Verdict(NEW_KEYS, ", ".join(added))
    return Verdict(LAST_DIGITS, ", ".join(apart[:SHOWN])) if apart else Verdict(DIFFERS, "order or form of keys")


def _are_nan(old: object, new: object) -> bool:
    return old != old and new != new


def _of_texts(old: str, new: str) -> Verdict:
    """Line by line: numbers may differ in their last digits, words may not."""
    before, after = old.split("\n"), new.split("\n")
    if len(before) != len(after):
        place = next((i for i, lines in enumerate(zip(before, after, strict=False)) if lines[0] != lines[1]), None)
        place = min(len(before), len(after)) if place is None else place
        lines = [_short(lines[place]) if place < len(lines) else "nothing" for lines in (before, after)]
        return Verdict(DIFFERS, f"{len(before)} → {len(after)} lines, from line {place + 1}: {' → '.join(lines)}")
    apart = [(i, *lines) for i, lines in enumerate(zip(before, after, strict=True), 1) if lines[0] != lines[1]]
    rest = [(i, earlier, later) for i, earlier, later in apart if not _are_close_lines(earlier, later)]
    if not rest:
        return Verdict(LAST_DIGITS, f"lines {', '.join(str(i) for i, *_ in apart[:SHOWN])}")
    changes = [f"line {i}: {' → '.join(_parts_apart(earlier, later))}" for i, earlier, later in rest[:SHOWN]]
    return Verdict(DIFFERS, f"{len(rest)} of {len(before)} lines; {'; '.join(changes)}")


def _are_close_lines(old: str, new: str) -> bool:
    if NUMBER.sub("0", old) != NUMBER.sub("0", new):
        return False
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return all(earlier == later or _are_close_numbers(earlier, later) for earlier, later in pairs)


def _are_close_numbers(old: str, new: str) -> bool:
    """Whole numbers are counts: they are equal or not."""
    return not (old.lstrip("-").isdigit() and new.lstrip("-").isdigit()) and is_close(float(old), float(new))


def _parts_apart(old: str, new: str) -> tuple[str, str]:
    """What differs of two lines, with a little before it."""
    place = next(
        (i for i, (earlier, later) in enumerate(zip(old, new, strict=False)) if earlier != later),
        min(len(old), len(new)),
    )
    begin = max(0, place - 25)
    return _short(old[begin:]), _short(new[begin:])


def _short(value: object) -> str:
    return str(value)[:WIDTH]


def verdicts_of(
    old: Mapping[str, Answer], new: Mapping[str, Answer], rules: Iterable[Rule]
) -> Iterator[tuple[str, Verdict]]:
    """Of every answer that either has, in the order of the old."""
    known = tuple(rules)
    for name in dict.fromkeys((*old, *new)):
        pair = [answers.get(name) for answers in (old, new)]
        if pair[0] is None or pair[0] != pair[1]:
            pair = [answer and normalised(answer, known) for answer in pair]
        yield name, verdict(*pair)


def meant_changes(path: Path) -> list[MeantChange]:
    """Those of a file; an entry that lacks a reason is an error."""
    if not path.exists():
        return []
    entries = tomllib.loads(path.read_text("utf-8")).get("meant", [])
    return [MeantChange(**entry) for entry in entries]
