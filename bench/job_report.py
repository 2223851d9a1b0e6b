"""What a job report costs: `job begin` and `end` on a node, and the report of many nodes. `python -m bench.job_report`.

A node has mounted one file system of 248 OSTs. Begin and end are timed as processes of their own, each a new job,
beside a Python that does nothing: of the full package, and of `iolens-agent.pyz` with its modules compiled and without.
The report reads the files of all nodes in one process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

from iolens.api.job_report import report_of_folder
from iolens.sources.job_samples import BEGIN, END, JobSample
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


# The peak of a process includes what the process that started it had in memory: so a small one starts it, waits, and
# prints what it used.
STARTER = """
import os, sys, time
begun = time.perf_counter()
child = os.fork()
if not child:
    os.dup2(2, 1)
    os.execv(sys.argv[1], sys.argv[1:])
_, status, used = os.wait4(child, 0)
print(time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
sys.exit(os.waitstatus_to_exitcode(status))
"""


class Cost(NamedTuple):
    """Of one process."""

    wall_s: float
    processor_s: float
    peak_mib: float


def cost(command: list[str], environment: dict[str, str]) -> Cost:
    """What a process took from start to end."""
    starter = [sys.executable, "-I", "-S", "-c", STARTER, *command]
    done = subprocess.run(starter, check=True, capture_output=True, text=True, env=environment)
    return Cost(*map(float, done.stdout.split()))


def programs(folder: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Each way to call iolens on a node, with the variables it needs."""
    sys.path.append(str(Path(__file__).parent.parent / "scripts"))
    import make_agent

    make_agent.OUTPUT = folder / "iolens-agent.pyz"
    make_agent.main()
    agent = [sys.executable, str(make_agent.OUTPUT)]
    compiled, not_compiled = {"XDG_CACHE_HOME": str(folder / "cache")}, {"XDG_CACHE_HOME": "/dev/null"}
    cost([*agent, "--version"], {**os.environ, **compiled})
    return {
        "iolens": ([sys.executable, "-m", "iolens.cli.main"], {}),
        "iolens-agent.pyz": (agent, compiled),
        "the same, not compiled": (agent, not_compiled),
    }


def calls(folder: Path, roots: list[Path], repeats: int) -> None:
    """Begin and end as a prolog and an epilog call them, one after the other so that a busy host meets all alike."""
    begin, end = ["job", "begin", "--root", str(roots[0])], ["job", "end", "--root", str(roots[1])]
    verbs = {"job begin": begin, "job end, no report": [*end, "--no-report"], "job end with report": end}
    costs: dict[str, list[Cost]] = {}
    for job, (program, (words, more)) in product(range(repeats), programs(folder).items()):
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "IOLENS_JOBS": str(folder / "jobs" / program)}
        environment |= {"SLURM_JOB_ID": str(job), **more}
        costs.setdefault("python -c pass", []).append(cost([sys.executable, "-c", "pass"], environment))
        for name, verb in verbs.items():
            costs.setdefault(f"{program} {name}", []).append(cost([*words, *verb], environment))
    for name, values in costs.items():
        wall, used, peak = (statistics.median(column) for column in zip(*values, strict=True))
        print(f"{name:42} {wall:6.3f} s wall, {used:6.3f} s of processor, {peak:5.1f} MiB (median of {len(values)})")


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
