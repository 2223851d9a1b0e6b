"""One page of one Darshan log, beside PyDarshan's and Drishti's: `python -m bench.run_summary [LOG]`.

All are run in turn as processes of their own, so that what else the machine does falls on all; once before, not
counted, so that the bytecode of a checkout is there as that of installed packages is. Drishti (PyPI:
drishti-io) belongs in an environment of its own: `DRISHTI=/path/to/drishti` names the command, else it is looked for on
PATH, and left out where it is not there.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FINDINGS = "iolens runs summary"
EXAMPLE = Path(__file__).parent.parent / "docs" / "examples" / "climate.darshan"


def timed(command: list[str], folder: Path) -> tuple[float, float]:
    """Wall and processor seconds of a command and its children."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder,
                          env=environment)  # fmt: skip
    if done.returncode not in (0, 3):  # 3: the log is not complete
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - begun, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", nargs="?", type=Path, default=EXAMPLE)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--findings-only", action="store_true", help="leave out what draws figures")
    options = parser.parse_args()
    log = str(options.log.resolve())
    ours = [sys.executable, "-m", "iolens.cli.main", "runs", "summary", log]
    commands = {
        FINDINGS: ours,
        "iolens runs summary --html": [*ours, "--html", "a.html"],
        "python -m darshan summary": [sys.executable, "-m", "darshan", "summary", log],
    }  # fmt: skip
    if drishti := os.environ.get("DRISHTI") or shutil.which("drishti"):
        commands["drishti"] = [drishti, log]
    else:
        print("drishti: not on PATH, and DRISHTI does not name it: left out")
    if options.findings_only:
        commands = {name: command for name, command in commands.items() if name in (FINDINGS, "drishti")}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.repeats + 1):
            for name, command in commands.items():
                seconds = timed(command, Path(folder))
                times[name] += [seconds] if turn else []
    medians = {name: [statistics.median(part) for part in zip(*pairs, strict=True)] for name, pairs in times.items()}
    for name, (wall_s, processor_s) in medians.items():
        least = min(processor for _, processor in times[name])
        print(f"{name:30}{wall_s:8.2f} s{processor_s:8.3f} s of the processor, at least {least:.3f}")
    owns = [name for name in commands if name.startswith("iolens")]
    for name in [*commands][len(owns) :]:
        for own in owns:
            wall, processor = (other / ours for other, ours in zip(medians[name], medians[own], strict=True))
            print(f"{name} ÷ {own}: {wall:.1f} of wall time, {processor:.1f} of the processor")


if __name__ == "__main__":
    main()
