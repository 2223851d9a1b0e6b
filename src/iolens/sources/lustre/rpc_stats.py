"""A client's histograms: `osc.*.rpc_stats` and `mdc.*.rpc_stats` of Lustre 1.8 to 2.16, `llite.*.extents_stats`.

Rows are `label: count % cum% | count % cum%`, read then write; some versions leave out the `|`, and the section
`modify` of an MDC has one direction. A section that holds anything not understood is refused as a whole, because a
missing bin would look like a zero.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from iolens.records import Problem
from iolens.schema import DIRECTIONS
from iolens.sources.lustre.clock import stamp_us, whole_number
from iolens.sources.lustre.histograms import bin_label

PAGES: Final = "pages"
SECTIONS: Final = {
    "pages per rpc": PAGES,
    "rpcs in flight": "rpcs_in_flight",
    "offset": "offset_pages",
    "RPC latency (us)": "rpc_latency_us",
}
CALL_SIZES: Final = "call_size_bytes"
MODIFY: Final = ("modify",)
_DIRECTION_LINES: Final = {"read write": DIRECTIONS, "read | write": DIRECTIONS, "modify": MODIFY}
_UNITS: Final = ("rpcs", "pages", "count")
_SHARES: Final = ("%", "cum", "%")
NOW: Final = {
    "read RPCs in flight": "read_rpcs",
    "write RPCs in flight": "write_rpcs",
    "DIO RPCs in flight": "dio_rpcs",
    "pending write pages": "pending_write_pages",
    "pending read pages": "pending_read_pages",
    "modify_RPCs_in_flight": "modify_rpcs",
}
"""What is true only now, and how it is called here: no counters, and no table has them."""
_SMALL: Final = {str(number): number for number in range(101)}  # two numbers in three are percentages
_EXTENT: Final = re.compile(r"(\d+[KMGT]?) - +(\d+[KMGT]?) :(.*)")
_PROCESS: Final = re.compile(r"PID: (\d+)")

Bins = dict[str, int]  # `read:4`, `write:4`, `modify:1`: how many


@dataclass(slots=True)
class ClientHistograms:
    """A parsed text. `sections`: bins by name of the histogram; `processes`: of extents_stats_per_process, by PID."""

    place: str
    snapshot_us: int | None = None
    start_us: int | None = None
    sections: dict[str, Bins] = field(default_factory=dict)
    processes: dict[int, Bins] = field(default_factory=dict)
    now: dict[str, int] = field(default_factory=dict)
    disabled: bool = False  # nobody asked Lustre to count
    problems: list[Problem] = field(default_factory=list)


class _Section(NamedTuple):
    """Rows under one header. Name None: of no known version, its rows are skipped."""

    name: str | None
    directions: tuple[str, ...]
    line: int
    bins: dict[str, int]
    labels: list[int]
    refused: list[str]
    ends: list[bool]  # of each row, whether both cumulative shares are at their end


def parse_rpc_stats(data: bytes, place: str, first_line: int = 1) -> ClientHistograms:
    """Read an rpc_stats; sections that are not understood, or may be cut, become problems."""
    reader = _RpcReader(ClientHistograms(place))
    lines = data.decode("ascii", "replace").split("\n")
    for number, line in enumerate(lines, first_line):
        if text := line.strip():
            reader.take(text, number)
    return reader.finish(cut=bool(lines[-1]))


def parse_extents_stats(data: bytes, place: str, first_line: int = 1) -> ClientHistograms:
    """Read an extents_stats, or extents_stats_per_process: calls by size, labelled with the upper bound in bytes."""
    reader = _ExtentReader(ClientHistograms(place))
    lines = data.decode("ascii", "replace").split("\n")
    if data.lstrip().startswith(b"disabled"):
        reader.histograms.disabled = True
        return reader.histograms
    for number, line in enumerate(lines, first_line):
        if text := line.strip():
            reader.take(text, number)
    return reader.finish(cut=bool(lines[-1]))


class _Reader:
    """Takes lines, and keeps the section that is open."""

    def __init__(self, histograms: ClientHistograms) -> None:
        self.histograms = histograms
        self.sections: list[_Section] = []

    def problem(self, number: int, reason: str) -> None:
        self.histograms.problems.append(Problem(self.histograms.place, number, reason))

    def open(self, name: str | None, directions: tuple[str, ...], number: int) -> None:
        self.sections.append(_Section(name, directions, number, {}, [], [], []))

    def take_time(self, text: str, number: int) -> bool:
        name = text.split()[0].rstrip(":")
        if name not in ("snapshot_time", "start_time", "elapsed_time"):
            return False
        stamp = stamp_us(text.removeprefix(text.split()[0]))
        if stamp is None:
            self.problem(number, f"not a time: {text[:60]!r}")
        elif name == "snapshot_time":
            self.histograms.snapshot_us = stamp
        elif name == "start_time":
            self.histograms.start_us = stamp
        return True

    def take_row(self, label: int | None, words: list[str], text: str) -> None:
        """One row of the open section; one that is not understood spoils it."""
        section = self.sections[-1]
        numbers = [_SMALL[word] if word in _SMALL else whole_number(word) for word in words if word != "|"]
        if label is None or len(numbers) != 3 * len(section.directions) or None in numbers or words.count("|") > 1:
            section.refused.append(f"row not understood: {text[:60]!r}")
        elif section.labels and label <= section.labels[-1]:
            section.refused.append(f"label {text.split()[0]!r} is out of order")
        else:
            section.labels.append(label)
            section.ends.append({*numbers[2::3]} <= {0, 100})
            for direction, count in zip(section.directions, numbers[0::3], strict=True):
                section.bins[f"{direction}:{label}"] = count or 0

    def finish(self, *, cut: bool) -> ClientHistograms:
        """What the sections hold."""
        for section in self.sections:
            if section.name is None:
                continue
            # Lustre ends a section when all cumulative shares reach their end: anything less was cut.
            if cut and section is self.sections[-1] and not (section.ends and section.ends[-1]):
                section.refused.append("the file ends in the middle of it")
            if section.refused:
                self.problem(section.line, f"section {section.name!r} refused: {section.refused[0]}")
            elif self.keep(section):
                self.problem(section.line, f"section {section.name!r} occurs twice: the first counts")
        histograms = self.histograms
        if not self.sections and not histograms.problems and histograms.snapshot_us is None:
            self.problem(1, "no histogram, expected sections such as 'pages per rpc'")
        return histograms

    def keep(self, section: _Section) -> bool:
        """Whether there was one of that name before."""
        name = str(section.name)
        if name in self.histograms.sections:
            return True
        self.histograms.sections[name] = {bin_: count for bin_, count in section.bins.items() if count}
        return False


class _RpcReader(_Reader):
    directions: tuple[str, ...] = ()

    def take_now(self, text: str) -> bool:
        """`read RPCs in flight:  3`; one that is no number is not known."""
        name, _, value = text.partition(":")
        if name in NOW and (count := whole_number(value.strip())) is not None:
            self.histograms.now[NOW[name]] = count
        return name in NOW

    def take(self, text: str, number: int) -> None:
        """One line that is not empty."""
        if self.sections and text[0].isdigit():
            label, *words = text.split()
            self.take_row(bin_label(label), words, text)
        elif self.take_now(text) or self.take_time(text, number):
            return
        elif (directions := _DIRECTION_LINES.get(" ".join(text.split()))) is not None:
            self.directions = directions
        elif (name := _header(text, self.directions)) is not None:
            self.open(name, self.directions, number)
        elif "%" in text:
            self.open(None, self.directions, number)
            self.problem(number, f"unknown section {text[:60]!r}")
        elif self.sections:
            self.sections[-1].refused.append(f"line not understood: {text[:60]!r}")
        else:
            self.problem(number, f"line not understood: {text[:60]!r}")


@lru_cache(maxsize=256)
def _header(text: str, directions: tuple[str, ...]) -> str | None:
    """The histogram that a header such as `pages per rpc  rpcs % cum % | rpcs % cum %` begins."""
    plain = [word.replace("%%", "%") for word in text.split() if word != "|"]
    at = next((index for index, word in enumerate(plain[:-1]) if word in _UNITS and plain[index + 1] == "%"), 0)
    heads = plain[at:]
    if not at or not directions or heads != [heads[0], *_SHARES] * len(directions):
        return None
    name = SECTIONS.get(" ".join(plain[:at]))
    return f"modify_{name}" if name is not None and directions == MODIFY else name


class _ExtentReader(_Reader):
    def take(self, text: str, number: int) -> None:
        """One line that is not empty."""
        row, process = _EXTENT.fullmatch(text), _PROCESS.fullmatch(text)
        if self.take_time(text, number) or text.split() in (["read", "|", "write"], ["read", "write"]):
            return
        if process is not None:
            self.open(process[1], DIRECTIONS, number)
        elif text.split()[0] == "extents":
            self.open(CALL_SIZES, DIRECTIONS, number)
        elif row is not None and self.sections:
            self.take_row(bin_label(f"{row[2]}:"), row[3].split(), text)
        elif self.sections:
            self.sections[-1].refused.append(f"line not understood: {text[:60]!r}")
        else:
            self.problem(number, f"line not understood: {text[:60]!r}")

    def keep(self, section: _Section) -> bool:
        """The header of a file of processes has no rows of its own."""
        name = str(section.name)
        if not name.isdecimal():
            return super().keep(section)
        known = self.histograms.processes
        if (process := int(name)) in known:
            return True
        known[process] = {bin_: count for bin_, count in section.bins.items() if count}
        return False

    def finish(self, *, cut: bool) -> ClientHistograms:
        """What the sections hold; a file of processes has no sum of its own."""
        if any(str(section.name).isdecimal() for section in self.sections):
            self.sections = [section for section in self.sections if section.name != CALL_SIZES or section.bins]
        return super().finish(cut=cut)


def pages_moved(bins: Mapping[str, int], direction: str) -> tuple[int, int]:
    """RPCs of one direction, and the most pages that they can have carried: Σ count·label."""
    counts = {int(name.partition(":")[2]): count for name, count in bins.items() if name.startswith(f"{direction}:")}
    return sum(counts.values()), sum(label * count for label, count in counts.items())
