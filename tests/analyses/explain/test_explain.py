"""Was it me (B9): factors, percentiles, ρ, Holm and verdicts of made-up centres against loops over the same rows."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from iolens.analyses.explain import history
from iolens.analyses.explain.analysis import RunExplanation
from iolens.analyses.explain.results import OWN, SYSTEM
from iolens.api import OpenStore
from iolens.errors import UsageError
from iolens.models.transaction_time import GRACE_2012
from iolens.run_tables import RUN_FILES
from iolens.schema import size_column
from iolens.store.duckdb_engine import DuckDBEngine
from iolens.store.rows import to_arrow
from iolens.store.scope import Scope
from iolens.store.store import Store
from iolens.units import MIB
from iolens.views.explain import neighbour_words, notes
from tests.analyses.explain.centre import (
    EVERY_S,
    MDT,
    MOVED,
    OSTS,
    RUN_S,
    SMALL,
    TICK_S,
    Centre,
    made_up_centre,
    run_of,
)
from tests.analyses.run_rows import T0_S, job_row
from tests.analyses.runs.test_ost_times import on_osts

RUNS = 30
VICTIM = 17
COST_S = GRACE_2012.write.seconds(MIB)


def levels(seed: int = 3, count: int = RUNS) -> tuple[list[float], list[float]]:
    """Loads of others and I/O times that grow with them; one run meets many times the load."""
    random = np.random.default_rng(seed)
    others = random.uniform(50, 600, count).tolist()
    others[VICTIM % count] = 4000.0
    return others, [60 + 0.1 * load + random.normal(0, 3) for load in others]


def asked(folder: Path, which: str, scope: Scope | None = None, **options: Any) -> RunExplanation:
    with OpenStore(str(folder)) as opened:
        return opened.explain(which, scope, **options)


@pytest.fixture(scope="module")
def centre() -> Centre:
    return made_up_centre(*levels())


@pytest.fixture(scope="module")
def folder(centre: Centre, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("centre")
    centre.stored(Store(folder))
    return folder


@pytest.fixture(scope="module")
def victim(folder: Path) -> RunExplanation:
    return asked(folder, str(1000 + VICTIM))


def values(result: RunExplanation) -> dict[str, Any]:
    return {line.factor: line.value for line in (*result.own, *result.system)}


def speeds(centre: Centre) -> list[float]:
    """MiB/s per node of two nodes."""
    return [run["write_bytes"] / MIB / run["slowest_rank_s"] / 2 for run in centre.tables["runs"]]


def by_hand(centre: Centre) -> dict[str, list[float]]:
    """System factors of every run."""
    own = MOVED // MIB // centre.others_ios[0].size
    operations = [0.0] * len(centre.others_ios)
    for row in centre.tables["metadata_ops"]:
        place = int((row["start"] / 1e6 - T0_S) // 7200)
        operations[place] += row["open"] + row["close"] - 40
    fullness = []
    for run in centre.tables["runs"]:
        middle = (run["start"] + run["time"]) / 2
        readings = centre.tables["target_capacity"]
        nearest = min(abs(row["time"] - middle) for row in readings)
        near = [row for row in readings if abs(row["time"] - middle) == nearest]
        fullness.append(max(100 * row["used_bytes"] / row["total_bytes"] for row in near))
    loads = [[float((others[:, target] + own).sum()) for target in range(len(OSTS))] for others in centre.others_ios]
    return {
        "fsu_others_pct": [100 * float(ios.sum()) * COST_S / (ios.size * TICK_S) for ios in centre.others_ios],
        "mdt_ops_per_s": [count / RUN_S for count in operations],
        "imbalance": [statistics.stdev(load) / statistics.fmean(load) for load in loads],
        "fullness_pct": fullness,
        "slowest_ost_ratio": [max(times) / statistics.median(sorted(times)[:-1]) for times in centre.io_us],
        "coverage_factor": [MOVED / MIB / sum(load) for load in loads],
    }


def test_system_factors_of_the_run_are_those_of_the_definition(centre: Centre, victim: RunExplanation) -> None:
    expected = {name: line[VICTIM] for name, line in by_hand(centre).items()}
    assert {name: values(victim)[name] for name in SYSTEM} == pytest.approx(expected)
    assert (victim.method, victim.targets, victim.targets_from) == ("job_stats", list(OSTS), "job_stats")
    assert victim.not_known == []


def test_percentiles_rho_and_holm_as_a_brute_force(centre: Centre, victim: RunExplanation) -> None:
    speed = speeds(centre)
    history = range(VICTIM)
    columns = by_hand(centre)
    tests = {name: stats.spearmanr([columns[name][place] for place in history], [speed[place] for place in history])
             for name in SYSTEM}  # fmt: skip
    in_order = sorted(SYSTEM, key=lambda name: tests[name].pvalue)
    largest = 0.0
    for step, name in enumerate(in_order):
        line = next(line for line in victim.system if line.factor == name)
        below = sum(columns[name][place] < columns[name][VICTIM] for place in history)
        equal = sum(columns[name][place] == columns[name][VICTIM] for place in history)
        largest = max(largest, min(1.0, (len(SYSTEM) - step) * tests[name].pvalue))
        assert line.percentile == pytest.approx(100 * (below + equal / 2) / len(history))
        assert (line.rho, line.p) == pytest.approx((tests[name].statistic, tests[name].pvalue))
        assert line.p_holm == pytest.approx(largest)
        assert line.rho_runs == len(history)


def test_a_run_among_many_neighbours_was_slow_because_of_the_system(centre: Centre, victim: RunExplanation) -> None:
    speed = speeds(centre)
    others = speed[:VICTIM]
    assert (victim.verdict, victim.slow) == ("system", True)
    assert victim.performance.value == pytest.approx(speed[VICTIM])
    assert (victim.performance.unit, victim.performance.history_percentile) == ("MiB/s/CN", 0.0)
    assert victim.performance.first_quartile == pytest.approx(np.percentile(others, 25))
    assert next(line.factor for line in victim.system if line.named) == "fsu_others_pct"
    assert not any(line.named for line in victim.own)
    assert (victim.history.runs, victim.history.relaxed, victim.history.program_runs) == (VICTIM, False, VICTIM)
    assert victim.history.after == 0


def test_the_neighbour_has_its_share_of_the_disk_time(centre: Centre, victim: RunExplanation) -> None:
    others = int(centre.others_ios[VICTIM].sum())
    own = MOVED // MIB // centre.others_ios[VICTIM].size * centre.others_ios[VICTIM].size
    assert [(line.name, line.share_pct) for line in victim.neighbours] == [
        ("7", pytest.approx(100 * others / (own + others)))
    ]


def test_ids_of_job_stats_may_hold_more_than_the_job(tmp_path: Path, victim: RunExplanation) -> None:
    """Steps of a job, as `1017.0`, are the job's own."""
    centre = made_up_centre(*levels())
    for row in centre.tables["job_io"]:
        row["job_id"] = f"{row['job_id']}.0" if row["job_id"] != "7" else "7"
    result = asked(stored(tmp_path, centre), str(1000 + VICTIM))
    assert result.method == "job_stats"
    assert values(result)["fsu_others_pct"] == pytest.approx(values(victim)["fsu_others_pct"])
    assert [line.name for line in result.neighbours] == ["7"]


def test_core_hours_lost_are_cores_times_what_is_beyond_the_median(centre: Centre, victim: RunExplanation) -> None:
    seconds = [run["slowest_rank_s"] for run in centre.tables["runs"]]
    median_s = statistics.median(seconds[:VICTIM])
    assert (victim.cores, victim.history_median_io_time_s) == (64, pytest.approx(median_s))
    assert victim.core_hours_lost == pytest.approx(64 * (seconds[VICTIM] - median_s) / 3600)


def test_of_many_like_runs_the_nearest_in_time_are_taken(
    folder: Path, victim: RunExplanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By number, and by their hours: of 17 runs of ten minutes twelve have two hours."""
    monkeypatch.setattr(history, "MOST_COMPARED", 10)
    result = asked(folder, str(1000 + VICTIM))
    assert (result.history.runs, result.history.left_out) == (10, 7)
    assert result.series is not None
    numbers = (result.series.start_us / 1e6 - T0_S) // EVERY_S
    assert numbers.tolist() == list(range(VICTIM - 10, VICTIM + 1))
    monkeypatch.setattr(history, "MOST_COMPARED", 1000)
    monkeypatch.setattr(history, "MOST_HOURS", 2)
    monkeypatch.setattr(history, "LEAST_TAKEN", 5)
    assert asked(folder, str(1000 + VICTIM)).history.runs == 12
    monkeypatch.setattr(history, "LEAST_TAKEN", 15)
    assert asked(folder, str(1000 + VICTIM)).history.runs == 15
    assert victim.history.left_out == 0


def test_a_run_as_fast_as_its_like_is_not_slow(centre: Centre, folder: Path) -> None:
    speed = speeds(centre)
    fastest = speed.index(max(speed[10:]))
    result = asked(folder, str(1000 + fastest))
    assert (result.verdict, result.slow, result.core_hours_lost) == ("not slow", False, 0.0)
    assert not any(line.named for line in (*result.own, *result.system))


def test_own_factors_by_hand(victim: RunExplanation) -> None:
    expected = {"bytes": MOVED, "opens": 32, "mean_access_bytes": 4 << 20, "small_access_pct": 0.0,
                "sequential_pct": 100.0, "strategy": "shared"}  # fmt: skip
    assert {name: values(victim)[name] for name in OWN} == expected
    assert [line.rho for line in victim.own] == [None] * len(OWN)  # nothing of it varies


def stored(tmp_path: Path, centre: Centre) -> Path:
    centre.stored(Store(tmp_path))
    return tmp_path


def worsened(others_of_program: int, seed: int = 5) -> Centre:
    """Run 20 made small accesses and took three times as long; so did other runs of the program, which moved less."""
    others, io_s = levels(seed)
    others[VICTIM] = 300.0
    io_s[20], io_s[VICTIM] = 3 * max(io_s), 90.0
    centre = made_up_centre(others, io_s, small={20: SMALL})
    for number in range(others_of_program):
        moved = MOVED // 4
        start_s = (number - 50) * EVERY_S
        run = run_of(100 + number, (250 + number) / 4, SMALL, moved, start_s=start_s, files=9)
        centre.add("runs", run)
        centre.add("jobs", job_row(str(1100 + number), start_s, start_s + RUN_S, nodes=2))
    return centre


def test_small_accesses_that_are_known_to_be_slow_explain_a_run(tmp_path: Path) -> None:
    """Like runs all make large accesses; that small ones are slow is known of other runs of the program."""
    result = asked(stored(tmp_path, worsened(6)), "1020")
    assert (result.verdict, result.history.relaxed, result.history.runs) == ("own", False, 20)
    assert [line.factor for line in result.own if line.named] == ["mean_access_bytes", "small_access_pct"]
    small = next(line for line in result.own if line.factor == "small_access_pct")
    assert (small.value, small.percentile, small.rho_runs) == (100.0, 100.0, 20 + 6)
    assert small.rho is not None
    assert small.rho < 0


def test_a_change_that_no_other_run_shows_is_not_called_a_cause(tmp_path: Path) -> None:
    result = asked(stored(tmp_path, worsened(0)), "1020")
    assert (result.verdict, result.slow) == ("unexplained", True)
    small = next(line for line in result.own if line.factor == "small_access_pct")
    assert (small.percentile, small.rho, small.named) == (100.0, None, False)


def test_few_like_runs_are_relaxed_to_runs_of_the_program(tmp_path: Path) -> None:
    centre = worsened(4)
    centre.add("runs", run_of(110, 70.0, SMALL, MOVED // 4, start_s=(RUNS + 1) * EVERY_S, files=9))
    result = asked(stored(tmp_path, centre), "1110")
    assert (result.history.relaxed, result.history.runs, result.history.after) == (True, RUNS + 4, 0)


def test_four_like_runs_are_too_little(tmp_path: Path) -> None:
    others, io_s = levels(count=5)
    folder = stored(tmp_path, made_up_centre(others, io_s))
    result = asked(folder, "1002")
    assert (result.verdict, result.slow, result.history.runs) == ("too little history", None, 4)
    assert result.core_hours_lost is None
    assert all(line.percentile is None and line.rho is None for line in (*result.own, *result.system))
    assert values(result)["fsu_others_pct"] is not None


def test_times_are_widened_to_whole_intervals_of_job_stats(tmp_path: Path, victim: RunExplanation) -> None:
    """A run that begins and ends within an interval meets the same load as one that begins and ends with it."""
    centre = made_up_centre(*levels())
    for run in centre.tables["runs"]:
        run["start"] += 17_000_000
        run["time"] -= 23_000_000
    result = asked(stored(tmp_path, centre), str(1000 + VICTIM))
    assert values(result)["fsu_others_pct"] == pytest.approx(values(victim)["fsu_others_pct"])
    assert values(result)["mdt_ops_per_s"] == pytest.approx(values(victim)["mdt_ops_per_s"])


def test_without_job_stats_the_own_share_is_by_bytes(tmp_path: Path) -> None:
    """Intervals at the ends count by the share of them that is within the run."""
    centre = made_up_centre(*levels(), job_stats=False)
    for run in centre.tables["runs"]:
        run["start"] += 17_000_000
        run["time"] -= 23_000_000
    result = asked(stored(tmp_path, centre), str(1000 + VICTIM))
    run = centre.tables["runs"][VICTIM]
    busy_s = moved = seconds = 0.0
    for sizes, io in zip(centre.tables["target_sizes"], centre.tables["target_io"], strict=True):
        shared = min(sizes["time"], run["time"]) - max(sizes["start"], run["start"])
        if shared > 0:
            share = shared / (sizes["time"] - sizes["start"])
            busy_s += share * sizes[size_column("write", MIB)] * COST_S
            moved += share * io["write_bytes"]
            seconds += share * sizes["duration_s"]
    own = run["write_bytes"] / moved
    assert values(result)["coverage_factor"] == pytest.approx(own)
    assert values(result)["fsu_others_pct"] == pytest.approx(100 * busy_s * (1 - own) / seconds)
    assert (result.method, result.verdict) == ("overlap", "system")
    assert (result.targets, result.targets_known, result.targets_from) == (list(OSTS), False, None)
    operations = [row for row in centre.tables["metadata_ops"] if run["start"] - 17e6 <= row["start"] < run["time"]]
    assert values(result)["mdt_ops_per_s"] == pytest.approx(
        sum(row["open"] + row["close"] for row in operations) / RUN_S, rel=0.01
    )


def on_first_ost(centre: Centre) -> list[dict[str, Any]]:
    """Lustre records of files on the first OST alone."""
    return [
        {"time": run["time"], "start": run["start"], "date": run["date"], "source": "made-up", "run_id": run["run_id"],
         "module": "LUSTRE", "record_id": 1, "rank": -1, "osts": "0"}
        for run in centre.tables["runs"]
    ]  # fmt: skip


def test_only_the_osts_of_its_files_count_where_the_log_names_them(tmp_path: Path) -> None:
    centre = made_up_centre(*levels())
    folder = stored(tmp_path, centre)
    Store(folder).append("run_files", to_arrow(RUN_FILES, on_first_ost(centre)))
    result = asked(folder, str(1000 + VICTIM))
    ios = centre.others_ios[VICTIM][:, 0]
    assert (result.targets, result.targets_from) == ([OSTS[0]], "log")
    assert values(result)["fsu_others_pct"] == pytest.approx(100 * float(ios.sum()) * COST_S / (ios.size * TICK_S))
    assert values(result)["imbalance"] is None
    assert [item.factor for item in result.not_known] == ["imbalance"]
    assert (result.system[3].target, result.system[4].target) == (OSTS[0], OSTS[0])


def test_files_on_a_slow_ost_make_it_the_system_whatever_else_is_known(tmp_path: Path) -> None:
    """20 files of one rank each on four idle OSTs; those on the third take twelve times as long."""
    calm, io_s = levels()
    calm[VICTIM], io_s[VICTIM] = 100.0, 900.0
    centre = made_up_centre(calm, io_s)
    run = centre.tables["runs"][VICTIM]
    own = {"source": "made-up", **{name: run[name] for name in ("time", "start", "date", "run_id")}}
    files = [{**row, **own} for row in on_osts()]
    folder = stored(tmp_path, centre)
    without = asked(folder, str(1000 + VICTIM))
    assert (without.verdict, without.slow_osts) == ("unexplained", [])
    Store(folder).append("run_files", to_arrow(RUN_FILES, files))
    result = asked(folder, str(1000 + VICTIM))
    (slow,) = result.slow_osts
    assert (slow.evidence["ost"], slow.evidence["files"]) == (2, 5)
    assert result.verdict == "system"


def test_osts_that_job_stats_name_stand_in_for_those_of_the_log(tmp_path: Path) -> None:
    """Jobs used two OSTs, and a third for less than 1 % of their disk time."""
    centre = made_up_centre(*levels())
    for row in centre.tables["job_io"]:
        share = {OSTS[2]: 0, OSTS[3]: 200}.get(row["target"], 1)
        if row["job_id"] != "7" and row["target_kind"] == "ost" and share != 1:
            row["write_ops"], row["write_bytes"] = (
                n // share if share else 0 for n in (row["write_ops"], row["write_bytes"])
            )
    result = asked(stored(tmp_path, centre), str(1000 + VICTIM))
    ios = centre.others_ios[VICTIM][:, :2]
    assert (result.targets, result.targets_from) == (list(OSTS[:2]), "job_stats")
    assert values(result)["fsu_others_pct"] == pytest.approx(100 * float(ios.sum()) * COST_S / (ios.size * TICK_S))


def test_runs_over_midnight_in_batches_of_single_days(
    tmp_path: Path, victim: RunExplanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All times are five minutes earlier, so that every twelfth run goes on after midnight, the victim's too."""
    shift = VICTIM % 12 * EVERY_S * 1_000_000 + 300_000_000
    centre = made_up_centre(*levels())
    for rows in centre.tables.values():
        for row in rows:
            row |= {name: row[name] - shift for name in ("time", "start") if name in row}
            row["date"] = row.get("start", row["time"]) // 86_400_000_000
    folder = stored(tmp_path, centre)
    monkeypatch.setattr(DuckDBEngine, "rows_per_chunk", 1)
    result = asked(folder, str(1000 + VICTIM))
    assert result.window_start.day != result.window_end.day
    for name in SYSTEM:
        assert values(result)[name] == pytest.approx(values(victim)[name]), name
    assert [line.rho for line in result.system] == pytest.approx([line.rho for line in victim.system])


def test_targets_may_be_named(folder: Path, centre: Centre) -> None:
    result = asked(folder, str(1000 + VICTIM), scope=Scope("scratch", targets=("OST0001", "OST0002")))
    ios = centre.others_ios[VICTIM][:, 1:3]
    assert (result.targets, result.targets_from) == (list(OSTS[1:3]), "option")
    assert values(result)["fsu_others_pct"] == pytest.approx(100 * float(ios.sum()) * COST_S / (ios.size * TICK_S))


def test_another_file_system_than_that_of_the_run_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="the run used file system 'scratch', not 'home'"):
        asked(folder, str(1000 + VICTIM), scope=Scope("home"))


def test_a_store_without_telemetry_says_what_is_missing(tmp_path: Path) -> None:
    others, io_s = levels()
    centre = made_up_centre(others, io_s)
    only_runs = Centre({"runs": centre.tables["runs"], "jobs": centre.tables["jobs"]})
    result = asked(stored(tmp_path, only_runs), str(1000 + VICTIM))
    assert (result.verdict, result.filesystem) == ("unexplained", None)
    assert {item.factor: item.reason for item in result.not_known} == dict.fromkeys(
        SYSTEM, "the store has no telemetry of a file system scratch"
    )


def test_a_job_without_a_log_has_the_state_of_the_system_alone(tmp_path: Path) -> None:
    centre = made_up_centre(*levels())
    centre.tables["runs"] = [run for run in centre.tables["runs"] if run["job_id"] != str(1000 + VICTIM)]
    result = asked(stored(tmp_path, centre), str(1000 + VICTIM))
    assert (result.verdict, result.run, result.slow, result.job_id) == ("no log", None, None, str(1000 + VICTIM))
    expected = 100 * float(centre.others_ios[VICTIM].sum()) * COST_S / (centre.others_ios[VICTIM].size * TICK_S)
    assert values(result)["fsu_others_pct"] == pytest.approx(expected)
    assert {item.reason for item in result.not_known if item.factor in OWN} == {"no Darshan log of the job is stored"}


def test_of_several_runs_of_a_job_the_longest_is_explained(tmp_path: Path) -> None:
    centre = made_up_centre(*levels())
    centre.add("runs", {**run_of(VICTIM, 1.0), "run_id": "ff" * 32, "duration_s": 5.0})
    result = asked(stored(tmp_path, centre), str(1000 + VICTIM))
    assert result.run == centre.tables["runs"][VICTIM]["run_id"]
    assert result.notes[0] == "job 1017 has 2 runs: this is the longest; the others are ffffffffffff"


def test_a_run_is_found_by_its_id_and_its_log(folder: Path, tmp_path: Path, victim: RunExplanation) -> None:
    assert asked(folder, "17aa").run == victim.run
    centre = made_up_centre(*levels())
    centre.tables["runs"][VICTIM]["log"] = "ada_app_id1017.darshan"
    assert asked(stored(tmp_path, centre), "ada_app_id1017").run == victim.run


def test_an_unknown_name_gets_the_nearest(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"no run, log or job is called '1107'; did you mean .*1017"):
        asked(folder, "1107")
    with pytest.raises(UsageError, match="outside the window of its history"):
        asked(folder, "1017", scope=Scope(since=datetime(2030, 1, 1, tzinfo=UTC)))


def test_the_load_of_its_time_step_by_step(folder: Path, centre: Centre) -> None:
    result = asked(folder, str(1000 + VICTIM))
    assert result.load is not None
    others = centre.others_ios[VICTIM].mean(axis=1) * 100 * COST_S / TICK_S
    own = MOVED // MIB // centre.others_ios[VICTIM].size * 100 * COST_S / TICK_S
    assert result.load.others_pct.tolist() == pytest.approx(others.tolist())
    assert result.load.fsu_pct.tolist() == pytest.approx((others + own).tolist())
    assert MDT not in result.targets


def test_fullness_is_the_reading_nearest_to_the_middle_of_the_run(tmp_path: Path) -> None:
    """An OST that fills from 45 to 97 per cent in the hour before the run; the day's mean is 46."""
    centre = made_up_centre(*levels())
    middle_s = VICTIM * EVERY_S + RUN_S // 2
    centre.tables["target_capacity"] = [
        capacity(OSTS[2], middle_s + away_s, used) for away_s, used in ((-600, 97), (700, 20), *hours_before(24))
    ]
    line = {line.factor: line for line in asked(stored(tmp_path, centre), str(1000 + VICTIM)).system}["fullness_pct"]
    assert (line.value, line.target) == (97.0, OSTS[2])


def hours_before(count: int) -> list[tuple[int, int]]:
    return [(-3600 * (hour + 1), 45) for hour in range(count)]


def capacity(target: str, at_s: float, used: int) -> dict[str, Any]:
    time = round((T0_S + at_s) * 1e6)
    named = {"filesystem": "scratch", "source": "made-up", "target": target, "target_kind": "ost"}
    used_bytes = {"total_bytes": 100, "used_bytes": used, "free_bytes": 100 - used}
    return {"time": time, "date": time // 86_400_000_000, **named, **used_bytes}


def test_a_reading_of_hours_ago_is_taken_where_there_is_no_nearer_one(tmp_path: Path) -> None:
    centre = made_up_centre(*levels())
    middle_s = VICTIM * EVERY_S + RUN_S // 2
    centre.tables["target_capacity"] = [capacity(OSTS[0], middle_s - 20 * 3600, 61)]
    assert values(asked(stored(tmp_path, centre), str(1000 + VICTIM)))["fullness_pct"] == 61.0
    centre.tables["target_capacity"] = [capacity(OSTS[0], middle_s - 25 * 3600, 61)]
    elsewhere = tmp_path / "elsewhere"
    assert values(asked(stored(elsewhere, centre), str(1000 + VICTIM)))["fullness_pct"] is None


def test_runs_after_it_are_used_only_where_fewer_than_five_came_before(folder: Path) -> None:
    early, fifth = asked(folder, "1004"), asked(folder, "1005")
    assert (early.history.runs, early.history.after) == (RUNS - 1, RUNS - 5)
    assert (fifth.history.runs, fifth.history.after) == (5, 0)
    assert "Only 4 like runs came before it, which is too few; also used: 25 runs after it." in [*notes(early)]


def changed(kind: str, since: int = 20) -> Centre:
    """All runs from number 20 on take twice as long, and one of their OSTs is slow or full from then on."""
    others, io_s = [100.0] * RUNS, [60.0 + number % 5 for number in range(RUNS)]
    centre = made_up_centre(others, [2 * s if number >= since else s for number, s in enumerate(io_s)])
    for row in centre.tables["target_capacity"] if kind == "full" else centre.tables["target_histograms"]:
        if row["time"] / 1e6 - T0_S > since * EVERY_S - 3600:
            is_ill = row["target"] == OSTS[1]
            row |= {"used_bytes": 96 if is_ill else 40} if kind == "full" else {"bin": 16 if is_ill else 4}
    return centre


@pytest.mark.parametrize(("kind", "factor"), [("full", "fullness_pct"), ("slow", "slowest_ost_ratio")])
def test_a_lasting_change_is_named_when_most_of_the_history_has_it(tmp_path: Path, kind: str, factor: str) -> None:
    """The ninth of the slow runs: by its place in the history neither its speed nor the OST is unusual."""
    result = asked(stored(tmp_path, changed(kind)), "1028")
    assert result.fall is not None
    assert result.fall.since == datetime.fromtimestamp(T0_S + 20 * EVERY_S, UTC)
    assert (result.fall.runs_after, result.fall.after) == (9, pytest.approx(result.fall.before / 2, rel=0.05))
    assert (result.verdict, result.slow) == ("system", True)
    assert [(line.factor, line.target) for line in (*result.own, *result.system) if line.named] == [(factor, OSTS[1])]
    line = next(line for line in result.system if line.named)
    assert line.change is not None
    assert line.change.since == result.fall.since
    assert line.change.p < 0.01
    assert line.percentile is not None
    assert line.percentile < 90
    assert (result.neighbours_on, [line.name for line in result.neighbours]) == ([OSTS[1]], ["7"])


def test_a_change_that_has_ended_explains_nothing(tmp_path: Path) -> None:
    """The runs from number 20 to 23 were slow because of a slow OST, the asked one is as fast as before."""
    centre = changed("slow")
    for run in centre.tables["runs"][24:]:
        run["slowest_rank_s"] /= 2
    for row in centre.tables["target_histograms"]:
        if row["start"] / 1e6 - T0_S >= 24 * EVERY_S:
            row["bin"] = 4
    result = asked(stored(tmp_path, centre), "1028")
    assert (result.verdict, result.fall) == ("not slow", None)


def test_neighbours_of_a_verdict_on_metadata_servers_are_the_jobs_there(tmp_path: Path) -> None:
    """The run waits for the MDT: most operations are of job 9, which moves nothing; job 7 moves bytes alone."""
    random = np.random.default_rng(2)
    asked_for = [int(count) for count in random.integers(100, 900, RUNS)]
    asked_for[VICTIM] = 9000
    io_s = [60 + count / 50 + random.normal(0, 0.5) for count in asked_for]
    centre = made_up_centre([100.0] * RUNS, io_s)
    for run, seconds in zip(centre.tables["runs"], io_s, strict=True):
        run |= {"read_s": 0.0, "write_s": 60.0, "metadata_s": seconds - 60}
    for row in centre.tables["metadata_ops"]:
        row["open"] += asked_for[int((row["start"] / 1e6 - T0_S) // EVERY_S)]
    for row in [row for row in centre.tables["job_io"] if row["target"] == MDT]:
        count = asked_for[int((row["start"] / 1e6 - T0_S) // EVERY_S)]
        centre.add("job_io", {**row, "job_id": "9", "open": count})
    result = asked(stored(tmp_path, centre), str(1000 + VICTIM))
    assert [line.factor for line in (*result.own, *result.system) if line.named] == ["mdt_ops_per_s"]
    assert [(line.name, line.share_of) for line in result.neighbours] == [("9", "metadata_operations")]
    assert "Others on the metadata servers, by their share of the metadata operations: 9 (9" in str(
        neighbour_words(result)
    )
