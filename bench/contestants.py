"""One contestant of the benchmark in a process of its own: prints seconds, also of the processor, and peak memory."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from datetime import date

W0, W1, R0, R1 = 1.04e-3, 1.73e-9, 8.02e-4, 1.23e-9


def file_system(store: str, until: str) -> None:
    """iolens: all results of the file system as a whole."""
    import iolens

    iolens.open(store, fresh=True).analyse("utilization", "scratch", until=until, per_target=False)


def whole(store: str, until: str) -> None:
    """iolens: everything, per target too."""
    import iolens

    iolens.open(store, fresh=True).utilization("scratch", until=until)


def again(store: str, until: str) -> None:
    """The same with what is remembered; the first time, nothing is."""
    import iolens

    iolens.open(store).utilization("scratch", until=until)


def decode(store: str, until: str) -> None:
    """DuckDB reads the same columns of the same files and takes the maximum of each."""
    from iolens.analyses.intervals.fsu_sums import SIZE_COLUMNS
    from iolens.store.duckdb_engine import relation
    from iolens.store.store import Store
    from iolens.units import parse_time

    chosen = Store(store).select("scratch", until=parse_time(until))
    live = chosen.live_columns("target_sizes", list(SIZE_COLUMNS))
    columns = {
        "target_sizes": ["time", "duration_s", "target_kind", *live],
        "target_io": ["time", "start", "duration_s", "target", "target_kind", "read_bytes", "write_bytes"],
    }
    for table, names in columns.items():
        files = relation(chosen.tables, table, chosen.snapshot(table).paths)
        # The filter keeps DuckDB from answering out of the statistics of a single file without decoding it.
        files.filter("duration_s > 0").aggregate(", ".join(f'max("{name}")' for name in names)).to_arrow_table()


def pandas(store: str, until: str) -> None:
    """The straightforward script: read the days, compute a column, group, count."""
    from pathlib import Path

    import numpy as np
    import pandas as pd

    def read(table: str, columns: list[str]) -> pd.DataFrame:
        days = sorted(Path(store, table).glob("date=*"))
        wanted = [day for day in days if date.fromisoformat(day.name[5:]) < date.fromisoformat(until)]
        return pd.concat([pd.read_parquet(file, columns=columns) for day in wanted for file in day.glob("*.parquet")])

    sizes = [4096 << power for power in range(9)]
    names = [f"{direction}_ios_{size}" for direction in ("read", "write") for size in sizes]
    df = read("target_sizes", ["time", "target", "duration_s", *names])
    busy = sum(df[f"write_ios_{s}"] * (W0 + W1 * s) + df[f"read_ios_{s}"] * (R0 + R1 * s) for s in sizes)
    df["fsu"] = 100 * busy / df["duration_s"]
    small = sum(
        df[f"write_ios_{s}"] * s * (W0 / 2**20 + W1) + df[f"read_ios_{s}"] * s * (R0 / 2**20 + R1) for s in sizes
    )
    df["optimal_fsu"] = 100 * small / df["duration_s"]
    df["optimal"] = df["write_ios_1048576"] + df["read_ios_1048576"]
    df["all"] = df[names].sum(axis=1)
    ticks = df.groupby("time").agg(
        {"fsu": "mean", "optimal_fsu": "mean", "duration_s": "mean", "optimal": "sum", "all": "sum"}
    )
    category = pd.cut(ticks["fsu"], [-1, 2, 30, np.inf], labels=["idle", "moderate", "busy"])
    ticks.groupby(category, observed=False)[["optimal", "all"]].sum()
    np.histogram(ticks["fsu"], bins=[*np.arange(0, 202, 2), np.inf])
    df[names].sum()
    df.groupby("target")["fsu"].mean()
    io = read("target_io", ["time", "target", "duration_s", "read_bytes", "write_bytes"])
    io.groupby("time")[["read_bytes", "write_bytes"]].sum()
    io.groupby("target")[["read_bytes", "write_bytes"]].sum()
    io.groupby(io["time"].dt.date)[["read_bytes", "write_bytes"]].sum()


CONTESTANTS: dict[str, Callable[[str, str], None]] = {
    "decode": decode,
    "file-system": file_system,
    "whole": whole,
    "again": again,
    "pandas": pandas,
}


def main() -> None:
    """Run one contestant a few times."""
    name, store, until, repeats = sys.argv[1:5]
    times, spent = [], []
    for _ in range(int(repeats) if name != "pandas" else 1):
        began, used = time.perf_counter(), time.process_time()
        CONTESTANTS[name](store, until)
        times.append(time.perf_counter() - began)
        spent.append(time.process_time() - used)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": min(times), "processor_s": min(spent), "peak_mib": peak}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
