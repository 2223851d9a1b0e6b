"""Random centres: the same for the same seed, cheap, and their runs are slow for the reasons they state."""

from __future__ import annotations

import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolens.analyses.utilization.analysis import utilization
from iolens.api import OpenStore
from iolens.schema import DIRECTIONS
from iolens.simulator.job_counts import SLOWDOWN
from iolens.simulator.random_centre import CentreKind, RandomCentre, random_centre
from iolens.simulator.workload import OPERATIONS
from iolens.store.store import Store
from iolens.units import MIB
from tests.agent.truth import rows
from tests.soak import IS_SOAK

SEEDS = range(60 if IS_SOAK else 6)
LEAST_RHO = 0.38  # of 52 runs: p = 0.0055


@pytest.fixture(scope="module")
def centres(tmp_path_factory: pytest.TempPathFactory) -> list[RandomCentre]:
    folder = tmp_path_factory.mktemp("centres")
    return [random_centre(seed, folder / str(seed)) for seed in SEEDS]


def runs_of(centre: RandomCentre) -> dict[str, dict[str, Any]]:
    return {row["job_id"]: row for row in rows(Path(centre.store), "runs")}


def mib_per_s(row: dict[str, Any]) -> float:
    return float((row["read_bytes"] + row["write_bytes"]) / MIB / row["slowest_rank_s"])


def rho(left: list[float], right: list[float]) -> float:
    """Spearman's, of numbers without ties."""
    return float(np.corrcoef([np.argsort(np.argsort(values)) for values in (left, right)])[0, 1])


def test_a_seed_is_a_centre(centres: list[RandomCentre], tmp_path: Path) -> None:
    again = random_centre(1, tmp_path / "again")
    names = [field.name for field in fields(again) if field.name != "store"]
    assert {name: getattr(again, name) for name in names} == {name: getattr(centres[1], name) for name in names}
    for table in ("target_io", "target_sizes", "job_io", "metadata_ops", "target_capacity", "jobs", "runs"):
        assert rows(tmp_path / "again", table) == rows(Path(centres[1].store), table), table
    assert len({centre.workload.digest for centre in centres}) == len(centres)


def test_a_centre_is_cheap(tmp_path: Path, centres: list[RandomCentre]) -> None:
    """0.45 s of processor each on the machine it was written on; here with a margin for a busy one."""
    spent = []
    for seed in range(3):
        began = time.process_time()
        random_centre(seed, tmp_path / str(seed))
        spent.append(time.process_time() - began)
    assert min(spent) < 0.7, spent


def test_disk_seconds_are_what_job_stats_say(centres: list[RandomCentre]) -> None:
    for centre in centres[:2]:
        by_job = dict.fromkeys(centre.job_disk_s, 0.0)
        operations = dict.fromkeys(centre.job_disk_s, 0)
        for row in rows(Path(centre.store), "job_io"):
            assert row["duration_s"] == 60
            if row["target_kind"] == "mdt":
                operations[row["job_id"]] += sum(row[name] for name in OPERATIONS)
                continue
            for direction in DIRECTIONS:
                cost = centre.workload.disks.of(direction)
                by_job[row["job_id"]] += cost.counted_seconds(row[f"{direction}_ops"], row[f"{direction}_bytes"])
        assert by_job == pytest.approx(dict(centre.job_disk_s))
        assert operations == centre.metadata_operations
        assert max(by_job, key=by_job.__getitem__) == centre.culprit_job_id
        culprit = centre.workload.planted[0]
        assert culprit.osts is not None
        expected_s = culprit.level_pct / 100 * (culprit.end_s - culprit.start_s) * len(culprit.osts)
        assert by_job[centre.culprit_job_id] == pytest.approx(expected_s, rel=1e-4)  # nothing was held back


def test_utilization_is_that_of_all_jobs(centres: list[RandomCentre]) -> None:
    centre = centres[0]
    result = utilization(Store(centre.store).select(), calibration=centre.workload.disks)
    whole_s = (centre.end_s - centre.start_s) * centre.workload.osts
    assert result.mean_fsu_pct == pytest.approx(100 * sum(centre.job_disk_s.values()) / whole_s, rel=1e-9)
    with OpenStore(centre.store) as opened:
        assert opened.analyse("utilization").calibration.name == "simulated-centre"


def test_runs_are_alike_but_for_their_pattern(centres: list[RandomCentre]) -> None:
    for centre in centres:
        runs = runs_of(centre)
        kinds = (*centre.victims, *centre.untouched, *centre.loaded, centre.worsened)
        assert sorted(kinds) == sorted(runs) == sorted(centre.run_ids)
        assert {job_id: row["run_id"] for job_id, row in runs.items()} == centre.run_ids
        assert len(centre.untouched) >= 20
        assert len({(row["user"], row["executable"], row["processes"], row["files"]) for row in runs.values()}) == 1
        for name in ("read_bytes", "write_bytes"):
            moved = [row[name] for row in runs.values()]
            assert max(moved) <= 1.01 * min(moved)
        for row in runs.values():
            accesses = [row[name] for name in row if "_accesses_" in name]
            assert sum(accesses) == row["reads"] + row["writes"]
            assert row["slowest_rank_s"] < row["duration_s"]


def test_job_and_run_moved_the_same_bytes(centres: list[RandomCentre]) -> None:
    runs, sums = runs_of(centres[0]), dict.fromkeys(runs_of(centres[0]), 0)
    for row in rows(Path(centres[0].store), "job_io"):
        if row["job_id"] in sums and row["target_kind"] == "ost":
            sums[row["job_id"]] += row["read_bytes"] + row["write_bytes"]
    assert sums == {job_id: row["read_bytes"] + row["write_bytes"] for job_id, row in runs.items()}
    jobs = {row["job_id"]: row for row in rows(Path(centres[0].store), "jobs")}
    assert set(jobs) >= set(centres[0].job_disk_s)
    assert (jobs[centres[0].culprit_job_id]["user"], jobs[centres[0].culprit_job_id]["name"]) == ("mallory", "tiny.x")


def test_victims_run_beside_the_culprit_and_others_do_not(centres: list[RandomCentre]) -> None:
    for centre in centres:
        runs = runs_of(centre)
        for job_id, row in runs.items():
            start_s, end_s = row["start"].timestamp(), row["time"].timestamp()
            is_beside = start_s < centre.culprit_end_s and centre.culprit_start_s < end_s
            assert is_beside == (job_id in centre.victims)
        least_pct = min(centre.others_pct[job_id] for job_id in centre.victims)
        assert least_pct > 40
        heavy_pct = min(centre.others_pct[job_id] for job_id in centre.loaded)
        assert max(centre.others_pct[job_id] for job_id in centre.loaded) < 40
        assert max(centre.others_pct[job_id] for job_id in centre.untouched) < heavy_pct
        assert least_pct > np.quantile(list(centre.others_pct.values()), 0.9)


def test_slow_runs_are_slow_for_their_reason(centres: list[RandomCentre]) -> None:
    for centre in centres:
        runs = runs_of(centre)
        done = {job_id: mib_per_s(row) for job_id, row in runs.items()}
        slow = np.quantile(list(done.values()), 0.25)
        assert max(done[job_id] for job_id in (*centre.victims, centre.worsened)) < slow
        assert centre.others_pct[centre.worsened] < np.median(list(centre.others_pct.values()))
        ids = list(runs)
        accesses = [float(runs[job_id]["reads"] + runs[job_id]["writes"]) for job_id in ids]
        speeds = [done[job_id] for job_id in ids]
        assert rho([centre.others_pct[job_id] for job_id in ids], speeds) < -LEAST_RHO
        assert rho(accesses, speeds) < -LEAST_RHO
        assert runs[centre.worsened]["opens"] > 8 * np.median([row["opens"] for row in runs.values()])


def test_the_load_of_others_explains_all_but_noise(centres: list[RandomCentre]) -> None:
    for centre in centres:
        for job_id, row in runs_of(centre).items():
            osts = row["osts"]
            own_s = centre.job_disk_s[job_id] / osts
            expected_s = own_s * (1 + SLOWDOWN * centre.others_pct[job_id] / 100)
            assert row["slowest_rank_s"] == pytest.approx(expected_s, rel=0.2)


@pytest.mark.parametrize("kind", ["slow OST", "full OST"])
def test_an_ost_that_is_ill_slows_all_runs_from_then_on(tmp_path: Path, kind: CentreKind) -> None:
    """Its own I/Os take longer, or its free blocks are gone; no job has anything to do with it."""
    centre = random_centre(3, tmp_path, kind)
    runs = runs_of(centre)
    assert (centre.culprits, centre.kind) == ((), kind)
    assert centre.victims == tuple(sorted(runs))[-len(centre.victims) :]
    usual = [job_id for job_id in runs if job_id not in (*centre.victims, centre.worsened)]
    assert max(mib_per_s(runs[job]) for job in centre.victims) < 0.9 * min(mib_per_s(runs[job]) for job in usual)
    ill = [row for row in rows(tmp_path, "target_io") if row["target"] == centre.ill_target]
    of_write = [(row["start"].timestamp() >= centre.culprit_start_s, row["write_wait_us"] / row["write_ops"])
                for row in ill if row["write_ops"]]  # fmt: skip
    before, after = (np.median([us for is_later, us in of_write if is_later == later]) for later in (False, True))
    assert (after > 2 * before) == (kind == "slow OST")
    full = {row["time"].timestamp(): 100 * row["used_bytes"] / row["total_bytes"]
            for row in rows(tmp_path, "target_capacity") if row["target"] == centre.ill_target}  # fmt: skip
    later = [pct for time_s, pct in full.items() if time_s >= centre.culprit_start_s]
    assert (min(later) > 92) == (kind == "full OST")
    assert max(pct for time_s, pct in full.items() if time_s < centre.culprit_start_s - 3600) < 80


def test_a_storm_of_metadata_operations_slows_opens(tmp_path: Path) -> None:
    centre = random_centre(2, tmp_path, "metadata storm")
    runs = runs_of(centre)
    did = centre.metadata_operations
    assert max(did, key=did.__getitem__) == centre.culprit_job_id
    assert centre.job_disk_s[centre.culprit_job_id] == 0
    others = centre.others_beside(centre.victims[0], None)
    assert others[centre.culprit_job_id] > 0.6 * sum(others.values())
    open_s = {job_id: row["metadata_s"] / row["opens"] for job_id, row in runs.items()}
    assert min(open_s[job_id] for job_id in centre.victims) > 1.5 * max(open_s[job_id] for job_id in centre.untouched)


def test_two_culprits_are_named_in_the_order_of_what_they_did(tmp_path: Path) -> None:
    centre = random_centre(1, tmp_path, "two culprits")
    in_order = sorted(centre.job_disk_s, key=centre.job_disk_s.__getitem__, reverse=True)
    assert [*centre.culprits] == [job_id for job_id in in_order if job_id in centre.culprits]
    assert len(centre.culprits) == 2
    osts = next(job.osts for job in centre.workload.planted if job.job_id == centre.victims[0])
    beside = centre.others_beside(centre.victims[0], osts)
    assert {*sorted(beside, key=beside.__getitem__)[-2:]} == {*centre.culprits}
