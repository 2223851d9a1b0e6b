"""kill -9 of a study at random times, and what must hold after each kill and at the end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from iolens.benchmarks.studies.plan import StudyFolder, StudyPlan, new_folder
from iolens.benchmarks.studies.run import PREFIX, clean_study
from iolens.benchmarks.studies.sequential_study import KIND, SequentialParameters
from iolens.units import KIB, MIB
from tests.benchmarks.studies.made_studies import NO_LIMITS, made_place

LONGEST_S = 120.0
LONGEST_LIFE_S = 0.5  # between a point and the kill after it


class SurvivedKills(NamedTuple):
    """What a study went through."""

    kills: int
    leftovers: int  # kills after which a directory was there
    points: int


def long_plan(folder: Path, name: str, repeats: int) -> StudyPlan:
    """Two places and two block sizes; a point takes a few milliseconds."""
    places = made_place(folder, "scratch"), made_place(folder, "home")
    parameters = SequentialParameters(4 * MIB, (4 * KIB, 64 * KIB))
    return StudyPlan(name, "sequential", places, parameters, repeats, NO_LIMITS)


def started(folder: StudyFolder) -> subprocess.Popen[bytes]:
    """`iolens bench run FOLDER`, which says what is to come, then each point before it is measured."""
    command = [sys.executable, "-m", "iolens.cli.main", "bench", "run", str(folder.path)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def await_points(process: subprocess.Popen[bytes], points: int) -> None:
    """Wait until it is about to measure so many points."""
    assert process.stderr is not None
    for _ in range(1 + points):
        process.stderr.readline()


def check_kills(base: Path, kills: int, seed: int) -> SurvivedKills:
    """Kill that often, check what is left each time, resume until it is complete, and count."""
    chance = random.Random(seed)
    folder = new_folder(base / "study", long_plan(base, f"killed-{seed}", 8 * kills))
    leftovers = cleaned = killed = 0
    for _ in range(kills):
        if not _kill(folder, chance):
            break
        killed += 1
        there = _directories(folder)
        assert there <= set(folder.journal().directories), "a directory that is not on record"
        leftovers += bool(there)
        if there and chance.random() < 0.3:
            gone, left = clean_study(folder)
            assert (set(gone), left) == (there, [])
            cleaned += 1
    _finish(folder)
    _check_complete(folder)
    assert not leftovers or cleaned or killed < 10
    return SurvivedKills(killed, leftovers, len(folder.journal().rows))


def _kill(folder: StudyFolder, chance: random.Random) -> bool:
    """Whether it was killed before it had ended: at once, or some time after it began to measure."""
    with started(folder) as process:
        if chance.random() < 0.8:
            await_points(process, 1)
        time.sleep(chance.uniform(0.0, LONGEST_LIFE_S) ** 2)
        if process.poll() is not None:
            return False
        os.kill(process.pid, signal.SIGKILL)
    return process.returncode == -signal.SIGKILL


def _finish(folder: StudyFolder) -> None:
    with started(folder) as process:
        _, said = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, said


def _directories(folder: StudyFolder) -> set[Path]:
    return {path for place in folder.plan().places for path in place.path.iterdir()}


def _check_complete(folder: StudyFolder) -> None:
    """Every point exactly once, each with its write and its read; no file is left, and none is on record."""
    lines = [json.loads(line) for line in folder.runs_path.read_text().splitlines()]
    counts = Counter(line["point"] for line in lines if "point" in line)
    assert counts == Counter(point.key for point in KIND.points(folder.plan()))
    runs = Counter(row["run_id"] for line in lines for row in line.get("rows", ()))
    assert set(runs.values()) == {1}
    assert len(runs) == 2 * len(counts)
    assert folder.journal().directories == []
    assert _directories(folder) == set()
    assert all(Path(line["directory"]).name.startswith(PREFIX) for line in lines if "directory" in line)
