"""Planted jobs: counts that add up and equal their level, the same in any blocks, and what a file may say of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iolens.errors import InputError, UsageError
from iolens.models.transaction_time import fsu_pct
from iolens.schema import DIRECTIONS
from iolens.simulator.activity import MOST_PCT, Activity, PlantedCounts, TickBlock, jobs_between
from iolens.simulator.job_counts import by_job, load_of_others_pct, operations_by_job
from iolens.simulator.workload import (
    FOLDER,
    OPERATIONS,
    SIZES,
    PlantedJob,
    load_workload,
    placed_on,
    planted_on,
    read_workload,
)
from tests.simulator.planted import OPENING, RESTING, START_S, TINY, planted_workload

OSTS = 3
FIRST, TICKS = (START_S - 600) // 5, 1200  # an hour and 40 minutes
PLAIN = load_workload("scratch")


def block_of(*jobs: PlantedJob, seed: int = 5) -> TickBlock:
    return Activity(planted_workload(*jobs), OSTS, seed).block(FIRST, TICKS)


def of(block: TickBlock, job: PlantedJob) -> PlantedCounts:
    return next(part for part in block.planted if part.job.job_id == job.job_id)


def disk_s(part: PlantedCounts) -> list[float]:
    """Of each OST."""
    return [float(seconds) for seconds in Activity(PLAIN, OSTS).disk_s(part.counts).sum(axis=0)]


def test_the_background_is_that_of_the_workload_without_them() -> None:
    block, plain = block_of(), Activity(PLAIN, OSTS, 5).block(FIRST, TICKS)
    fits = block.fsu_pct < 129  # elsewhere all were cut
    assert fits.mean() > 0.95
    assert np.array_equal(block.background[..., fits], plain.counts[..., fits])
    assert plain.planted == ()
    assert plain.background is plain.counts


def test_a_job_takes_its_level_of_its_osts_while_it_is_active() -> None:
    block = Activity(planted_workload(name="scratch2"), OSTS, 5).block(FIRST, TICKS)  # quieter: nothing is cut
    assert block.fsu_pct.max() < MOST_PCT - 1
    write_s, read_s = PLAIN.disks.write.seconds(4096), PLAIN.disks.read.seconds(1 << 20)
    assert disk_s(of(block, TINY)) == pytest.approx([0.40 * 1800] * OSTS, abs=write_s)
    active_s = 4 * 300  # of 80 minutes: five minutes of each 25, the fourth time too
    assert disk_s(of(block, RESTING)) == pytest.approx([0, 0.25 * active_s, 0], abs=3 * read_s)
    by_tick = of(block, RESTING).counts.sum(axis=(0, 1, 3))
    quiet = (np.arange(len(by_tick)) * 5) % 1500 >= 300
    assert (by_tick[quiet] == 0).all()
    assert (by_tick[~quiet] > 0).all()
    reads = of(block, RESTING).counts.sum(axis=(2, 3))
    assert reads[0, SIZES.index(1 << 20)] / reads[0, SIZES.index(65536)] == pytest.approx(3.0, rel=0.01)
    assert reads[0, SIZES.index(1 << 20)] / reads[1, SIZES.index(1 << 20)] == pytest.approx(3.0, rel=0.01)


def test_true_utilization_counts_planted_jobs_too() -> None:
    block = block_of()
    tick = (START_S + 60) // 5 - FIRST
    ios = {
        (direction, size): int(block.counts[d, s, tick, 1])
        for d, direction in enumerate(DIRECTIONS)
        for s, size in enumerate(SIZES)
    }
    assert block.fsu_pct[tick, 1] == pytest.approx(fsu_pct(ios, 5.0, PLAIN.disks), rel=1e-12)


@pytest.mark.parametrize("length", [1199, 720, 77, 1])
def test_block_size_does_not_change_the_numbers(length: int) -> None:
    whole = block_of()
    activity = Activity(planted_workload(), OSTS, 5)
    ticks = 300 if length == 1 else TICKS
    sums = dict.fromkeys(("90000001", "90000002"), 0)
    for block in activity.blocks(FIRST, ticks, length):
        here = slice(block.first_tick - FIRST, block.first_tick - FIRST + block.ticks)
        assert np.array_equal(block.counts, whole.counts[:, :, here])
        assert np.array_equal(block.fsu_pct, whole.fsu_pct[here])
        for part in block.planted:
            known = next(known for known in whole.planted if known.job == part.job)
            cut = slice(part.first_tick - known.first_tick, part.end_tick - known.first_tick)
            assert np.array_equal(part.counts, known.counts[:, :, cut])
            sums[part.job.job_id] += int(part.counts.sum())
    expected = whole.part(FIRST, ticks)
    assert sums == {part.job.job_id: part.counts.sum() for part in expected.planted}


def test_the_seed_decides_where_counts_are_rounded() -> None:
    item, same, other = (of(block_of(seed=seed), RESTING).counts for seed in (1, 1, 2))
    assert np.array_equal(item, same)
    assert not np.array_equal(item, other)


def test_a_full_disk_takes_from_all_alike() -> None:
    heavy = replace(TINY, level_pct=120.0), replace(TINY, job_id="2", level_pct=60.0, ios={("read", 65536): 1.0})
    activity = Activity(planted_workload(*heavy), OSTS, 5)
    block = activity.block(START_S // 5, 300)
    assert block.fsu_pct.max() <= MOST_PCT
    assert np.allclose(activity.disk_s(block.counts) * 20, block.fsu_pct)
    first, second = (activity.disk_s(part.counts).sum() for part in block.planted)
    assert first / second == pytest.approx(2.0, rel=0.01)
    assert np.array_equal(block.background + sum(part.counts for part in block.planted), block.counts)


def test_by_job_adds_up_to_the_block() -> None:
    workload = planted_workload()
    activity = Activity(workload, OSTS, 5)
    block = activity.block(FIRST, TICKS)
    total = np.zeros_like(block.counts)
    jobs = set()
    for part in by_job(workload, block):
        jobs.add(part.job.job_id)
        assert part.job.start_s <= part.first_tick * 5
        assert part.end_tick * 5 <= part.job.end_s
        total[:, :, part.first_tick - FIRST : part.end_tick - FIRST] += part.counts
    assert np.array_equal(total, block.counts)
    assert {"90000001", "90000002"} < jobs
    assert len(jobs) > len(workload.jobs) + 2  # some streams go on to their next job
    operations = sum(part.counts.sum(axis=1) for part in operations_by_job(activity, FIRST, TICKS, 2))
    assert np.array_equal(operations, activity.metadata_of(FIRST, TICKS, 2).sum(axis=1))


def test_metadata_operations_have_their_rates() -> None:
    planted = Activity(planted_workload(), OSTS, 5)
    plain = Activity(PLAIN, OSTS, 5)
    more = planted.metadata_of(FIRST, TICKS, 2) - plain.metadata_of(FIRST, TICKS, 2)
    assert more.min() == 0
    assert more[OPERATIONS.index("open")].sum() == pytest.approx(90.5 * 600, abs=2)
    assert more[OPERATIONS.index("getattr")].sum(axis=0).tolist() == pytest.approx([350 * 600] * 2, abs=1)


def test_load_of_others_is_that_of_the_jobs_own_osts() -> None:
    victim = replace(TINY, job_id="3", level_pct=10.0, osts=(0, 2))
    activity = Activity(planted_workload(victim, RESTING), OSTS, 5)
    plain = Activity(planted_workload(victim), OSTS, 5)
    assert load_of_others_pct(activity, victim) == pytest.approx(load_of_others_pct(plain, victim))  # OST 1 is not its
    beside = Activity(planted_workload(victim, replace(TINY, level_pct=20.0)), OSTS, 5)
    more = load_of_others_pct(beside, victim) - load_of_others_pct(plain, victim)
    assert more == pytest.approx(20.0, abs=0.5)


def test_the_scheduler_knows_them() -> None:
    workload = planted_workload()
    ended = {job.job_id: job for job in jobs_between(workload, START_S, START_S + 1800)}
    assert (ended["90000001"].name, ended["90000001"].nodes, ended["90000001"].user) == ("tiny.x", 2, "eve")
    assert "90000002" not in ended
    assert planted_on(workload, 12) == {"90000001": [9, 10], "90000002": [8], "opens-7": [11]}
    assert {node for nodes in placed_on(workload, 12) for node in nodes} == set(range(8))
    assert planted_on(workload, 2) == {"90000001": [0, 1], "90000002": [0], "opens-7": [1]}  # shared
    assert placed_on(workload, 2) == placed_on(PLAIN, 2)


def test_a_workload_without_them_keeps_its_digest() -> None:
    assert PLAIN.digest == "54960be3f48a8cf4"
    assert planted_workload(TINY).digest != planted_workload(replace(TINY, level_pct=41.0)).digest != PLAIN.digest


TEXT = """
[[planted]]
job_id = "90000002"
user = "finn"
project = "ocean"
executable = "read.x"
nodes = 1
start = 2012-10-22T09:55:00Z
end = "2012-10-22T11:15"
osts = [1]
level_pct = 25
period = "25min"
active_pct = 20
read = { 1MiB = 3, 64KiB = 1 }
write = { 1MiB = 1 }
darshan = "file_per_process"

[[planted]]
job_id = "opens-7"
user = "gina"
project = "lists"
executable = "walk.py"
nodes = 1
start = 2012-10-22T10:10:00Z
end = 2012-10-22T10:20:00Z
metadata = { open = 90.5, getattr = 700 }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text((FOLDER / "scratch.toml").read_text() + text)
    return path


def test_they_are_read_from_the_file(tmp_path: Path) -> None:
    assert read_workload(written(tmp_path, TEXT)).planted == (RESTING, OPENING)


def test_the_example_of_the_page_is_read(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "simulator.md"
    example = page.read_text().partition("```toml\n")[2].partition("```")[0]
    (job,) = read_workload(written(tmp_path, "\n" + example)).planted
    assert (job.executable, job.osts, job.strategy) == ("tiny.x", (0, 3, 4), "shared")
    assert (job.end_s - job.start_s, job.period_s, job.active_share) == (12600, 600.0, 0.3)
    assert job.ios == {("write", 4096): 9.0, ("write", 65536): 1.0}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('user = "finn"\n', "", "planted[0].user: missing"),
        ("nodes = 1", "nodes = 0", "planted[0].nodes is 0; expected a whole number from 1"),
        ("osts = [1]", "osts = [1, 24]", "planted[0].osts is [1, 24]; expected a list of different whole numbers"),
        ("osts = [1]", "osts = [1, 1]", "planted[0].osts is [1, 1]"),
        ("osts = [1]", "osts = [true]", "planted[0].osts is [True]"),
        ("osts = [1]", "osts = []", "planted[0].osts is []"),
        ("level_pct = 25", "level_pct = 131", "planted[0].level_pct is 131; expected a number from 0 to 130"),
        ("1MiB = 3, 64KiB = 1", "5KiB = 3", "planted[0].read.5KiB: unknown key"),
        ("read = { 1MiB = 3, 64KiB = 1 }\nwrite = { 1MiB = 1 }", "", "planted[0].level_pct is 25.0; expected a share"),
        ('end = "2012-10-22T11:15"', 'end = "soon"', "planted[0].end is 'soon'; expected a date and time"),
        ('end = "2012-10-22T11:15"', 'end = "2012-10-22T09:15"', "expected a time after it"),
        ("start = 2012-10-22T09:55:00Z", "start = 2012-10-22T09:55:01Z", "expected a time on a whole minute"),
        ("start = 2012-10-22T09:55:00Z", "start = 3", "planted[0].start is 3"),
        ('period = "25min"\n', "", "planted[0].active_pct is 20; expected a period beside it"),
        ("active_pct = 20", "active_pct = 0", "planted[0].active_pct is 0"),
        ('darshan = "file_per_process"', 'darshan = "none"', "planted[0].darshan is 'none'; expected one of rank0"),
        ('job_id = "90000002"', 'job_id = "x"', "planted[0].job_id is 'x'; expected a number"),
        ('job_id = "opens-7"', 'job_id = "90000002"', "two planted jobs are called '90000002'"),
        ('job_id = "opens-7"', 'job_id = "312710"', "planted job '312710': a job of ana has that number then"),
        ("open = 90.5", "stat = 90.5", "planted[1].metadata.stat: unknown key"),
        ("getattr = 700", "getattr = -1", "planted[1].metadata.getattr is -1"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in TEXT
    path = written(tmp_path, TEXT.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        read_workload(path)
    assert str(error.value).startswith(f"{path}: ")
    assert problem in str(error.value)


def test_what_cannot_be_is_refused_in_python_too() -> None:
    for change, problem in (
        ({"end_s": START_S}, "ends after its start"),
        ({"start_s": START_S + 1}, "whole minutes"),
        ({"ios": {}}, "sizes of reads or writes"),
        ({"level_pct": 200.0}, "0 to 130 per cent"),
        ({"active_share": 0.5}, "of what period"),
        ({"osts": ()}, "names an OST once"),
        ({"job_id": "a"}, "Darshan needs a number"),
    ):
        with pytest.raises(UsageError, match=problem):
            replace(TINY, **change)
    with pytest.raises(UsageError, match="reads and writes of 4KiB"):
        planted_workload(replace(TINY, ios={("write", 5000): 1.0}))
    with pytest.raises(UsageError, match="no OST 7 among 3"):
        block_of(replace(TINY, osts=(7,)))
