"""Parts made inside the executors of a Spark cluster: how much reaches the driver, and two workers against one.

`python -m bench.spark_parts` makes four days of 48 controllers every 2 s, starts a standalone cluster of one worker
with one core and then of two, and asks each for `workload` and `imbalance`. Needs Java.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.workload import TICKS_PER_DAY, make_store
from tests.live.spark_cluster import SparkCluster, spark_environment

import iolens


def main() -> None:
    """Make the telemetry, measure, print ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=4)
    parser.add_argument("--targets", type=int, default=48)
    parser.add_argument("--store", help="keep the telemetry here and use it again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
        store = options.store or f"{folder}/store"
        if not Path(store).exists():
            make_store(store, options.days, options.targets)
        table = sum(file.stat().st_size for file in Path(store, "target_io").rglob("*.parquet"))
        print(f"\n{options.days * TICKS_PER_DAY * options.targets:,} rows, {table / 1e6:,.1f} MB of target_io")
        taken = {workers: measured(store, workers) for workers in (1, 2)}
    alone, both = taken[1][0], taken[2][0]
    print(
        f"two workers: {alone / both:.2f}× one worker; {taken[2][1] / table:.2%} of the table's bytes reach the driver"
    )


def measured(store: str, workers: int) -> tuple[float, int]:
    """Seconds of both questions on a warm session, and bytes of what the executors sent."""
    with (
        SparkCluster(workers=workers) as cluster,
        spark_environment(cluster),
        iolens.open(store, engine=cluster.master_url, fresh=True) as opened,
    ):
        received = count_received(opened)
        opened.imbalance()  # the session and the Python workers start
        received.clear()
        began = time.perf_counter()
        opened.workload()
        opened.imbalance()
        seconds = time.perf_counter() - began
    print(f"{workers} worker{'s' * (workers > 1)}: {seconds:.2f} s, {sum(received) / 1e6:.2f} MB to the driver")
    return seconds, sum(received)


def count_received(opened: Any) -> list[int]:
    """Sizes of the Arrow tables that reach the driver from here on."""
    frames = type(opened.store.engine.session.range(1))
    original, sizes = frames.toArrow, []

    def counted(frame: Any) -> Any:
        table = original(frame)
        sizes.append(table.nbytes)
        return table

    frames.toArrow = counted
    return sizes


if __name__ == "__main__":
    main()
