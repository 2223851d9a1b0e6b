"""System calls from the text of strace (`strace -f -T -ttt -o FILE`), and the counts of its summary (`-c`, `-C`).

Times are optional. A call that another process interrupts in the file is put together again.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from iolens.errors import InputError

_PREFIX: Final = re.compile(
    r" *(?:\[pid +(?P<pid_in_brackets>[0-9]+)\] +|(?P<pid>[0-9]+) +)?"
    r"(?:(?:[0-9]+\.[0-9]+|[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?) +)?"
)
_RETURN: Final = r"\) += (?P<result>.*?)(?: <(?P<seconds>[0-9]+\.[0-9]+)>)?"
_CALL: Final = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)" + _RETURN)
_UNFINISHED: Final = re.compile(r"(?P<name>\w+)\((?P<arguments>.*?) ?<(?:unfinished|detached) *\.\.\.>")
_RESUMED: Final = re.compile(r"<\.\.\. (?P<name>\w+) resumed>(?P<arguments>.*)" + _RETURN)
_PROCESS_EVENT: Final = re.compile(r"--- .+ ---|\+\+\+ .+ \+\+\+|\[ Process .+ \]")  # signals, exits, 32-bit mode
_MESSAGE: Final = "strace: "
_SUMMARY_HEAD: Final = re.compile(r"% time +seconds +usecs/call +calls +errors +syscall")
_SUMMARY_LINE: Final = re.compile(
    r" *+[0-9.]++ ++[0-9.]++ ++(?:[0-9]++ ++)?(?P<calls>[0-9]++)(?: ++(?P<errors>[0-9]++))? ++(?P<name>[a-z_]\w*+)"
)
_RULE: Final = re.compile(r"[- ]+")
_TOTAL: Final = "total"
_NEVER_RETURNED: Final = "?"
_ERROR: Final = re.compile(r"(?:-1|\?) (E[A-Z0-9]+)")


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A call that returned: `result` as printed, `seconds` it took (None: traced without -T), `pid` where printed."""

    name: str
    arguments: str
    result: str
    seconds: float | None = None
    pid: int | None = None

    @property
    def error(self) -> str | None:
        """`ENOENT`; None where the call succeeded."""
        match = _ERROR.match(self.result)
        return match[1] if match else None

    @property
    def returned(self) -> int | None:
        """The number that was returned; None for an address or an error."""
        word = self.result.partition(" ")[0].partition("<")[0]
        return int(word) if word.isascii() and word.isdigit() else None


@dataclass(frozen=True, slots=True)
class CallCount:
    """A line of the summary: calls that returned, and how many of them with an error."""

    calls: int
    errors: int = 0


@dataclass(slots=True)
class StraceTrace:
    """Calls in the order in which they returned; `summary` by the name of the call, None where the file has none.

    `unreturned` calls were begun and did not return: `exit_group`, or those of a process that was killed. `is_cut`:
    the last line has no end, and is left out.
    """

    calls: list[TracedCall] = field(default_factory=list)
    summary: dict[str, CallCount] | None = None
    unreturned: int = 0
    is_cut: bool = False

    def counts(self) -> dict[str, CallCount]:
        """Calls by name, as the summary has them."""
        calls = Counter(call.name for call in self.calls)
        errors = Counter(call.name for call in self.calls if call.error is not None)
        return {name: CallCount(count, errors[name]) for name, count in calls.items()}


def read_trace(text: str, place: str) -> StraceTrace:
    """The calls of a file; a line that strace does not write is refused with its number. `place` names the file."""
    *lines, rest = text.split("\n")
    reader = _TraceReader(place, StraceTrace(is_cut=bool(rest)))
    for number, line in enumerate(lines, 1):
        if line.strip():
            reader.take(number, line)
    return reader.finish()


@dataclass(slots=True)
class _TraceReader:
    """Calls so far, and those that have begun, by process."""

    place: str
    trace: StraceTrace
    begun: dict[int | None, tuple[str, str]] = field(default_factory=dict)

    def take(self, number: int, line: str) -> None:
        if _SUMMARY_HEAD.fullmatch(line.rstrip()):
            self.trace.summary = {}
        elif self.trace.summary is not None:
            self._take_summary(number, line, self.trace.summary)
        elif not line.startswith(_MESSAGE):
            self._take_call(number, line)

    def _take_call(self, number: int, line: str) -> None:
        prefix = _PREFIX.match(line)
        assert prefix is not None  # every part of it may be absent
        digits = prefix["pid"] or prefix["pid_in_brackets"]
        pid, rest = (int(digits) if digits else None), line[prefix.end() :]
        if match := _RESUMED.fullmatch(rest):
            _, arguments = self.begun.pop(pid, (match["name"], ""))
            self._add(match, arguments + match["arguments"], pid)
        elif match := _UNFINISHED.fullmatch(rest):
            self.begun[pid] = (match["name"], match["arguments"])
        elif match := _CALL.fullmatch(rest):
            self._add(match, match["arguments"], pid)
        elif not _PROCESS_EVENT.fullmatch(rest):
            raise InputError(self.place, f"{line[:80]!r}", "a line of strace", number)

    def _add(self, match: re.Match[str], arguments: str, pid: int | None) -> None:
        if match["result"] == _NEVER_RETURNED:
            self.trace.unreturned += 1
            return
        seconds = float(match["seconds"]) if match["seconds"] else None
        self.trace.calls.append(TracedCall(match["name"], arguments, match["result"], seconds, pid))

    def _take_summary(self, number: int, line: str, summary: dict[str, CallCount]) -> None:
        if _RULE.fullmatch(line):
            return
        match = _SUMMARY_LINE.fullmatch(line.rstrip())
        if match is None:
            raise InputError(self.place, f"{line[:80]!r}", "a line of the summary of strace", number)
        if match["name"] != _TOTAL:
            summary[match["name"]] = CallCount(int(match["calls"]), int(match["errors"] or 0))

    def finish(self) -> StraceTrace:
        self.trace.unreturned += len(self.begun)
        return self.trace
