"""One contestant of `bench.workload` in a process of its own: prints seconds and peak memory as JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

COLUMNS = ["time", "target", "duration_s", "read_bytes", "write_bytes", "read_ops", "write_ops"]


def workload(store: str) -> None:
    """iolens: every section of `workload`."""
    import iolens

    iolens.open(store, fresh=True).workload()


def both(store: str) -> None:
    """iolens: `workload` and `imbalance`, asked together as a report does, so that rows are read once."""
    import iolens

    dict(iolens.open(store, fresh=True).together({"workload": {}, "imbalance": {}}))


def again(store: str) -> None:
    """The same with what is remembered; the first time, nothing is."""
    import iolens

    dict(iolens.open(store).together({"workload": {}, "imbalance": {}}))


def day(store: str) -> None:
    """The same where all but one day is remembered."""
    last = max(folder.name for folder in Path(store, "parts").glob("workload-*/*"))
    for file in Path(store, "parts").glob(f"*/{last}/*.part"):
        file.unlink()
    for file in Path(store, "parts").glob("*/any/*.part"):
        file.unlink()
    again(store)


def decode(store: str) -> None:
    """DuckDB reads the same columns of the same files and takes the maximum of each."""
    from iolens.store.duckdb_engine import relation
    from iolens.store.store import Store

    chosen = Store(store).select()
    files = relation(chosen.tables, "target_io", chosen.snapshot("target_io").paths)
    # The filter keeps DuckDB from answering out of the statistics of a single file without decoding it.
    files.filter("duration_s > 0").aggregate(", ".join(f'max("{name}")' for name in COLUMNS)).to_arrow_table()


def pandas(store: str) -> None:
    """The straightforward script for the same numbers: read everything, add columns, group."""
    import numpy as np
    import pandas as pd

    files = sorted(Path(store, "target_io").glob("date=*/*.parquet"))
    df = pd.concat([pd.read_parquet(file, columns=COLUMNS) for file in files]).sort_values(["target", "time"])
    for direction in ("read", "write"):
        df[f"{direction}_rate"] = df[f"{direction}_bytes"] / df["duration_s"]
        df.groupby("target")[f"{direction}_rate"].quantile([0.95, 0.99, 1.0])
        idle = df[f"{direction}_ops"] == 0
        run = (idle != idle.shift()).cumsum() + df["target"].ne(df["target"].shift()).cumsum()
        lengths = df[idle].groupby(run[idle]).size() * df["duration_s"].iloc[0]
        spacing = (df["duration_s"] / df[f"{direction}_ops"])[~idle]
        for sample in (df[f"{direction}_rate"][df[f"{direction}_rate"] > 0], spacing, lengths):
            logs = np.log(sample / sample.min())
            len(sample) / logs.sum()
            sample.quantile(np.arange(1, 1000) / 1000)
    df.groupby("target")[["read_bytes", "write_bytes", "read_ops", "write_ops"]].sum()
    df["total"] = df["read_rate"] + df["write_rate"]
    ticks = df.groupby("time").agg(
        read=("read_rate", "sum"), write=("write_rate", "sum"), std=("total", "std"), low=("total", "min"),
        mean=("total", "mean"), high=("total", "max"),
    )  # fmt: skip
    ticks.quantile([0.5, 0.8, 0.95, 0.99, 1.0])
    for share in (0.8, 0.95):
        hot = ticks["std"] >= ticks["std"].quantile(share)
        runs = (hot != hot.shift()).cumsum()
        ticks.groupby(runs).size()[lambda sizes: sizes > 0].quantile([0.5, 0.9, 1.0])
    minutes = ticks[["read", "write"]].resample("60s").mean().sum(axis=1)
    quiet = minutes < 0.05 * minutes.max()
    quiet.groupby((quiet != quiet.shift()).cumsum()).sum()
    ticks.groupby(ticks.index.dayofweek)[["read", "write"]].mean()
    ticks.groupby(ticks.index.hour)[["read", "write"]].mean()


CONTESTANTS: dict[str, Callable[[str], None]] = {
    "decode": decode, "workload": workload, "both": both, "again": again, "day": day, "pandas": pandas,
}  # fmt: skip


def peak_mib() -> float:
    """The largest resident size of this process alone."""
    status = Path("/proc/self/status").read_text("ascii")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def main() -> None:
    """Run one contestant a few times."""
    name, store, repeats = sys.argv[1:4]
    times = []
    for _ in range(int(repeats)):
        began = time.perf_counter()
        CONTESTANTS[name](store)
        times.append(time.perf_counter() - began)
    print(json.dumps({"seconds": min(times), "peak_mib": peak_mib()}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
