"""Seconds and memory of `utilization`, `workload` and `imbalance` over a long window: D days × N targets × 5 s.

Eight days are drawn, and repeated under later dates. `python -m bench.long_window --days 240` is 647 million rows of
each of two tables, about 10 GB; the default is eight days. Nothing is remembered from one question to the next.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from bench.telemetry import FIRST_DAY, TICKS
from bench.utilization import make_store, size

from iolens.store.data_files import DataFile
from iolens.store.tables import Tables
from iolens.units import DAY_US

DRAWN_DAYS = 8
ANALYSES = ("utilization", "workload", "imbalance")
EVERY_S = 0.2
ASKED = "import sys, iolens; getattr(iolens.open(sys.argv[1], fresh=True), sys.argv[2])('scratch')"


def main() -> None:
    """Make the telemetry, then ask for each analysis in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=DRAWN_DAYS)
    parser.add_argument("--targets", type=int, default=156)
    parser.add_argument("--store", help="keep the telemetry here and use it again")
    parser.add_argument("--analyses", type=lambda text: text.split(","), default=ANALYSES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
        store = options.store or f"{folder}/store"
        if not Path(store).exists():
            make_store(store, min(options.days, DRAWN_DAYS), options.targets)
            repeat_days(store, options.days)
        rows = options.days * TICKS * options.targets
        print(f"{options.days} days × {options.targets} targets × 5 s: {rows:,} rows of each table, {size(store)}")
        print(f"{'analysis':12} {'seconds':>9} {'processor s':>12} {'rows/s':>12} {'peak MiB':>9}", flush=True)
        for name in options.analyses:
            seconds, processor_s, peak_mib = asked(store, name)
            print(
                f"{name:12} {seconds:>9.1f} {processor_s:>12.1f} {rows / seconds:>12,.0f} {peak_mib:>9.0f}", flush=True
            )


def repeat_days(store: str, days: int) -> None:
    """Days after those that were drawn, with the same rows at later times, in one commit for each table."""
    tables = Tables(store)
    for name in ("target_sizes", "target_io"):
        handle = tables.load(name)
        assert handle is not None
        with ProcessPoolExecutor(2) as pool:
            later = pool.map(write_later, *zip(*((store, name, uri, days) for uri in handle.file_uris()), strict=True))
            files = [file for some in later for file in some]
        if files:
            tables.put(handle, name, files)


def write_later(store: str, name: str, uri: str, days: int) -> list[DataFile]:
    """One file again every eight days."""
    rows, tables, files = pq.read_table(uri, partitioning=None), Tables(store), []
    drawn = (pc.min(rows["start"]).as_py().date() - FIRST_DAY).days
    for day in range(drawn + DRAWN_DAYS, days, DRAWN_DAYS):
        files += tables.write(name, shifted(rows, day - drawn))
    return files


def shifted(rows: pa.Table, days: int) -> pa.Table:
    """The rows so many days later."""
    for column in ("time", "start"):
        later = pc.add(rows[column].cast(pa.int64()), days * DAY_US).cast(rows.schema.field(column).type)
        rows = rows.set_column(rows.schema.get_field_index(column), column, later)
    dates = pc.cast(rows["start"], pa.timestamp("us")).cast(pa.date32())
    return rows.append_column("date", dates)


def asked(store: str, analysis: str) -> tuple[float, float, float]:
    """What one question takes, with its worker processes."""
    return watched([sys.executable, "-c", ASKED, store, analysis])


def watched(command: list[str]) -> tuple[float, float, float]:
    """Seconds, processor seconds, and MiB at the most of a command with all processes that it starts."""
    began, before, peak_kib = time.perf_counter(), processor_seconds(), 0
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak_kib = max(peak_kib, sum(map(held_kib, family(process.pid))))
            time.sleep(EVERY_S)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return time.perf_counter() - began, processor_seconds() - before, peak_kib / 1024


def processor_seconds() -> float:
    """Of all children that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def family(pid: int) -> Iterator[int]:
    """A process and all that it started."""
    yield pid
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from family(int(child))


def held_kib(pid: int) -> int:
    """Memory of a process; of pages that several share, its share."""
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Pss:")).split()[1])
    return 0


if __name__ == "__main__":
    main()
