"""Real processes, real time: a simulated server at its own speed, sampled by the agent; the truth comes back."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from iolens.analyses.utilization import utilization
from iolens.simulator.activity import Activity
from iolens.simulator.workload import load_workload
from iolens.store.duckdb_engine import query
from iolens.store.store import Store
from iolens.units import parse_duration, parse_time
from tests.cli.command import iolens

WORKLOAD = load_workload("scratch")
START = "2012-10-22T10:40:00Z"


@pytest.mark.parametrize(("speed", "simulated_s", "interval", "sampled", "reset"), [
    (1, 40, "1s", "26s", None),
    (100, 2400, "100ms", "18s", "700s"),
])  # fmt: skip
def test_the_truth_comes_back_at_any_speed(
    tmp_path: Path, speed: int, simulated_s: int, interval: str, sampled: str, reset: str | None
) -> None:
    root, store = tmp_path / "root", tmp_path / "store"
    command = [sys.executable, "-m", "iolens.cli.main", "simulate", "lustre", "--root", str(root), "--osts", "3",
               "--version", "2.15", "--speed", str(speed), "--seed", "3", "--start", START,
               "--duration", f"{simulated_s}s"]  # fmt: skip
    if reset is not None:
        command += ["--reset-at", reset]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        while not list(root.glob("sys/kernel/debug/lustre/osd-ldiskfs/*OST0002/brw_stats")):
            assert server.poll() is None, server.stderr and server.stderr.read()
        done = iolens("collect", "--root", root, "--interval", interval, "--duration", sampled, "--store", store,
                      "--spool", tmp_path / "spool", "--ship-every", "1h")  # fmt: skip
    finally:
        server.terminate()
        server.wait()
    assert done.code == 0, done.err
    opened = Store(store)
    found = utilization(opened.select("scratch"), calibration=WORKLOAD.disks)
    ends = _snapshots(opened)
    truth = Activity(WORKLOAD, 3, seed=3).block(ends[0][0] // 5, (ends[-1][0] - ends[0][0]) // 5).fsu_pct
    assert len(truth) >= (3 if speed == 1 else 200)
    unseen = 0.0  # what the server did between the last sample before the reset and the reset: nobody can know it
    for (before, _), (_, after_reset) in itertools.pairwise(ends):
        if after_reset:
            at = int(parse_time(START).timestamp() + parse_duration(str(reset)))
            unseen += truth[(before - ends[0][0]) // 5 : (at - ends[0][0]) // 5].sum()
    assert found.coverage.resets == (0 if reset is None else 3)
    assert found.mean_fsu_pct == pytest.approx((truth.sum() - unseen) / truth.size, rel=0.01)


def _snapshots(store: Store) -> list[tuple[int, bool]]:
    """Snapshots of an OST by the simulated server's clock, in seconds, and whether a reset came before each."""
    where = "WHERE target = 'scratch-OST0000'"
    baselines, sizes = store.tables.load("baselines"), store.tables.load("target_sizes")
    assert baselines is not None
    assert sizes is not None
    sql = f"SELECT max(snapshot_us) FROM found {where} AND counter_set = 'target_sizes'"
    ((last,),) = query(store.tables, baselines, "baselines", sql)
    sql = f"SELECT duration_s, after_reset FROM found {where} ORDER BY time"
    rows = query(store.tables, sizes, "target_sizes", sql)
    seconds = [last / 1e6 - sum(duration for duration, _ in rows)]
    for duration, _ in rows:
        seconds.append(seconds[-1] + duration)
    return [(round(second), reset) for second, reset in zip(seconds, [False, *(row[1] for row in rows)], strict=True)]
