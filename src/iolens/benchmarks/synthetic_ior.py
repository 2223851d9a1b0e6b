"""A workload model as a shell script of IOR runs (SPEC S12): its request sizes by weight, its mix, at random offsets.

IOR knows one size per run and no rates: each size has a run of reads and one of writes, with as many transfers as its
share asks for, so that all runs together move the model's mix. Bursts and silences are fio's part.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor
from pathlib import Path
from typing import Final

from iolens.benchmarks.synthetic_fio import Shares, TrafficBounds, request_sizes
from iolens.errors import UsageError
from iolens.models.workload_model import DIRECTIONS, WorkloadModel
from iolens.units import MIB, format_bytes

SCRIPT: Final = "workload.sh"
MOST_SIZES: Final = 16
LAYOUT_TRANSFER: Final = 4 * MIB
FILE: Final = "iolens-ior"
_CONTROL: Final = re.compile(r"[^\x20-\x7e]+")

# The words of a run, as IOR 3 and 4 document them; `--posix.odirect` is IOR 4's.
ALWAYS: Final = ("-a", "POSIX", "-F", "-k", "-s", "1", "-i", "1")


@dataclass(frozen=True, slots=True)
class IorRun:
    """Transfers of one size by every task: `transfers` each, in random order within a file of its own."""

    direction: str
    transfer_bytes: int
    transfers: int


@dataclass(frozen=True, slots=True)
class IorWorkload:
    """The runs of a script; `files` has the transfers that the file of each size has space for."""

    runs: tuple[IorRun, ...]
    files: Mapping[int, int]
    left_out: Mapping[str, Sequence[int]]  # sizes whose share is less than one transfer per task

    def requests(self, direction: str) -> int:
        """Transfers of one task in that direction."""
        return sum(run.transfers for run in self.runs if run.direction == direction)

    @property
    def read_requests_pct(self) -> float:
        """Of all transfers."""
        reads = self.requests("read")
        return 100.0 * reads / (reads + self.requests("write"))

    def size_shares(self, direction: str) -> dict[int, float]:
        """Share of the direction's transfers by size."""
        total = self.requests(direction)
        return {run.transfer_bytes: run.transfers / total for run in self.runs if run.direction == direction}


def ior_workload(model: WorkloadModel, bounds: TrafficBounds) -> IorWorkload:
    """As many transfers as the space allows, in the model's proportions."""
    most = max(1, min(MOST_SIZES, int(bounds.max_s / 2)))  # a run takes a second or more, and there are two directions
    sizes = {direction: request_sizes(model.of(direction), bounds.block_bytes, most) for direction in DIRECTIONS}
    mix = {"read": model.read_requests_pct / 100.0, "write": 1.0 - model.read_requests_pct / 100.0}
    weights = {
        direction: {size: mix[direction] * share for size, share in shares} for direction, shares in sizes.items()
    }
    per_request = sum(size * max(weight.get(size, 0.0) for weight in weights.values()) for size in _all_sizes(sizes))
    number = bounds.max_bytes / bounds.jobs / per_request  # transfers of one task whose files fill the space
    runs = [
        IorRun(direction, size, transfers)
        for size in _all_sizes(sizes)
        for direction in ("write", "read")
        if (transfers := floor(number * weights[direction].get(size, 0.0) + 1e-9))
    ]
    if {run.direction for run in runs} != set(DIRECTIONS):
        raise UsageError(f"--max-size {format_bytes(bounds.max_bytes)} leaves no transfers: name more, or fewer --jobs")
    done = {(run.direction, run.transfer_bytes) for run in runs}
    left = {
        direction: [size for size, _ in shares if (direction, size) not in done] for direction, shares in sizes.items()
    }
    files: dict[int, int] = {}
    for run in runs:
        files[run.transfer_bytes] = max(files.get(run.transfer_bytes, 0), run.transfers)
    return IorWorkload(tuple(runs), files, left)


def write_ior(model: WorkloadModel, directory: Path, bounds: TrafficBounds) -> list[Path]:
    """The script in `directory`, which is made where it is not there; returns what was written."""
    workload = ior_workload(model, bounds)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / SCRIPT
    path.write_text(script_text(model, workload, bounds), "utf-8")
    path.chmod(0o755)
    return [path]


def script_text(model: WorkloadModel, workload: IorWorkload, bounds: TrafficBounds) -> str:
    """A script for sh: nothing in it comes from a name but comments without control characters."""
    seconds = max(1, int(bounds.max_s / len(workload.runs)))
    launch = f"mpirun -np {bounds.jobs}" if bounds.jobs > 1 else ""
    layout = [
        _line("-w", size, transfers, ("-t", str(_layout_transfer(size, transfers)), "-e"))
        for size, transfers in sorted(workload.files.items())
    ]
    runs = [_line(_flag(run), run.transfer_bytes, run.transfers, _options(run, seconds)) for run in workload.runs]
    always = shlex.join([*ALWAYS, "-N", str(bounds.jobs), *(["--posix.odirect"] if bounds.direct else [])])
    return "\n".join(
        [
            "#!/bin/sh",
            *(f"# {_CONTROL.sub('?', line)}" for line in _about(model, workload, bounds, seconds)),
            "set -euf",
            ': "${DIR:?name a directory on the tested file system: DIR=/scratch/test sh workload.sh}"',
            f'IOR=${{IOR:-ior}} LAUNCH=${{LAUNCH-{launch}}} ROUNDS=${{ROUNDS:-1}}',
            'case $DIR in *@*) echo "workload.sh: IOR takes @ in a name for a list of files" >&2; exit 2 ;; esac',
            f"FILE=$DIR/{FILE}.$$",
            "",
            "run() {",
            f'    $LAUNCH "$IOR" {always} "$@"',
            "}",
            "",
            "remove() {",
            "    set +f",
            '    rm -f -- "$FILE".*',
            "}",
            "trap remove EXIT",
            "trap 'exit 130' INT TERM",
            "",
            "# Every file in full, so that reads find blocks and writes allocate none; no result of the workload.",
            *(f"{line} >&2" for line in layout),
            "",
            "round=0",
            'while [ "$round" -lt "$ROUNDS" ]; do',
            *(f"    {line}" for line in runs),
            "    round=$((round + 1))",
            "done",
            "",
        ]
    )  # fmt: skip


def _line(flag: str, size: int, transfers: int, options: Sequence[str]) -> str:
    words = [flag, *options, "-b", str(size * transfers)]
    return f'run {shlex.join(words)} -o "$FILE".{size}'


def _flag(run: IorRun) -> str:
    return "-w" if run.direction == "write" else "-r"


def _options(run: IorRun, seconds: int) -> tuple[str, ...]:
    # -E: the file is there in full; -C: each task reads what another wrote, past any cache of its own node.
    own = ("-E", "-e") if run.direction == "write" else ("-C",)
    order = ("-z",) if run.transfers > 1 else ()  # IOR refuses to put a single transfer in random order
    return (*own, *order, "-t", str(run.transfer_bytes), "-D", str(seconds))


def _layout_transfer(size: int, transfers: int) -> int:
    """The largest whole number of transfers that divides the file and is not above 4 MiB."""
    most = max(
        (part for part in range(1, transfers + 1) if transfers % part == 0 and part * size <= LAYOUT_TRANSFER),
        default=1,
    )
    return most * size


def _all_sizes(sizes: Mapping[str, Shares]) -> list[int]:
    return sorted({size for shares in sizes.values() for size, _ in shares})


def _about(model: WorkloadModel, workload: IorWorkload, bounds: TrafficBounds, seconds: int) -> list[str]:
    space = bounds.jobs * sum(size * transfers for size, transfers in workload.files.items())
    moved = {direction: bounds.jobs * workload.requests(direction) for direction in DIRECTIONS}
    lines = [
        f"Workload of {model.filesystem} for IOR: {moved['read']:,} reads and {moved['write']:,} writes a round,"
        f" {workload.read_requests_pct:.1f} % reads, on {format_bytes(space)}.",
        f"A run that is not done after {seconds} s is stopped: its size then has less than its share.",
        "DIR: the directory; IOR: the program; LAUNCH: what starts its tasks, such as 'srun -n 16'; ROUNDS: how often.",
    ]
    for side, sizes in workload.left_out.items():
        if sizes:
            words = ", ".join(format_bytes(size) for size in sizes)
            lines.append(f"Left out, for less than one transfer would fit in the space: {side}s of {words}.")
    return lines
