"""`make bench`: Darshan logs, read and loaded: against PyDarshan, with one and two workers, and a long trace.

Logs are copies of those below `tests/sources/darshan/logs` that differ in job and time. Every measurement runs in a
process of its own; beside the seconds that pass stand those of the processor, which other programs on the machine
change little, and peak memory: of the process itself, and of the largest of its children.
"""

from __future__ import annotations

import argparse
import json
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
from tests.sources.darshan import LOGS
from tests.sources.darshan.log_copies import END_S, JOB_ID, START_S, SplitLog
from tests.sources.darshan.test_dxt import DXT_POSIX, RECORD

LOADED, COMPARED, BY_PYDARSHAN = 20_000, 2_000, 400
ROUNDS = 3  # in turn, so that what else the machine does falls on all
SEGMENTS = 10_000_000
START, DAYS = 1_793_491_200, 28
LEAST_FASTER, LEAST_WORKERS_RATIO, MOST_TRACE_MIB = 10.0, 1.8, 500.0


def main() -> None:
    """Everything in turn, or one measurement where another process asks for it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=LOADED)
    parser.add_argument("--segments", type=int, default=SEGMENTS)
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, *arguments = options.measure
        print(json.dumps(MEASUREMENTS[name](*arguments)))
        return
    with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
        logs = Path(folder) / "logs"
        grow(logs, options.logs)
        compare(logs)
        load(logs, Path(folder), options.logs)
        trace(Path(folder) / "traced.darshan", options.segments)


def grow(folder: Path, count: int) -> None:
    """Distinct logs in directories by year, month and day."""
    sources = [SplitLog.of(path.read_bytes()) for path in sorted(LOGS.glob("*.darshan"))]
    for number in range(count):
        day = number * DAYS // count
        begin = START + day * 86_400 + number % 80_000
        path = folder / f"2026/11/{day + 1:02}" / f"user{number % 9}_ior_id{number}-1_11-1-{number}-1_1.darshan"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sources[number % len(sources)].copy({JOB_ID: number, START_S: begin, END_S: begin + 30}))


def compare(logs: Path) -> None:
    """Logs per second and core: PyDarshan's `read_all`, as arrays and as frames, against rows of all four tables.

    libdarshan-util alone is what anything that reads every record through it can reach at best.
    """
    programs = (("rows",), ("library",), ("pydarshan", "numpy"), ("pydarshan", "pandas"))
    rounds = [{program: _speed(logs, *program) for program in programs} for _ in range(ROUNDS)]
    best = {program: max(speeds[program] for speeds in rounds) for program in programs}
    ours, alone = best["rows",], best["library",]
    print(f"best of {ROUNDS}; libdarshan-util alone (open, every record, close): {alone:,.0f} logs/s/core")
    for program in programs[2:]:
        other = best[program]
        print(f"PyDarshan read_all, {program[1]}: {other:,.0f} logs/s/core; iolens {ours:,.0f}: {ours / other:.1f} "
              f"times (wanted: {LEAST_FASTER:g}; the library alone: {alone / other:.1f})")  # fmt: skip


def _speed(logs: Path, name: str, *arguments: str) -> float:
    return measured(name, str(logs), *arguments)["logs_per_s"]


def load(logs: Path, folder: Path, count: int) -> None:
    """The whole tree into a store, with one worker and with two; a quarter of it, to see whether memory grows."""
    print(
        f"{'logs':>7} {'workers':>7} {'seconds':>8} {'logs/s':>7} {'processor s':>11} {'peak MiB':>9} {'child MiB':>9}"
    )
    seconds: dict[tuple[int, int], float] = {}
    for share, workers in ((4, 1), (1, 1), (1, 2)):
        answer = measured("load", str(logs), str(folder / f"store-{share}-{workers}"), str(workers), str(share))
        seconds[share, workers] = answer["seconds"]
        speed = answer["logs"] / answer["seconds"]
        print(f"{answer['logs']:>7,.0f} {workers:>7} {answer['seconds']:>8.1f} {speed:>7,.0f} {answer['cpu_s']:>11.1f} "
              f"{answer['peak_mib']:>9.0f} {answer['child_mib']:>9.0f}")  # fmt: skip
    print(f"two workers: {seconds[1, 1] / seconds[1, 2]:.2f} times as fast (wanted: {LEAST_WORKERS_RATIO:g})")
    again = measured("load", str(logs), str(folder / "store-1-2"), "2", "1")
    print(f"again: {again['already_present']:,.0f} of {count:,} were there, {again['seconds']:.1f} s")


def trace(path: Path, segments: int) -> None:
    """A trace that is all in one record, streamed through a child."""
    measured("write", str(path), str(segments))  # elsewhere: a process begins with the peak memory of its parent
    answer = measured("trace", str(path))
    most = max(answer["peak_mib"], answer["child_mib"])
    print(f"trace of {answer['segments']:,.0f} accesses: {answer['seconds']:.1f} s, peak {answer['peak_mib']:.0f} MiB, "
          f"child {answer['child_mib']:.0f} MiB: {most / MOST_TRACE_MIB:.2f} of {MOST_TRACE_MIB:g} MiB")  # fmt: skip


def write_trace(name: str, count: str) -> dict[str, float]:
    """A log with one traced record of so many writes; version 1, without threads."""
    path, segments = Path(name), int(count)
    log = SplitLog.of((LOGS / "n1-write.darshan").read_bytes())
    packer = zlib.compressobj(1)
    pieces = [packer.compress(RECORD.pack(1, 0, 0, b"node1", segments, 0))]
    for begin in range(0, segments, 1_000_000):
        numbers = np.arange(begin, min(begin + 1_000_000, segments))
        piece = np.zeros((len(numbers), 4))
        piece[:, 0], piece[:, 1] = (numbers * 4096).view(float), np.full(len(numbers), 4096).view(float)
        piece[:, 2], piece[:, 3] = numbers * 1e-6, numbers * 1e-6 + 5e-7
        pieces.append(packer.compress(piece.tobytes()))
    packed = b"".join([*pieces, packer.flush()])
    whole = bytearray(log.rewritten(log.regions()))
    versions = len(log.head) + struct.calcsize("<130Q")
    whole[versions + 4 * (DXT_POSIX - 1)] = 1
    struct.pack_into("<QQ", whole, len(log.head) + 16 * DXT_POSIX, len(whole), len(packed))
    path.write_bytes(bytes(whole) + packed)
    return {"bytes": path.stat().st_size}


def measured(*arguments: str) -> dict[str, float]:
    """One measurement, in a process whose memory is its own."""
    command = [sys.executable, "-m", "bench.darshan", "--measure", *arguments]
    answer: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


def pydarshan_speed(logs: str, dtype: str) -> dict[str, float]:
    """PyDarshan with everything it reads by default."""
    import warnings

    warnings.simplefilter("ignore")
    import darshan

    paths = sorted(Path(logs).rglob("*.darshan"))[:BY_PYDARSHAN]
    darshan.DarshanReport(str(paths[0]), dtype=dtype, read_all=True)
    began = time.process_time()
    for path in paths:
        darshan.DarshanReport(str(path), dtype=dtype, read_all=True)
    return {"logs_per_s": len(paths) / (time.process_time() - began)}


def library_speed(logs: str) -> dict[str, float]:
    """Every record of every module through libdarshan-util, each over the one before, and nothing else."""
    import ctypes
    import os

    from iolens.sources.darshan.library import LogHandle, library

    util, paths = library(), sorted(map(os.fsencode, Path(logs).rglob("*.darshan")))[:COMPARED]
    slot = ctypes.create_string_buffer(1 << 20)
    pointer = ctypes.c_void_p(ctypes.addressof(slot))
    address = ctypes.addressof(pointer)

    def read(path: bytes) -> None:
        handle = util.darshan_log_open(path)
        for number, region in enumerate(LogHandle.from_address(handle).mod_map):
            while region.length and util.darshan_log_get_record(handle, number, address) == 1:
                pass
        util.darshan_log_close(handle)

    read(paths[0])
    began = time.process_time()
    for path in paths:
        read(path)
    return {"logs_per_s": len(paths) / (time.process_time() - began)}


def row_speed(logs: str) -> dict[str, float]:
    """Rows of all tables as the child makes them, here without a child."""
    from iolens.sources.darshan.log import LogBatch
    from iolens.sources.darshan.rows import RowOptions, in_arrow, rows_of_batch
    from iolens.store.ingest import MOST

    paths = sorted(Path(logs).rglob("*.darshan"))[:COMPARED]

    def read(paths: list[Path]) -> None:
        batch = LogBatch()
        for path in paths:
            batch.read(path, str(path))
        for rows in rows_of_batch(batch, RowOptions()).values():
            in_arrow(rows)

    read(paths[:10])
    began = time.process_time()
    for first in range(0, len(paths), MOST):
        read(paths[first : first + MOST])
    return {"logs_per_s": len(paths) / (time.process_time() - began)}


def loading(logs: str, store: str, workers: str, share: str) -> dict[str, float]:
    """Load the first part of the tree as `iolens ingest darshan` does."""
    from iolens.api.ingest import ingest_places
    from iolens.config import Config
    from iolens.sources import ReadOptions
    from iolens.sources.darshan.darshan import stop_readers
    from iolens.store.store import Store

    days = sorted(Path(logs).glob("*/*/*"))
    places = [str(day) for day in days[: len(days) // int(share)]]
    began = time.perf_counter()
    tally = ingest_places(Store(store), Config(), places, ReadOptions(), source="darshan", workers=int(workers))
    seconds = time.perf_counter() - began
    stop_readers()
    return {"logs": tally.captures, "already_present": tally.already_present, "seconds": seconds, **resources()}


def tracing(path: str) -> dict[str, float]:
    """Read a trace to its end."""
    from iolens.sources.darshan.traces import segments

    began = time.perf_counter()
    total = sum(len(chunk) for chunk in segments(path))
    return {"segments": total, "seconds": time.perf_counter() - began, **resources()}


def resources() -> dict[str, float]:
    """Of this process and of its children that have ended."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    used = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    return {"cpu_s": used, "peak_mib": own.ru_maxrss / 1024, "child_mib": children.ru_maxrss / 1024}


MEASUREMENTS = {
    "pydarshan": pydarshan_speed,
    "write": write_trace,
    "library": library_speed,
    "rows": row_speed,
    "load": loading,
    "trace": tracing,
}

if __name__ == "__main__":
    main()
