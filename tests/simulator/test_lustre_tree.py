"""A living tree: every version is read without a problem, and the truth comes back out of the store."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from iolens.analyses.utilization.analysis import utilization
from iolens.errors import UsageError
from iolens.histogram_names import IN_FLIGHT_POW2, LATENCY_SIZES, latency_size
from iolens.records import Capture, Problem, Row, Sample
from iolens.simulator.activity import Activity
from iolens.simulator.lustre_centre import Centre, SimulatedEvent, event_of, run
from iolens.simulator.lustre_counters import LATENCY_UNIT_S, ROWS, SPREAD, VERSIONS
from iolens.simulator.lustre_tree import RealClock, Tree
from iolens.simulator.workload import SIZES, load_workload
from iolens.sources import ReadOptions
from iolens.sources.lustre.histograms import parse_brw_stats
from iolens.sources.lustre.lustre_proc import SOURCE, read_tree
from iolens.store.store import Store
from iolens.units import parse_duration
from tests.soak import IS_SOAK

START = 1350900000
WORKLOAD = load_workload("scratch")
TICKS = 100 if IS_SOAK else 50


class VirtualClock:
    """Time that passes only when someone waits."""

    def __init__(self, start_s: float) -> None:
        self.second = start_s

    def now(self) -> float:
        """The current time."""
        return self.second

    def wait_until(self, second: float) -> None:
        """Jump there."""
        self.second = max(self.second, second)


def tree(root: Path, version: str, *, osts: int = 3, seed: int = 3, targets: tuple[str, ...] | None = None) -> Tree:
    return Tree(root, version, WORKLOAD, start_s=START, osts=osts, mdts=2, seed=seed, targets=targets, uptime_s=900)


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_read_without_a_problem(tmp_path: Path, version: str) -> None:
    tree(tmp_path / "root", version).advance_to(START + 5)
    items = list(read_tree(tmp_path / "root", None))
    assert [str(item) for item in items if isinstance(item, Problem)] == []
    samples = {(item.table, item.target) for item in items if isinstance(item, Sample)}
    times = {item.table for item in items if isinstance(item, Row)}
    for table in ("target_io", "target_sizes", "target_histograms"):
        assert (table, "scratch-OST0002") in samples
    assert ("metadata_ops", "scratch-MDT0001") in samples
    assert (("job_io", "scratch-OST0000") in samples) == (version != "1.8")
    services = {name.partition(":")[2] for table, name in samples if table == "server_ops" and ":" in name}
    tenants = {"nodemap.default.dt_stats"} if version == "2.17" else set()
    assert services == {"ost_io", "mds" if version == "1.8" else "mdt"} | tenants
    states = [item.values for item in items if isinstance(item, Row) and item.table == "target_state"]
    assert {(state["locks"] or 0) > 300 for state in states} == {True}
    assert times == {"target_capacity", "target_state"}
    histograms = next(item for item in items if isinstance(item, Sample) and item.table == "target_histograms")
    of_sizes = [name for name in histograms.sets if latency_size(name) is not None]
    assert len(of_sizes) == (len(LATENCY_SIZES) if version == "2.17" else 0)
    assert len(histograms.sets) - len(of_sizes) == 6  # and disk I/O size is the seventh


@pytest.mark.parametrize("version", VERSIONS)
def test_the_truth_comes_back_through_reset_and_failover(tmp_path: Path, version: str) -> None:
    reset_s, failover_s = START + 1.5 * TICKS + 0.5, START + 3 * TICKS + 0.5
    events = [SimulatedEvent(reset_s, "reset"), SimulatedEvent(failover_s, "failover", "scratch-OST0001")]
    centre = Centre(tree(tmp_path / "one", version), tree(tmp_path / "two", version, targets=()), events)
    captures: list[Capture] = []
    for tick in range(TICKS + 1):
        centre.advance_to(START + 5 * tick)
        roots = [item.root for item in centre.trees if item.mounted]
        captures += SOURCE.captures(roots, ReadOptions(interval_s=5))
    store = Store(tmp_path / "store")
    tally = store.ingest(captures, "lustre-proc")
    assert tally.refused == 0
    assert tally.resets > 0
    result = utilization(store.select("scratch"), calibration=WORKLOAD.disks)
    truth = Activity(WORKLOAD, 3, seed=3).block(START // 5, TICKS).fsu_pct
    assert result.samples == TICKS
    assert result.target_samples == 3 * TICKS
    assert result.mean_fsu_pct == pytest.approx(truth.mean(), rel=0.01)
    for number, line in enumerate(result.per_target):
        assert line.mean_fsu_pct == pytest.approx(truth[:, number].mean(), rel=0.01)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_seed_prints_the_same_bytes(tmp_path: Path, version: str) -> None:
    for name, seed, steps in (("a", 1, (5, 60, 700)), ("b", 1, (700,)), ("c", 2, (700,))):
        item = tree(tmp_path / name, version, osts=2, seed=seed)
        for step in steps:
            item.advance_to(START + step)
    assert files(tmp_path / "a") == files(tmp_path / "b")  # however often it was written on the way
    assert files(tmp_path / "a") != files(tmp_path / "c")


def test_every_section_counts_every_io(tmp_path: Path) -> None:
    item = tree(tmp_path / "root", "2.12", osts=2)
    item.advance_to(START + 600)
    for path in (tmp_path / "root").rglob("brw_stats"):
        result = parse_brw_stats(path.read_bytes(), str(path))
        assert result.sizes is not None
        for direction in ("read", "write"):
            ios = sum(count for name, count in result.sizes.items() if name.startswith(direction))
            assert ios > 0
            for counters in result.sets.values():
                assert sum(count for name, count in counters.items() if name.startswith(direction)) == ios


def test_latencies_by_size_and_ios_in_flight_of_2_17_come_back_as_they_were(tmp_path: Path) -> None:
    """Through the printed text, the store and a reset: every I/O of every size, by the time it took."""
    item = tree(tmp_path / "root", "2.17", osts=2)
    store = Store(tmp_path / "store")
    moved = np.zeros((2, 2, len(SIZES), ROWS), np.int64)
    before = [ost.latencies.copy() for ost in item.osts]
    for second in (60, 120, 180):
        if second == 120:
            item.reset()
            before = [ost.latencies.copy() for ost in item.osts]
        item.advance_to(START + second)
        if second > 60:
            moved += np.array([ost.latencies for ost in item.osts]) - before
        before = [ost.latencies.copy() for ost in item.osts]
        store.ingest(SOURCE.captures([item.root], ReadOptions(interval_s=60)), "lustre-proc")
    rows = store.tables.load("target_histograms").to_pyarrow_table().to_pylist()
    assert {row["histogram"] for row in rows if "in_flight" in row["histogram"]} == {IN_FLIGHT_POW2}
    counted = np.zeros_like(moved)
    for row in rows:
        if (size := latency_size(row["histogram"])) is not None:
            place = int(row["target"][-4:], 16), ("read", "write").index(row["direction"]), SIZES.index(size)
            counted[(*place, (row["bin"] // 1024).bit_length() - 1)] += row["count"]
    assert moved.sum() > 10_000
    assert np.array_equal(counted, moved)


def test_how_long_ios_take_follows_the_law_and_the_queue(tmp_path: Path) -> None:
    """Every I/O is timed once, no faster than alone but for the spread, and no slower than on a full disk."""
    item = tree(tmp_path / "root", "2.17", osts=2)
    for ost in item.osts:
        assert np.array_equal(ost.latencies.sum(axis=2), ost.counts)
        for side, sizes in enumerate(item.activity.seconds):
            for place, alone_s in enumerate(sizes):
                used = np.flatnonzero(ost.latencies[side, place])
                if used.size:
                    assert 2.0 ** used[0] * LATENCY_UNIT_S >= alone_s * np.exp(-6 * SPREAD)
                    assert 2.0 ** (used[-1] - 1) * LATENCY_UNIT_S <= alone_s * 12 * np.exp(6 * SPREAD)


def test_a_reset_starts_from_zero(tmp_path: Path) -> None:
    item = tree(tmp_path / "root", "2.15")
    brw = tmp_path / "root/sys/kernel/debug/lustre/osd-ldiskfs/scratch-OST0000/brw_stats"
    before = parse_brw_stats(brw.read_bytes(), "")
    item.reset(["scratch-OST0000"])
    item.advance_to(START + 5)
    after = parse_brw_stats(brw.read_bytes(), "")
    assert before.start_us == (START - 900) * 1_000_000
    assert after.start_us == START * 1_000_000
    assert before.sizes is not None
    assert after.sizes is not None
    assert sum(after.sizes.values()) < sum(before.sizes.values())


def test_a_dead_target_vanishes_and_a_moved_one_appears_elsewhere(tmp_path: Path) -> None:
    events = [
        SimulatedEvent(START + 7, "dead", "scratch-OST0000"),
        SimulatedEvent(START + 12, "failover", "scratch-MDT0001"),
    ]
    centre = Centre(tree(tmp_path / "one", "2.12"), tree(tmp_path / "two", "2.12", targets=()), events)
    centre.advance_to(START + 15)
    here, there = (
        {path.name for path in (tmp_path / name).rglob("scratch-*") if path.is_dir()} for name in ("one", "two")
    )
    assert here == {"scratch-OST0001", "scratch-OST0002", "scratch-MDT0000"}
    assert there == {"scratch-MDT0001"}
    status = tmp_path / "two/proc/fs/lustre/mdt/scratch-MDT0001/recovery_status"
    assert status.read_text().startswith("status: RECOVERING\n")
    centre.advance_to(START + 60)
    assert status.read_text().startswith("status: COMPLETE\n")
    assert [item for item in read_tree(tmp_path / "two", None) if isinstance(item, Problem)] == []


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    item = tree(tmp_path / "root", "2.10", osts=1)
    path = tmp_path / "root/proc/fs/lustre/obdfilter/scratch-OST0000/brw_stats"
    stop, seen, problems = threading.Event(), set(), []

    def read() -> None:
        while not stop.is_set():
            result = parse_brw_stats(path.read_bytes(), str(path))
            seen.add(result.snapshot_us)
            problems.extend(result.problems)
            time.sleep(0.001)

    reader = threading.Thread(target=read)
    reader.start()
    for tick in range(1, 100):
        item.advance_to(START + 5 * tick)
    stop.set()
    reader.join()
    assert problems == []
    assert len(seen) > 10


def test_a_clock_drives_the_servers(tmp_path: Path) -> None:
    centre = Centre(tree(tmp_path / "root", "2.15", osts=1))
    assert run(centre, VirtualClock(START), START + 62) == 13
    assert centre.server.second == START + 62
    assert centre.server.truth.ticks == 12
    clock = RealClock(START, speed=1000)
    clock.wait_until(START + 20)
    assert START + 20 <= clock.now() < START + 2000


def test_jobs_that_ended_are_forgotten(tmp_path: Path) -> None:
    item = tree(tmp_path / "root", "2.15", osts=1)
    stats = tmp_path / "root/proc/fs/lustre/obdfilter/scratch-OST0000/job_stats"
    item.advance_to(START + 1500)
    assert stats.read_text().count("job_id") in range(len(WORKLOAD.jobs), 2 * len(WORKLOAD.jobs))
    item.advance_to(START + 86400)
    assert stats.read_text().count("job_id") <= 2 * len(WORKLOAD.jobs)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    item = tree(tmp_path / "root", "2.10", osts=1)
    with pytest.raises(UsageError, match="not empty"):
        tree(tmp_path / "root", "2.10")
    with pytest.raises(UsageError, match=r"1\.8, 2\.10, 2\.12, 2\.15"):
        tree(tmp_path / "other", "2.11")
    with pytest.raises(UsageError, match="backwards"):
        item.advance_to(START - 1)
    with pytest.raises(UsageError, match="not mounted here"):
        item.drop("scratch-OST0009")
    with pytest.raises(UsageError, match="cannot be mounted"):
        item.add("scratch-OST0000")
    with pytest.raises(UsageError, match="--root2"):
        Centre(item, None, [SimulatedEvent(START, "failover", "scratch-OST0000")])
    with pytest.raises(UsageError, match="no target is called"):
        Centre(item, None, [SimulatedEvent(START, "dead", "scratch-OST0009")])
    with pytest.raises(UsageError, match="OST0003@10min"):
        event_of("dead", "OST0001", START, "scratch", parse_duration)
    assert event_of("dead", "OST0001@2min", START, "scratch", parse_duration).at_s == START + 120
