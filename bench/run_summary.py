"""One page of one Darshan log, beside PyDarshan's: `python -m bench.run_summary [LOG]`.

Both are run in turn as processes of their own, so that what else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent / "docs" / "examples" / "climate.darshan"


def timed(command: list[str], folder: Path) -> tuple[float, float]:
    """Wall and processor seconds of a command and its children."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    if done.returncode not in (0, 3):  # 3: the log is not complete
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - begun, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", nargs="?", type=Path, default=EXAMPLE)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    log = str(options.log.resolve())
    ours = [sys.executable, "-m", "iolens.cli.main", "runs", "summary", log]
    commands = {
        "iolens runs summary": ours,
        "iolens runs summary --html": [*ours, "--html", "a.html"],
        "python -m darshan summary": [sys.executable, "-m", "darshan", "summary", log],
    }  # fmt: skip
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.repeats):
            for name, command in commands.items():
                times[name].append(timed(command, Path(folder)))
    medians = {name: [statistics.median(part) for part in zip(*pairs, strict=True)] for name, pairs in times.items()}
    whole = medians["python -m darshan summary"]
    for name, (wall_s, processor_s) in medians.items():
        ratios = f"{whole[0] / wall_s:6.1f} ×{whole[1] / processor_s:8.1f} ×"
        print(f"{name:30}{wall_s:8.2f} s{processor_s:8.2f} s of the processor{ratios}")


if __name__ == "__main__":
    main()
