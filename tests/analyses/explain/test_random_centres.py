"""Verdicts on random centres whose truth is known: victims of a culprit, untouched runs, and a worsened one (B9).

The short form asks two centres; `make soak` a hundred, of which at least 90 must be right in each respect.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from iolens.analyses.explain.analysis import RunExplanation
from iolens.api import OpenStore
from iolens.api.explain import explanation
from iolens.simulator.random_centre import CentreKind, RandomCentre, random_centre
from tests.soak import IS_SOAK

CENTRES = 100 if IS_SOAK else 2


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[RunExplanation]]:
    """By what is true of the run, one of each for every centre."""
    answers: dict[str, list[RunExplanation]] = {"victim": [], "untouched": [], "worsened": []}
    for seed in range(CENTRES):
        centre = random_centre(seed, tmp_path_factory.mktemp("centre"))
        with OpenStore(centre.store) as opened:
            for kind, job in asked_of(centre).items():
                answers[kind].append(explanation(opened, job))
    return answers


def asked_of(centre: RandomCentre) -> dict[str, str]:
    untouched = random.Random(centre.seed).choice(centre.untouched)
    return {"victim": centre.victims[0], "untouched": untouched, "worsened": centre.worsened}


def counted(answers: list[RunExplanation]) -> Counter[str]:
    return Counter(answer.verdict for answer in answers)


def test_victims_were_slow_because_of_the_system(verdicts: dict[str, list[RunExplanation]]) -> None:
    assert counted(verdicts["victim"])["system"] >= 0.9 * CENTRES


def test_the_culprit_is_the_first_neighbour_of_its_victims(verdicts: dict[str, list[RunExplanation]]) -> None:
    first = [answer.neighbours[0].executable for answer in verdicts["victim"]]
    assert first.count("tiny.x") >= 0.9 * CENTRES


def test_untouched_runs_are_seldom_said_to_be_victims(verdicts: dict[str, list[RunExplanation]]) -> None:
    """Those that neither a culprit, nor their own pattern, nor background load slowed."""
    assert counted(verdicts["untouched"])["system"] <= 0.05 * CENTRES


def test_a_worsened_run_was_slow_because_of_itself(verdicts: dict[str, list[RunExplanation]]) -> None:
    assert counted(verdicts["worsened"])["own"] >= 0.9 * CENTRES
    named = {line.factor for answer in verdicts["worsened"] for line in answer.own if line.named}
    assert named & {"opens", "mean_access_bytes", "small_access_pct"}


def test_the_load_of_others_is_the_true_one(tmp_path: Path) -> None:
    """The simulator weights it with the disk time of the run, which hardly changes while it lasts."""
    centre = random_centre(7, tmp_path)
    with OpenStore(centre.store) as opened:
        for job in asked_of(centre).values():
            osts = next(planted.osts for planted in centre.workload.planted if planted.job_id == job)
            result = explanation(opened, job)
            assert result.targets == [f"{centre.filesystem}-OST{ost:04x}" for ost in osts]
            others = next(line for line in result.system if line.factor == "fsu_others_pct")
            assert result.method == "job_stats"
            assert others.value == pytest.approx(centre.others_pct[job], rel=0.03)


@pytest.mark.parametrize(
    ("kind", "factor", "share_of"),
    [("two culprits", "fsu_others_pct", "disk_seconds"), ("metadata storm", "mdt_ops_per_s", "metadata_operations")],
)
def test_culprits_of_every_kind_are_named_first(tmp_path: Path, kind: CentreKind, factor: str, share_of: str) -> None:
    """By `blame` in the busiest hour of what they did, and as the neighbours of a run that they slowed."""
    centre = random_centre(20, tmp_path, kind)
    with OpenStore(centre.store) as opened:
        hour = opened.blame(centre.filesystem, busiest="1h", metadata=kind == "metadata storm")
        result = explanation(opened, centre.victims[1])
    assert [line.name for line in hour.who[: len(centre.culprits)]] == [*centre.culprits]
    assert (result.verdict, result.evidence[0].factor) == ("system", factor)
    first = result.neighbours[0]
    assert (first.share_of, first.name in centre.culprits) == (share_of, True)


@pytest.mark.parametrize(("kind", "factor"), [("slow OST", "slowest_ost_ratio"), ("full OST", "fullness_pct")])
def test_an_ost_that_is_slow_or_full_is_named_first(tmp_path: Path, kind: CentreKind, factor: str) -> None:
    """Half of the runs that it slowed are in the history. Before the OST was slow, background load was: the fall of
    performance seems to be three runs earlier. It is named first, beside that load.
    """
    centre = random_centre(20, tmp_path, kind)
    with OpenStore(centre.store) as opened:
        result = explanation(opened, centre.victims[len(centre.victims) // 2])
    first = result.evidence[0]
    assert (result.verdict, first.factor, first.target) == ("system", factor, centre.ill_target)
    assert first.change is not None
    assert abs(first.change.since.timestamp() - centre.culprit_start_s) < 3600
