"""What every kind of study has in common: its points, and how one of them is measured."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

from iolens.benchmarks.studies.plan import StudyPlace, StudyPlan
from iolens.errors import UsageError
from iolens.nearest_names import not_among

Values = dict[str, object]
KINDS: Final = ("sequential", "ior", "latency", "cache", "stripe", "metadata", "imitate")
ASSUMED_BYTES_PER_S: Final = 500e6  # what a run takes before anything was measured
ASSUMED_OPS_PER_S: Final = 2000.0


@dataclass(frozen=True, slots=True)
class StudyPoint:
    """One measurement: it is done or not, never in part.

    `key` names it within its study, the same whenever the plan is read. `bytes_at_once` is the space its files take.
    """

    key: str
    place: StudyPlace
    iteration: int
    values: Mapping[str, Any]  # what the kind needs to run it
    bytes_written: int
    bytes_read: int
    files: int
    bytes_at_once: int
    operations: int = 0  # that cost time however few bytes they move

    @property
    def expected_s(self) -> float:
        """Seconds at an assumed speed."""
        return (self.bytes_written + self.bytes_read) / ASSUMED_BYTES_PER_S + self.operations / ASSUMED_OPS_PER_S


@dataclass(slots=True)
class PointSite:
    """Where a point is measured: a directory of the study's own, in which files are called `data…`.

    `deadline` (of `time.monotonic`) is when the point must have ended.
    """

    directory: Path
    deadline: float = float("inf")
    said: list[str] = field(default_factory=list)

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return self.deadline - time.monotonic()

    def check_time(self) -> None:
        """Break off where the time is up."""
        if self.left_s <= 0:
            raise TimeUp

    def note(self, words: str) -> None:
        """Something the user should know, said once."""
        if words not in self.said:
            self.said.append(words)


class TimeUp(Exception):
    """`max_seconds` are over."""


class StudyKind(Protocol):
    """A kind of study. `parameters` is a frozen dataclass of what can be varied; sizes end in `_bytes`."""

    name: str
    parameters: type

    def check(self, plan: StudyPlan) -> list[str]:
        """Refuse what cannot be done, before anything is written; what the user should know."""

    def points(self, plan: StudyPlan) -> list[StudyPoint]:
        """Every measurement, in the order in which they are made."""

    def run(self, plan: StudyPlan, point: StudyPoint, site: PointSite) -> Iterable[Values]:
        """Measure one point: rows of `benchmark_runs`, with at least `direction`; files made are removed."""


def study_kind(name: str) -> StudyKind:
    """The kind of that name: `KIND` of the module `iolens.benchmarks.studies.NAME_study`."""
    if name not in KINDS:
        raise UsageError(f"{name!r} is no kind of study{not_among(name, KINDS)}")
    kind: StudyKind = import_module(f"iolens.benchmarks.studies.{name}_study").KIND
    return kind


def study_points(plan: StudyPlan) -> list[StudyPoint]:
    """Every measurement of a plan; one that a plan names twice is made once."""
    return list({point.key: point for point in study_kind(plan.kind).points(plan)}.values())


def parameters_of(name: str) -> type | None:
    """The dataclass of a kind's parameters; None where there is no such kind."""
    return study_kind(name).parameters if name in KINDS else None
