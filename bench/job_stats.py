"""What ten thousand jobs on each target cost: parser, sampler with its spool, and loader, against peers.

`python -m bench.job_stats` makes job_stats of Lustre 2.12, 2.15 and 2.16 and prints processor time: of parsing one text
(also with PyYAML, and with a regular expression for each counter, as lustre_exporter does it), of a reading of eight
OSTs into the spool, and of loading ten such readings into a store. Each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from iolens.agent.sampling.sampler import Health, Sampler
from iolens.agent.sampling.shipper import ship
from iolens.agent.sampling.spool import Spool
from iolens.sources.lustre.job_stats import parse_job_stats
from iolens.sources.lustre.lustre_proc import PROC_OBDFILTER

VERSIONS = ("2.12", "2.15", "2.16")
T0_S = 1_700_000_040
INTERVAL_S = 60
BUSY_SHARE = 5  # one job in five moves between two readings
OPERATIONS = (
    "getattr", "setattr", "punch", "sync", "destroy", "create", "statfs", "get_info", "set_info", "quotactl",
)  # fmt: skip
PEER_JOBS = 500  # for peers that take a minute with ten thousand; their cost grows with the text


def job_stats(version: str, jobs: int, reading: int) -> bytes:
    """The text of one OST after so many readings."""
    entries = (_entry(version, number, reading if number % BUSY_SHARE == 0 else 0) for number in range(jobs))
    return ("job_stats:\n" + "".join(entries)).encode()


def _entry(version: str, number: int, reading: int) -> str:
    now = T0_S + reading * INTERVAL_S
    is_old = version == "2.12"
    unit, rest = (" reqs", "") if is_old else ("usecs", ", min: {0:8}, max: {1:8}, sum: {2:16}, sumsq: {3:18}")
    took = 9 * (number + 1)
    counted = 1000 * (reading + 1)
    size, sums = (7, 15) if is_old else (8, 16)
    lines = [f"- job_id:          {4_000_000 + number}"]
    if is_old:
        lines.append(f"  snapshot_time:   {now}")
    else:
        lines.append(f"  snapshot_time:   {now}.{number % 1000:03d}456789 secs.nsecs")
        lines.append(f"  start_time:      {T0_S - number}.012345678 secs.nsecs")
        lines.append(f"  elapsed_time:    {now - T0_S + number}.987654321 secs.nsecs")
    for place, name in enumerate(("read_bytes", "write_bytes")):
        moved = (number + 1) * counted * (1 << 20)
        squares = "" if is_old else f", sumsq: {moved * 4096:18}"
        squares += f", hist: {{ 4K: {counted}, 64K: {number + 1}, 4M: {counted} }}" if version == "2.16" else ""
        lines.append(
            f"  {name + ':':16} {{ samples: {counted * (place + 1):11}, unit: bytes, min: {4096:{size}}, "
            f"max: {4194304:{size}}, sum: {moved:{sums}}{squares} }}"
        )
    timed = () if is_old else ("read", "write")
    for name in (*timed, *OPERATIONS):
        count = counted if name in ("read", "write", "punch", "create", "statfs") else 0
        lines.append(f"  {name + ':':16} {{ samples: {count:11}, unit: {unit}{rest.format(*[count * took] * 4)} }}")
    return "\n".join(lines) + "\n"


def cpu_ms(work: Callable[[], object], times: int = 5) -> float:
    """The least processor time of a few runs, in milliseconds."""
    spent = []
    for _ in range(times):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return 1e3 * min(spent)


def by_expressions(text: bytes) -> int:
    """What lustre_exporter does: the text is cut at each job, and each counter searched in the whole of its block."""
    matches = 0
    for block in re.findall(r"(?ms:job_id:.*?$.*?(?=-|\Z))", text.decode()):
        re.search(r"job_id:\s*(\S+)", block)
        for name in ("read_bytes", "write_bytes", *OPERATIONS):
            for key in ("samples", "sum") if name.endswith("bytes") else ("samples",):
                line = re.search(rf"(?m)^\s*{name}:.*$", block)
                matches += line is not None and re.search(rf"{key}:\s+(\d+)", line[0]) is not None
    return matches


def parsing(version: str, jobs: int) -> dict[str, float]:
    """One text."""
    text = job_stats(version, jobs, 3)
    parsed = parse_job_stats(text, "bench")
    assert (len(parsed.jobs), parsed.problems) == (jobs, [])
    result = {"text_mb": len(text) / 1e6, "parse_ms": cpu_ms(lambda: parse_job_stats(text, "bench"))}
    small = job_stats(version, PEER_JOBS, 3)
    scale = jobs / PEER_JOBS
    result["expressions_ms"] = cpu_ms(lambda: by_expressions(small), 1) * scale
    try:
        import yaml
    except ImportError:
        return result
    result["pyyaml_ms"] = cpu_ms(lambda: yaml.safe_load(small), 1) * scale
    if hasattr(yaml, "CSafeLoader"):
        result["pyyaml_libyaml_ms"] = cpu_ms(lambda: yaml.load(small, yaml.CSafeLoader), 1) * scale
    return result


def sampling(version: str, jobs: int, osts: int, readings: int) -> dict[str, float]:
    """Readings of a server into the spool, then the spool into a store."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        root, cpu = Path(folder) / "root", []
        with Spool.open(Path(folder) / "spool", 64 << 30) as spool:
            sampler = Sampler(root, spool, Health(spool.host, "run"), INTERVAL_S * 1_000_000)
            for reading in range(readings):
                write_server(root, version, jobs, osts, reading)
                began = time.process_time()
                sampler.sample((T0_S + reading * INTERVAL_S) * 1_000_000)
                cpu.append(time.process_time() - began)
            assert sampler.health.refused == 0
            sampler_rss = peak_mib()
            spooled = spool.size() - spool.segment_bytes
        loaded = json.loads(run("--load", str(Path(folder) / "spool"), "--store", str(Path(folder) / "store")))
    return {
        "sampler_ms_per_reading": 1e3 * sum(cpu) / readings,
        "sampler_peak_mib": sampler_rss,
        "spool_mb_per_reading": spooled / readings / 1e6,
        **loaded,
    }


def write_server(root: Path, version: str, jobs: int, osts: int, reading: int) -> None:
    """The tree of a server; all its OSTs list the same jobs."""
    text = job_stats(version, jobs, reading)
    for number in range(osts):
        folder = root / PROC_OBDFILTER.directory / f"lake-OST{number:04x}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "job_stats").write_bytes(text)
        stamp = f"snapshot_time             {T0_S + reading * INTERVAL_S}.000000000 secs.nsecs\n"
        (folder / "stats").write_text(stamp + f"read_bytes                {reading} samples [bytes] 1 1 {reading}\n")


def load(spool: Path, place: Path) -> dict[str, float]:
    """All segments into a new store, as the agent's child does it."""
    rows, began = 0, time.process_time()
    while (shipment := ship(spool, str(place))).shipped:
        assert not shipment.reasons, shipment.reasons
        rows += shipment.rows
    cpu_s = time.process_time() - began
    return {"load_s": cpu_s, "load_rows": rows, "load_rows_per_s": rows / cpu_s, "load_peak_mib": peak_mib()}


def peak_mib() -> float:
    """The most memory this process had since its start."""
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(peak[1]) / 1024 if peak else 0.0


def run(*options: str) -> str:
    """What the benchmark prints with these options, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.job_stats", *options], capture_output=True, text=True, check=True
    )
    return done.stdout


def main() -> None:
    """Each version and part in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--osts", type=int, default=8)
    parser.add_argument("--readings", type=int, default=10)
    parser.add_argument("--parse", choices=VERSIONS)
    parser.add_argument("--sample", choices=VERSIONS)
    parser.add_argument("--load", type=Path)
    parser.add_argument("--store", type=Path)
    options = parser.parse_args()
    if options.parse:
        print(json.dumps(parsing(options.parse, options.jobs)))
    elif options.sample:
        print(json.dumps(sampling(options.sample, options.jobs, options.osts, options.readings)))
    elif options.load:
        print(json.dumps(load(options.load, options.store)))
    else:
        show(options)


def show(options: argparse.Namespace) -> None:
    """All figures."""
    sizes = ["--jobs", str(options.jobs), "--osts", str(options.osts), "--readings", str(options.readings)]
    for version in VERSIONS:
        print(f"Lustre {version}, {options.jobs:,} jobs")
        for part in ("--parse", "--sample"):
            for name, value in json.loads(run(part, version, *sizes)).items():
                print(f"  {name:24} {value:>12,.1f}", flush=True)


if __name__ == "__main__":
    main()
