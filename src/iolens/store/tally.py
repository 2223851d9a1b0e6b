"""What became of the input: printed by `iolens ingest`, kept in the table `batches`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from iolens.errors import InputError
from iolens.records import Problem

PROBLEMS_KEPT: Final = 100
_COUNTS: Final = (
    "captures", "already_present", "samples", "baselines", "repeated", "older", "placed", "unplaced", "resets",
    "glitches", "set_back", "apart", "refused", "noted",
)  # fmt: skip


@dataclass(slots=True)
class Tally:
    """What became of the input."""

    captures: int = 0
    already_present: int = 0
    samples: int = 0
    baselines: int = 0
    repeated: int = 0
    older: int = 0
    placed: int = 0  # late samples that a rebuild found a place for
    unplaced: int = 0  # and those that contradict what is stored
    resets: int = 0
    glitches: int = 0
    set_back: int = 0
    apart: int = 0  # samples so long after the one before that they are new baselines
    refused: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    noted: int = 0
    notes: list[Problem] = field(default_factory=list)  # left out by rule, nothing wrong
    estimated: list[str] = field(default_factory=list)  # what telemetry now tells of its disks, a sentence each

    def note(self, note: Problem) -> None:
        """Count what was left out on purpose; keep the first in full."""
        self.noted += 1
        if len(self.notes) < PROBLEMS_KEPT:
            self.notes.append(note)

    def refuse(self, problem: Problem, count: int = 1) -> None:
        """Count a problem, and how many places it stands for; keep the first ones in full."""
        self.refused += count
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(problem)

    def refuse_input(self, error: InputError) -> None:
        """Count an input that could not be read at all."""
        expected = f"; expected {error.expected}" if error.expected else ""
        self.refuse(Problem(error.place, error.line, error.problem + expected))

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.rows += other.rows
        self.notes += other.notes[: PROBLEMS_KEPT - len(self.notes)]
        self.problems += other.problems[: PROBLEMS_KEPT - len(self.problems)]

    def outcomes(self) -> Iterator[str]:
        """What became of the samples that are no plain interval, each kind with its number."""
        cases = (
            (self.already_present, "capture was", "captures were", "already present and added nothing"),
            (self.baselines, "first sample, kept as baseline", "first samples, kept as baselines", "for the next"),
            (self.apart, "sample", "samples",
             "too long after the one before: new baselines, what moved between them is listed below and in no"
             " interval"),
            (self.repeated, "sample or row", "samples or rows", "already present, dropped"),
            (self.older, "sample", "samples", "older than what is stored, refused (take with --rebuild)"),
            (self.placed, "late sample", "late samples", "fitted between the stored ones"),
            (self.unplaced, "late sample or row contradicts", "late samples or rows contradict",
             "what is stored, refused: what is stored stays"),
            (self.set_back, "sample", "samples",
             "after the clock was set back: what moved is counted in the next later interval"),
            (self.resets, "counter reset:", "counter resets:", "what moved since is counted, and marked"),
            (self.glitches, "single counter", "single counters", "stepped back: counted as zero"),
        )  # fmt: skip
        yield from (
            f"{count:,} {single if count == 1 else several} {what}" for count, single, several, what in cases if count
        )
