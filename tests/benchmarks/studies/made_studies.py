"""Small studies for tests: plans over a place under `tmp_path`, and their folders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from iolens.benchmarks.studies.plan import StudyFolder, StudyLimits, StudyPlace, StudyPlan, new_folder
from iolens.benchmarks.studies.sequential_study import SequentialParameters
from iolens.units import KIB

NO_LIMITS = StudyLimits(max_fullness_pct=100.0)


def made_place(folder: Path, name: str = "scratch") -> StudyPlace:
    """A directory to be measured."""
    (folder / name).mkdir(exist_ok=True)
    return StudyPlace(name, folder / name)


def sequential_plan(*places: StudyPlace, name: str = "small", **changes: Any) -> StudyPlan:
    """Two block sizes, twice each, of a file of 64 KiB."""
    plan = StudyPlan(
        name, "sequential", places, SequentialParameters(64 * KIB, (4 * KIB, 16 * KIB)), repeats=2, limits=NO_LIMITS
    )
    return replace(plan, **changes)


def sequential_folder(folder: Path, **changes: Any) -> StudyFolder:
    """The folder of such a plan, of one place beside it."""
    return new_folder(folder / "study", sequential_plan(made_place(folder), **changes))


def study_directory(folder: StudyFolder) -> Path:
    """The directory that the study makes in its first place."""
    plan = folder.plan()
    return plan.places[0].path / f"iolens-bench-{plan.name}"
