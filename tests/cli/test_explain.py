"""`iolens explain` and `iolens lost`: JSON, words, figures and errors; and their keys in the documentation."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from iolens.analyses.explain.analysis import RunExplanation
from iolens.analyses.lost import LostCoreHours
from iolens.store.store import Store
from tests.analyses.explain.centre import made_up_centre
from tests.analyses.explain.test_explain import VICTIM, levels, worsened
from tests.chosen_calibration import choose_grace
from tests.cli.command import iolens
from tests.test_docs import DOCS, _json_keys

JOB = str(1000 + VICTIM)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("centre")
    centre = made_up_centre(*levels())
    centre.add("jobs", {**centre.tables["jobs"][3], "job_id": "77", "name": "no log"})
    centre.stored(Store(folder))
    choose_grace(folder)
    return folder


def said(store: Path, *arguments: object) -> str:
    done = iolens(*arguments, "--store", store)
    assert done.code == 0, done.err
    return done.out


def test_the_verdict_in_words_stands_first_with_its_evidence(store: Path) -> None:
    words = said(store, "explain", JOB)
    result = json.loads(said(store, "explain", JOB, "--format", "json"))
    fsu = result["system"][0]
    first = words.splitlines()[0]
    assert first.startswith(
        f"app, job {JOB} of ada: slow because of the system: the disks of its OSTs were {fsu['value']:.3g} % busy for"
        f" others (more than in all of 17 like runs; performance falls with it, ρ = −{-fsu['rho']:.2f})"
    )
    assert f"{result['core_hours_lost']:.3g} core-hours lost" in words
    assert "OSTs that it used, by job_stats: scratch-OST0000, scratch-OST0001, scratch-OST0002 and" in words
    assert len(words.splitlines()) <= 25


def test_json_has_the_keys_that_are_promised(store: Path) -> None:
    result = json.loads(said(store, "explain", JOB, "--format", "json"))
    promised = {"run", "verdict", "slow", "performance", "own", "system", "neighbours", "core_hours_lost", "history"}
    assert promised <= set(result)
    assert {"factor", "value", "percentile", "rho", "p"} <= set(result["own"][0]) & set(result["system"][0])
    assert {"value", "unit", "history_percentile"} <= set(result["performance"])
    assert result["history"] == {"runs": 17, "relaxed": False, "program_runs": 17, "left_out": 0, "after": 0}


@pytest.mark.parametrize(("result", "page"), [(RunExplanation, "explain.md"), (LostCoreHours, "explain.md")])
def test_every_key_is_documented(result: type, page: str) -> None:
    named = set(re.findall(r"`(\w+)`", (DOCS / page).read_text("utf-8")))
    assert sorted(set(_json_keys(result)) - named) == []


def test_figures_are_drawn(store: Path, tmp_path: Path) -> None:
    assert said(store, "explain", JOB, "--figure", "list").split() == ["timeline", "factors"]
    figures = [part for name in ("timeline", "factors") for part in ("--figure", f"{name}={tmp_path / name}.svg")]
    said(store, "explain", JOB, *figures)
    timeline, factors = ((tmp_path / f"{name}.svg").read_text("utf-8") for name in ("timeline", "factors"))
    assert "load of its targets" in timeline
    assert "FSU of others (%)" in factors
    assert "opens" not in factors  # never varies
    said(store, "explain", "77", "--figure", tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 0


def test_a_job_without_a_log_says_what_is_missing(store: Path) -> None:
    words = said(store, "explain", "77")
    assert words.startswith("job, job 77 of ada: no Darshan log of job 77 is stored: whether it was slow, and what it")
    assert "Not known: bytes moved, opens," in words


def test_an_unknown_name_is_one_line_with_the_nearest(store: Path) -> None:
    done = iolens("explain", "10177", "--store", store)
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(r"iolens: no run, log or job is called '10177'; did you mean .*1017.*\?\n", done.err)


def test_own_causes_and_what_is_not_explained_in_words(tmp_path: Path) -> None:
    for others, words in (
        (6, "slow because of what it did itself: its mean access is 10 KiB (less than in all of 20 like runs;"),
        (0, "slow, and not explained. Unusual, but not known to make runs slower: its mean access is 10 KiB (0th"),
    ):
        folder = tmp_path / str(others)
        worsened(others).stored(Store(folder))
        assert f"app, job 1020 of ada: {words}" in said(folder, "explain", "1020").splitlines()[0]


def test_a_table_for_programs(store: Path) -> None:
    lines = said(store, "explain", JOB, "--format", "csv").splitlines()
    assert lines[0] == "kind,factor,value,percentile,rho,p_holm,named"
    assert len(lines) == 13


def test_what_was_lost_and_by_runs_with_which_finding(store: Path, tmp_path: Path) -> None:
    result = json.loads(said(store, "lost", "--format", "json"))
    words = said(store, "lost", "--figure", f"fixes={tmp_path / 'fixes.svg'}", "--figure", tmp_path / "lost.svg")
    lost, first = f"{result['core_hours_lost']:.3g}", result["fixes"][0]
    if first["core_hours_regained"]:
        assert f"would pay most: about {first['core_hours_regained']:.3g} core-hours" in words.splitlines()[0]
    else:
        hours, share = f"{first['core_hours_lost']:.3g}", f"({first['lost_pct']:.1f} %)"
        assert f"; {hours} of them {share} by runs with {first['code']}" in words.splitlines()[0]
    assert words.startswith(f"{lost} core-hours lost to slow I/O; ")
    assert "30 runs, 2023-11-15 00:00:00 to" in words
    assert result["applications"][0]["worst_run"].startswith(f"{VICTIM}aa")
    assert "core-hours lost" in (tmp_path / "lost.svg").read_text("utf-8")
    assert iolens("lost", "--target", "OST0000", "--store", store).code == 2
