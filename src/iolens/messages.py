"""Messages on standard error: which are shown, how a line looks, and troubles that are said once and then counted.

A verb speaks to a person, in plain lines. A service (`collect`, `export prometheus`) writes a log: each line has its
time and level; under systemd the journal knows the time and takes the level from a prefix such as `<4>`.
Standard library only, and quick to import: the agent and the verbs of a batch job speak through here too.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from iolens.visible_text import shortened, visible, visible_lines

ERROR, WARNING, NOTICE, INFO, DEBUG = 3, 4, 5, 6, 7  # the numbers of syslog
NAMES: Final = {ERROR: "error", WARNING: "warning", NOTICE: "note", INFO: "info", DEBUG: "debug"}
LOUDNESS: Final = {"quiet": WARNING, "verbose": INFO, "debug": DEBUG}  # by option; otherwise up to NOTICE
LONGEST_CAUSE: Final = 200  # characters of what a library says of an error; `--debug` shows all
LONGEST_KIND: Final = 1000  # characters that tell two troubles apart
SAID_AGAIN_S: Final = 3600.0  # a trouble that lasts
BEGUN_AGAIN_S: Final = 600.0  # a trouble that comes and goes
MOST_TROUBLES: Final = 1000


@dataclass(slots=True)
class _Output:
    """How messages are written in this process."""

    level: int = NOTICE
    is_log: bool = False


_output: Final = _Output()


class Message(str):
    """A line that knows its level; wherever a plain line is taken, this is too."""

    level: int

    def __new__(cls, text: str, level: int = NOTICE) -> Message:
        """That text, at that level."""
        line = super().__new__(cls, text)
        line.level = level
        return line


def set_level(level: int = NOTICE) -> None:
    """Show messages up to this level from now on."""
    _output.level = level


def set_log(is_log: bool) -> None:
    """Write a log from now on, as a service does, or lines for a person."""
    _output.is_log = is_log


def is_shown(level: int) -> bool:
    """Whether messages of a level are written."""
    return level <= _output.level


def say(line: str) -> None:
    """Write a line, of the level it knows, else a note."""
    level = line.level if isinstance(line, Message) else NOTICE
    if is_shown(level) and sys.stderr is not None:
        sys.stderr.write(_log_line(line, level) if _output.is_log else _plain_line(line, level))
        sys.stderr.flush()


def warn(text: str) -> None:
    """Something is not as it should be; also shown with `--quiet`."""
    say(Message(text, WARNING))


def detail(text: str, level: int = INFO) -> None:
    """What is read and how long it took: shown with `--verbose`, at DEBUG with `--debug`."""
    if is_shown(level):
        say(Message(text, level))


def _plain_line(text: str, level: int) -> str:
    return visible_lines(f"{text}\n" if level == NOTICE else f"iolens: {text}\n")


def _log_line(text: str, level: int) -> str:
    if _is_journal():
        return f"<{level}>{visible(text)}\n"
    return f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {NAMES[level]}: {visible(text)}\n"


def _is_journal() -> bool:
    """Whether standard error is the journal, as systemd says in the environment."""
    device, _, inode = os.environ.get("JOURNAL_STREAM", "").partition(":")
    try:
        status = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
    return (device, inode) == (str(status.st_dev), str(status.st_ino))


def cause(error: object) -> str:
    """What a library says of an error, in one line of bounded length: its begin and its end."""
    text = " ".join(str(error).split())
    if len(text) > LONGEST_CAUSE:
        detail(text, DEBUG)
    return shortened(text, LONGEST_CAUSE)


def kind_of(text: str) -> str:
    """The text without what differs from one time to the next: times, counts, request numbers."""
    return " ".join("#" if any(map(str.isdigit, word)) else word for word in text[:LONGEST_KIND].split())


@dataclass(slots=True)
class _Trouble:
    """One trouble: since when, when it was last said, and how often it came since then and in all."""

    kind: str
    began: float
    said_at: float
    count: int = 0
    total: int = 1
    is_on: bool = True
    is_end_due: bool = True


@dataclass(slots=True)
class TroubleLog:
    """Says a trouble once, then counts it, once an hour says how often it came, and says when it is over."""

    say: Callable[[str], None] = say
    clock: Callable[[], float] = time.monotonic
    _known: dict[Any, _Trouble] = field(default_factory=dict)

    def tell(self, key: Any, text: str, level: int = WARNING) -> None:
        """It happened, perhaps again; texts that differ only in numbers are the same trouble."""
        now, kind = self.clock(), kind_of(text)
        known = self._known.get(key)
        if known is None or known.kind != kind:
            while len(self._known) >= MOST_TROUBLES:
                del self._known[next(iter(self._known))]
            self._known[key] = _Trouble(kind, now, now)
            self.say(Message(text, level))
            return
        if not known.is_on:
            known.began, known.total = now, 0
        known.count, known.total = known.count + 1, known.total + 1
        since = now - known.said_at
        if since >= (SAID_AGAIN_S if known.is_on else BEGUN_AGAIN_S):
            span = "hour" if abs(since - 3600) < 180 else _span(since)
            self.say(Message(f"{text} (again {_times(known.count)} in the last {span})", level))
            known.said_at, known.count, known.is_end_due = now, 0, True
        known.is_on = True

    def over(self, key: Any, text: str) -> None:
        """It is not so any more, if it was: said once for each time that its begin was said."""
        known = self._known.get(key)
        if known is None or not known.is_on:
            return
        known.is_on = False
        if known.is_end_due:
            now = self.clock()
            self.say(Message(f"{text} (it lasted {_span(now - known.began)}, {_times(known.total)})", NOTICE))
            known.is_end_due, known.said_at = False, now

    def going_on(self) -> list[Any]:
        """Keys of troubles that are not over."""
        return [key for key, known in self._known.items() if known.is_on]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _span(seconds: float) -> str:
    """`40 s`, `12 min`, `5 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
