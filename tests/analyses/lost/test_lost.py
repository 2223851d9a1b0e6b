"""Core-hours lost against the best quarter of like runs: loops over the same rows, and the findings that pay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolens.analyses.lost import JudgedRun, group_quantile, lost_core_hours
from iolens.api import OpenStore
from iolens.api.lost import lost_hours
from iolens.errors import UsageError
from iolens.findings.rule import Finding
from iolens.run_tables import access_column
from iolens.store.scope import Scope
from iolens.store.store import Store
from iolens.units import GIB, MIB
from tests.analyses.run_rows import fill_runs, job_row, run_row, selected


def made_up(seed: int, count: int = 120) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Runs of three programs and two projects in groups of like runs of different sizes; some without a time."""
    random = np.random.default_rng(seed)
    runs, jobs = [], []
    for number in range(count):
        group = int(random.integers(0, 12))
        moved = (5 + number % 40 if number % 7 == 3 else group % 4 + 1) * GIB + int(random.integers(0, MIB))
        seconds = None if number % 17 == 0 else float(random.uniform(10, 100))
        runs.append(run_row(
            f"r{number:03d}", number, number + 500, job_id=str(number), executable=f"app{group % 3}",
            processes=8 * (1 + group % 2), files=4 + group // 4, write_bytes=moved, slowest_rank_s=seconds,
            user="ada" if group < 6 else "bob",
        ))  # fmt: skip
        cores = None if number % 5 == 0 else 32
        jobs.append(
            job_row(str(number), number, number + 500, project=f"p{group % 2}", cores=cores, user=runs[-1]["user"])
        )
    return runs, jobs


def alike(first: dict[str, Any], group: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Like runs by the definition: sorted by bytes, cut where more than 1.01 times the smallest."""
    same = [run for run in group if all(run[name] == first[name] for name in ("user", "processes", "files"))]
    parts: list[list[dict[str, Any]]] = []
    for run in sorted(same, key=lambda run: run["write_bytes"]):
        if parts and run["write_bytes"] * 100 <= parts[-1][0]["write_bytes"] * 101:
            parts[-1].append(run)
        else:
            parts.append([run])
    return next(part for part in parts if any(run is first for run in part))


def by_hand(runs: list[dict[str, Any]], jobs: list[dict[str, Any]]) -> dict[str, tuple[float, float, Any, int]]:
    """By run: I/O time, what is expected, the history it was compared with, and cores."""
    timed = [run for run in runs if run["slowest_rank_s"] is not None]
    judged = {}
    for run in timed:
        cores = jobs[int(run["run_id"][1:])]["cores"] or run["processes"]
        like = alike(run, timed)
        if len(like) >= 5:
            expected = float(np.percentile([other["slowest_rank_s"] for other in like], 25))
            history: tuple[Any, ...] = ("like", like[0]["run_id"])
        else:
            names = ("user", "executable", "processes")
            kin = [other for other in timed if all(other[name] == run[name] for name in names)]
            if len(kin) < 5:
                continue
            rates = [other["write_bytes"] / other["slowest_rank_s"] for other in kin]
            expected = run["write_bytes"] / float(np.percentile(rates, 75))
            history = ("kin", *(run[name] for name in names))
        judged[run["run_id"]] = (run["slowest_rank_s"], expected, history, cores)
    return judged


@pytest.mark.parametrize("seed", [1, 2])
def test_losses_as_a_brute_force(tmp_path: Path, seed: int) -> None:
    runs, jobs = made_up(seed)
    judged = by_hand(runs, jobs)
    expected = {run: cores * max(0.0, io_s - usual_s) / 3600 for run, (io_s, usual_s, _, cores) in judged.items()}
    relaxed = sum(history[0] == "kin" for _, _, history, _ in judged.values())
    result = lost_core_hours(selected(fill_runs(Store(tmp_path), runs, jobs)))
    timed = sum(run["slowest_rank_s"] is not None for run in runs)
    assert result.core_hours_lost == pytest.approx(sum(expected.values()))
    assert (result.runs, result.runs_compared, result.runs_relaxed) == (120, len(expected), relaxed)
    assert (result.runs_without_history, result.runs_without_time) == (timed - len(expected), 120 - timed)
    assert relaxed > 0
    for line in result.applications:
        members = {run["run_id"] for run in runs if run["executable"] == line.name}
        assert line.core_hours_lost == pytest.approx(sum(value for run, value in expected.items() if run in members))
        assert line.worst_run == max((run for run in expected if run in members), key=lambda run: expected[run])
    for line in result.projects:
        members = {run["run_id"] for run, job in zip(runs, jobs, strict=True) if job["project"] == line.name}
        assert line.core_hours_lost == pytest.approx(sum(value for run, value in expected.items() if run in members))
    order = [line.core_hours_lost or 0.0 for line in result.applications]
    assert order == sorted(order, reverse=True)


def test_quantiles_of_groups_as_numpy_has_them() -> None:
    random = np.random.default_rng(4)
    groups, values = random.integers(0, 20, 200), random.normal(size=200)
    result = group_quantile(groups, values, 0.25)
    for place, group in enumerate(groups):
        members = values[groups == group]
        assert result[place] == pytest.approx(np.percentile(members, 25) if len(members) >= 5 else np.nan, nan_ok=True)


def finding(code: str) -> Finding:
    return Finding(code, "warn", f"{code} was seen", {}, "do other", "a study")


def test_the_fix_that_pays_most_is_that_whose_runs_regain_most(tmp_path: Path) -> None:
    """Of eight like runs two are slow: one by small accesses, one by small accesses and opens. All are misaligned."""
    seconds = [10.0, 10.0, 10.0, 10.0, 10.0, 28.0, 46.0, 82.0]
    runs = [run_row(f"r{k}", k, k + 90, processes=100, files=1, write_bytes=GIB, slowest_rank_s=s)
            for k, s in enumerate(seconds)]  # fmt: skip
    shown = {"r6": ["small-accesses"], "r7": ["many-opens", "small-accesses"]}
    asked: list[list[str]] = []

    def judge(run_ids: Any) -> list[JudgedRun]:
        asked.append(list(run_ids))
        codes = {run_id: ["misaligned", *shown.get(run_id, [])] for run_id in run_ids}
        return [JudgedRun(run_id, None, "app", [finding(code) for code in codes[run_id]]) for run_id in run_ids]

    result = lost_core_hours(selected(fill_runs(Store(tmp_path), runs)), judge=judge)
    assert asked == [["r7", "r6", "r5", "r0", "r1", "r2", "r3", "r4"]]  # those that lost, most first; then their like
    assert result.core_hours_lost == pytest.approx(100 * (18 + 36 + 72) / 3600)
    lines = {fix.code: (fix.runs, fix.core_hours_lost, fix.core_hours_regained, fix.runs_measured)
             for fix in result.fixes}  # fmt: skip
    assert lines == {
        "small-accesses": (2, pytest.approx(3.0), pytest.approx(3.0), 2),  # against 10 s, the median of six without
        "many-opens": (1, pytest.approx(2.0), pytest.approx(2.0), 1),  # against 10 s, of seven
        "misaligned": (3, pytest.approx(3.5), None, 0),  # the fast ones are so, too: nothing shows what it costs
    }
    assert list(lines) == ["small-accesses", "many-opens", "misaligned"]
    assert result.fixes[0].lost_pct == pytest.approx(100 * 108 / 126)
    assert (result.fixes[0].run, result.runs_judged, result.runs_without_findings) == ("r7", 3, 0)
    only_one = lost_core_hours(selected(Store(tmp_path)), judge=judge, most=1)
    assert (only_one.runs_judged, only_one.judged_lost_pct) == (1, pytest.approx(100 * 72 / 126))


@pytest.mark.parametrize("seed", [1, 2])
def test_what_a_fix_regains_as_a_brute_force(tmp_path: Path, seed: int) -> None:
    runs, jobs = made_up(seed, 800)
    random = np.random.default_rng(seed + 10)
    shown = {run["run_id"]: bool(random.random() < 0.3) for run in runs}

    def judge(run_ids: Any) -> list[JudgedRun]:
        return [JudgedRun(run_id, None, None, [finding("bad")] * shown[run_id]) for run_id in run_ids]

    result = lost_core_hours(selected(fill_runs(Store(tmp_path), runs, jobs)), judge=judge)
    judged = by_hand(runs, jobs)
    hours: dict[str, list[float]] = {"like": [], "kin": []}
    for run, (io_s, expected_s, history, cores) in judged.items():
        of_history = {other: line for other, line in judged.items() if line[2] == history}
        drawn = dict(sorted(of_history.items())[:50])
        without = [line[0] / line[1] for other, line in drawn.items() if not shown[other]]
        if shown[run] and io_s > expected_s and len(without) >= 5:
            hours[history[0]].append(cores * max(io_s - float(np.median(without)) * expected_s, 0.0) / 3600)
    measured = [*hours["like"], *hours["kin"]]
    assert min(len(values) for values in hours.values()) > 0
    assert result.fixes[0].core_hours_regained == pytest.approx(sum(measured))
    assert result.fixes[0].runs_measured == len(measured)


def test_findings_are_those_of_the_rules(tmp_path: Path) -> None:
    accesses = {"posix_writes": 5000, "writes": 5000, access_column("write", 1024): 5000, "sequential_writes": 5000}
    runs = [run_row(f"{k:04d}", k, k + 90, files=1, write_bytes=GIB, slowest_rank_s=10.0 + 30 * (k > 4), **accesses)
            for k in range(6)]  # fmt: skip
    fill_runs(Store(tmp_path), runs)
    with OpenStore(str(tmp_path)) as opened:
        result = lost_hours(opened)
        assert "small-accesses" in [fix.code for fix in result.fixes]
        assert result.fixes[0].remedy
        with pytest.raises(UsageError, match="no application run of that kind"):
            lost_hours(opened, Scope("nowhere"))
