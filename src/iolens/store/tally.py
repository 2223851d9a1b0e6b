"""What became of the input: printed by `iolens ingest`, kept in the table `batches`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from iolens.errors import InputError
from iolens.records import Problem

PROBLEMS_KEPT: Final = 100
_COUNTS: Final = (
    "captures", "already_present", "samples", "baselines", "repeated", "older", "placed", "unplaced", "resets",
    "glitches", "set_back", "refused", "noted",
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
    refused: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    noted: int = 0
    notes: list[Problem] = field(default_factory=list)  # left out by rule, nothing wrong

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
