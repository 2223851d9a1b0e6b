"""What PyDarshan says of logs, as JSON: run once, in a process of its own, for all logs that tests compare.

    python pydarshan_figures.py LOG…

By log and module: bytes, records, files, histograms and the performance by the slowest rank; and these by layer, of the
files that count there in MiB/s/CN. `null` for a log that PyDarshan cannot read.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

warnings.simplefilter("ignore")

import darshan.backend.cffi_backend as backend  # noqa: E402
import pandas as pd  # noqa: E402

MODULES = ("POSIX", "STDIO", "MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR")
ACCUMULATED = ("POSIX", "STDIO", "MPI-IO")
LAYERS = (("MPI-IO",), ("POSIX", "STDIO"))  # the higher first
STREAMS = ("<STDIN>", "<STDOUT>", "<STDERR>")

Frames = dict[str, pd.DataFrame]


def figures(path: str) -> dict[str, Any]:
    """The figures of one log."""
    log = backend.log_open(path)
    job = backend.log_get_job(log)
    modules = backend.log_get_modules(log)
    names = backend.log_get_name_records(log)
    frames = {name: frames_of(log, name) for name in MODULES if name in modules}
    figures_of: dict[str, Any] = {
        "job": {name: job[name] for name in ("uid", "nprocs", "jobid", "run_time", "start_time_sec", "log_ver")},
        "command": backend.log_get_exe(log),
        "mounts": backend.log_get_mounts(log),
        "modules": list(modules),
        "totals": {name: module(frames[name], name, job["nprocs"]) for name in frames},
        "rate": rate(frames, {record for record, name in names.items() if name in STREAMS}, job["nprocs"]),
        "names": {str(record): name for record, name in names.items()},
        "heat": heat(log) if "HEATMAP" in modules else [],
        "stripes": stripes(log) if "LUSTRE" in modules else [],
        "segments": {name: segments(log, name) for name in ("DXT_POSIX", "DXT_MPIIO") if name in modules},
    }
    backend.log_close(log)
    return figures_of


def frames_of(log: Any, name: str) -> Frames:
    """The records of one module."""
    records = []
    while (record := backend.log_get_record(log, name, dtype="numpy")) is not None:
        records.append(record)
    counters, times = backend.counter_names(name), backend.fcounter_names(name)
    ids = {"id": [record["id"] for record in records], "rank": [record["rank"] for record in records]}
    whole = pd.DataFrame([record["counters"] for record in records], columns=counters)
    parts = pd.DataFrame([record["fcounters"] for record in records], columns=times)
    return {
        "counters": pd.concat([pd.DataFrame(ids), whole], axis=1),
        "fcounters": pd.concat([pd.DataFrame(ids), parts], axis=1),
    }


def rate(frames: Mapping[str, Frames], streams: set[int], processes: int) -> dict[str, Any]:
    """Darshan's own bytes and time by layer, of the records of files that count there; and all together.

    A layer's time is that of its slowest rank; of several layers together, ranks are added up before.
    """
    moved: dict[tuple[int, str], int] = {}
    for name in [name for name in ACCUMULATED if name in frames]:
        columns = [f"{name.replace('-', '')}_BYTES_{what}" for what in ("READ", "WRITTEN")]
        whole = frames[name]["counters"]
        for file, read, written in zip(whole["id"], *(whole[column] for column in columns), strict=True):
            moved[file, name] = moved.get((file, name), 0) + max(int(read), 0) + max(int(written), 0)
    parts: dict[str, dict[str, float]] = {}
    own: defaultdict[int, float] = defaultdict(float)
    shared_s = 0.0
    for layer in LAYERS:
        for name in layer:
            if name not in frames:
                continue
            chosen = frames[name]["counters"]["id"].map(
                lambda file, layer=layer: file not in streams and _layer(moved, file) == layer
            )
            kept = {kind: frame[chosen.astype(bool)].reset_index(drop=True) for kind, frame in frames[name].items()}
            if not len(kept["counters"]):
                continue
            derived = backend.accumulate_records(kept, name, processes).derived_metrics
            parts[name] = {
                "bytes": derived.total_bytes,
                "seconds": derived.agg_time_by_slowest,
                "mib_per_s": derived.agg_perf_by_slowest,
            }
            times, prefix = kept["fcounters"], f"{name.replace('-', '')}_F_"
            spent = sum(times[f"{prefix}{kind}_TIME"].clip(lower=0.0) for kind in ("META", "READ", "WRITE"))
            for rank, seconds, slowest_s in zip(times["rank"], spent, times[f"{prefix}SLOWEST_RANK_TIME"], strict=True):
                if rank < 0:
                    shared_s += slowest_s
                else:
                    own[rank] += seconds
    whole_s = max(own.values(), default=0.0) + shared_s
    return {"layers": parts, "bytes": sum(part["bytes"] for part in parts.values()), "seconds": whole_s}


def _layer(moved: Mapping[tuple[int, str], int], file: int) -> tuple[str, ...]:
    """The highest that moved bytes of a file, else the highest that has it."""
    bytes_of = {layer: [moved[file, name] for name in layer if (file, name) in moved] for layer in LAYERS}
    return next((layer for layer in LAYERS if sum(bytes_of[layer])), next(key for key in LAYERS if bytes_of[key]))


def module(frames: Frames, name: str, processes: int) -> dict[str, Any]:
    """Sums over the records of one module."""
    whole, parts = frames["counters"], frames["fcounters"]
    counters, times = backend.counter_names(name), backend.fcounter_names(name)
    totals: dict[str, Any] = {
        "records": len(whole),
        "files": len(set(whole["id"])),
        "counters": {column: int(whole[column][whole[column] >= 0].sum()) for column in counters},
        "times": {column: float(parts[column][parts[column] >= 0].sum()) for column in times},
    }
    if name in ACCUMULATED and len(whole):
        derived = backend.accumulate_records(frames, name, processes).derived_metrics
        totals["agg_perf_by_slowest"] = derived.agg_perf_by_slowest
        totals["agg_time_by_slowest"] = derived.agg_time_by_slowest
        totals["total_bytes"] = derived.total_bytes
        totals["file_count"] = derived.category_counters[0].count
    return totals


def heat(log: Any) -> list[Any]:
    """Bytes of each heat map by record and rank."""
    maps = []
    while (record := backend.log_get_record(log, "HEATMAP")) is not None:
        read, written = (int(record[f"{direction}_bins"].sum()) for direction in ("read", "write"))
        maps.append([str(record["id"]), record["rank"], record["bin_width_seconds"], read, written])
    return maps


def stripes(log: Any) -> list[Any]:
    """OSTs of each Lustre record."""
    figures_of = []
    while (record := backend.log_get_record(log, "LUSTRE", dtype="dict")) is not None:
        figures_of.append([str(record["id"]), [ost for part in record["components"] for ost in part["ost_ids"]]])
    return figures_of


def segments(log: Any, name: str) -> dict[str, int]:
    """How many accesses were traced, and their bytes."""
    total = {"read": 0, "write": 0, "bytes": 0}
    while (record := backend.log_get_record(log, name, dtype="dict")) is not None:
        for direction in ("read", "write"):
            total[direction] += record[f"{direction}_count"]
            total["bytes"] += sum(segment["length"] for segment in record[f"{direction}_segments"])
    return total


if __name__ == "__main__":
    answers: dict[str, Any] = {}
    for path in sys.argv[1:]:
        try:
            answers[path] = figures(path)
        except Exception:
            answers[path] = None
    json.dump(answers, sys.stdout)
