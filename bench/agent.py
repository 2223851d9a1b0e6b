"""What the sampler costs: `python -m bench.agent` prints CPU per tick, memory and spool bytes for 8 and 64 OSTs.

Sample + spool cycles on a made-up server, as fast as possible, each under the nominal time of its 5 s tick. Rewriting
the server's files between ticks is not counted. Last comes a simulated client of 248 OSTs, whose files stay the same.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.agent.server import Server

from iolens.agent.sampling.sampler import Health, Sampler, rss_bytes
from iolens.agent.sampling.spool import Spool

INTERVAL_S = 5
CLIENT_OSTS = 248
T0_US = 1_700_000_040_000_000


def measure(osts: int, jobs: int, ticks: int, client: Path | None = None) -> dict[str, float]:
    """Run in a fresh process: the figures of one size of server, or of the client under that root."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        server = Server(Path(folder) / "root", osts=osts, jobs=jobs)
        server.work()
        root = server.root if client is None else client
        import_rss = rss_bytes()
        cpu: list[float] = []
        wall: list[float] = []
        early = late = 0
        with Spool.open(Path(folder) / "spool", 64 << 30) as spool:
            sampler = Sampler(root, spool, Health(spool.host, "run"), 60_000_000)
            for number in range(ticks):
                now = T0_US + number * INTERVAL_S * 1_000_000
                if number % 10 == 0 and client is None:  # rewriting the files takes longer than reading them
                    server.work(now=now / 1e6)
                began_cpu, began = time.process_time(), time.perf_counter()
                sampler.sample(now)
                sampler.health.write(spool.directory)
                cpu.append(time.process_time() - began_cpu)
                wall.append(time.perf_counter() - began)
                if number == ticks // 10:
                    early = rss_bytes()
                if number % 60 == 59:
                    spool.close_segment()
            late = rss_bytes()
            spooled = spool.size() - spool.segment_bytes
        slow = [item for number, item in enumerate(cpu) if number % 12 == 0]
        fast = [item for number, item in enumerate(cpu) if number % 12]
        half = len(cpu) // 2
        return {
            "osts": osts,
            "jobs": jobs,
            "ticks": ticks,
            "cpu_ms_per_tick": 1e3 * sum(cpu) / ticks,
            "cpu_ms_fast_tick": 1e3 * sum(fast) / len(fast),
            "cpu_ms_slow_tick": 1e3 * sum(slow) / len(slow),
            "cpu_pct_of_a_core": 100 * sum(cpu) / ticks / INTERVAL_S,
            "second_half_over_first": sum(cpu[half:]) / sum(cpu[:half]),
            "wall_ms_per_tick": 1e3 * sum(wall) / ticks,
            "rss_mib_before": import_rss / 2**20,
            "rss_mib_tenth": early / 2**20,
            "rss_mib_end": late / 2**20,
            "spool_bytes_per_tick": spooled / ticks,
            "spool_mib_per_day": spooled / ticks * 86400 / INTERVAL_S / 2**20,
        }


def main() -> None:
    """Each size in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ticks", type=int, default=720)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--osts", type=int)
    parser.add_argument("--client", type=Path)
    options = parser.parse_args()
    if options.osts is not None:
        print(json.dumps(measure(options.osts, options.jobs, options.ticks, options.client)))
        return
    limits = ["--ticks", str(options.ticks), "--jobs", str(options.jobs)]
    for osts in (8, 64):
        show("--osts", str(osts), *limits)
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        simulate = ["simulate", "lustre", "--root", f"{folder}/oss", "--osts", str(CLIENT_OSTS), "--clients", "1"]
        last = ["--client-version", "2.15", "--speed", "1000", "--duration", "5s"]
        subprocess.run([sys.executable, "-m", "iolens.cli.main", *simulate, *last], capture_output=True, check=True)
        show("--osts", str(CLIENT_OSTS), *limits, "--client", f"{folder}/oss/clients/node0001")


def show(*options: str) -> None:
    """The figures of one run, in a process of its own."""
    done = subprocess.run([sys.executable, "-m", "bench.agent", *options], capture_output=True, text=True, check=True)
    for name, value in json.loads(done.stdout).items():
        print(f"{name:26} {value:>14,.2f}")
    print()


if __name__ == "__main__":
    main()
