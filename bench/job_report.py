"""What a job report costs: `job begin` and `end` on a node, and the report of many nodes. `python -m bench.job_report`.

A node has mounted one file system of 248 OSTs. Begin and end are timed as processes of their own, beside a Python that
does nothing; the report reads the files of all nodes in one process.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from iolens.api.job_report import report_of_folder
from iolens.sources.job_files import BEGIN, END, JobSample
from iolens.sources.lustre.lustre_client_proc import read_tree

T0 = 1_700_000_000
MOUNT = "ffff8800a1b2c000"


def client_tree(root: Path, osts: int, step: int) -> Path:
    """A client of Lustre 2.12 with RPCs of nine sizes to every OST; counters grow with `step`."""
    lustre = root / "proc/fs/lustre"
    head = f"snapshot_time:         {T0 + 600 * step}.000000001 (secs.nsecs)\nread RPCs in flight:  0\n\n"
    rows = "".join(
        f"{1 << power}:\t\t{100 * (step + 1) * (power + 1):10}  11  11   | {7 * (step + 1):10}  11  11\n"
        for power in range(9)
    )
    heading = "\t\t\tread\t\t\twrite\npages per rpc         rpcs   % cum % |       rpcs   % cum %\n"
    for ost in range(osts):
        folder = lustre / f"osc/lake-OST{ost:04x}-osc-{MOUNT}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "rpc_stats").write_text(f"{head}{heading}{rows}")
    mount = lustre / f"llite/lake-{MOUNT}"
    mount.mkdir(parents=True, exist_ok=True)
    (mount / "stats").write_text(
        f"snapshot_time             {T0 + 600 * step}.000000001 secs.nsecs\n"
        f"read_bytes                {9 * (step + 1)} samples [bytes] 1 9 {10**9 * (step + 1)}\n"
        f"write_bytes               {9 * (step + 1)} samples [bytes] 1 9 {10**9 * (step + 1)}\n"
        f"open                      {100 * (step + 1)} samples [regs]\n"
    )
    return root


def timed(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and processor seconds."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - begun, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def calls(folder: Path, roots: list[Path], repeats: int) -> None:
    """Begin and end as a prolog and an epilog call them."""
    environment = {**os.environ, "IOLENS_JOBS": str(folder / "jobs"), "SLURM_JOB_ID": "1"}
    program = [sys.executable, "-m", "iolens.cli.main"]
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "job begin": [*program, "job", "begin", "--root", str(roots[0])],
        "job end, no report": [*program, "job", "end", "--no-report", "--root", str(roots[1])],
        "job end with report": [*program, "job", "end", "--root", str(roots[1])],
    }
    for name, command in commands.items():
        times = [timed(command, environment) for _ in range(repeats)]
        wall, used = (statistics.median(values) for values in zip(*times, strict=True))
        print(f"{name:22} {wall:6.3f} s wall, {used:6.3f} s of processor (median of {repeats})")


def many(folder: Path, roots: list[Path], nodes: int) -> None:
    """The report of a job of many nodes."""
    place = folder / "many" / "1"
    place.mkdir(parents=True)
    samples = [
        replace(
            JobSample(point, "1", "n", (T0 + 600 * step) * 10**6),
            items=tuple(read_tree(root, (T0 + 600 * step) * 10**6)),
        )
        for step, (point, root) in enumerate(zip((BEGIN, END), roots, strict=True))
    ]
    for node in range(nodes):
        (place / f"n{node}.job").write_bytes(b"".join(replace(sample, node=f"n{node}").encoded() for sample in samples))
    size = sum(path.stat().st_size for path in place.iterdir())
    begun = time.perf_counter()
    report = report_of_folder(place)
    wall = time.perf_counter() - begun
    peak = (
        next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
        / 1024
    )
    (part,) = report.filesystems
    assert part.read_bytes == nodes * 10**9
    per_node = f"{1000 * wall / nodes:.1f} ms a node"
    print(f"report of {nodes:,} nodes: {wall:.1f} s ({per_node}), {size / 1e6:.1f} MB of samples, {peak:.0f} MiB")


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--osts", type=int, default=248)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        roots = [client_tree(folder / str(step), options.osts, step) for step in (0, 1)]
        print(f"a node with {options.osts} OSTs")
        calls(folder, roots, options.repeats)
        many(folder, roots, options.nodes)


if __name__ == "__main__":
    main()
