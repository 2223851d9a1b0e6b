"""A workload model as fio job files (SPEC S12), within bounds: its request sizes, its mix, its bursts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, isfinite
from pathlib import Path
from typing import Final

import numpy as np

from iolens.arrays import Floats
from iolens.errors import UsageError
from iolens.models.workload_model import DIRECTIONS, SEED, DirectionModel, DrawnDemand, WorkloadModel, drawn_demand
from iolens.units import GIB, KIB, MIB, format_bytes

# How large, how long and how fast made-up load may be -----------------------------------------------------------------
# What every fio job file and IOR script keeps to.


@dataclass(frozen=True, slots=True)
class TrafficBounds:
    """`share` of the file system's traffic is made (1: all of it; None: that of one target), `ssi` times as much.

    `max_bytes` is the space taken on the tested file system and `max_s` the time of a run. `jobs` processes, or MPI
    tasks, have a file each and `queue_depth` requests in flight each. Sizes are whole blocks of `block_bytes`.
    """

    share: float | None = None
    ssi: float = 1.0
    max_bytes: int = GIB
    max_s: float = 60.0
    jobs: int = 1
    queue_depth: int = 16
    block_bytes: int = 4 * KIB
    direct: bool = True
    log: bool = False  # of every request

    def __post_init__(self) -> None:
        for name, value in (("scale", self.share), ("ssi", self.ssi), ("max-time", self.max_s)):
            if value is not None and not (value > 0 and isfinite(value)):
                raise UsageError(f"--{name} must be above 0, not {value:g}")
        if self.jobs < 1 or self.queue_depth < 1 or self.block_bytes < 512 or self.block_bytes % 512:
            raise UsageError("jobs and queue depth are at least 1, blocks a multiple of 512 bytes")

    def targets(self, model: WorkloadModel) -> float:
        """How many of the model's targets the load stands for."""
        return 1.0 if self.share is None else self.share * model.targets

    def share_of(self, model: WorkloadModel) -> float:
        """Share of the file system's traffic."""
        return 1.0 / model.targets if self.share is None else self.share

    def file_bytes(self, largest_request: int) -> int:
        """Size of each process's file: whole blocks; refused where the largest request does not fit in."""
        size = self.max_bytes // self.jobs // self.block_bytes * self.block_bytes
        if size < largest_request:
            needed = format_bytes(largest_request * self.jobs)
            raise UsageError(
                f"--max-size {format_bytes(self.max_bytes)} is too small: {self.jobs} files that hold a request of"
                f" {format_bytes(largest_request)} each need {needed}"
            )
        return size


# From shares of request sizes to sizes a benchmark can ask for --------------------------------------------------------
# Whole blocks, few enough, in whole per cents.
#
# A bin stands for requests of its upper end, as in the model's mean; that is what full blocks and full RPCs are. fio
# knows whole per cents only: what rounding takes from a size in one job is given back in the next.

Shares = tuple[tuple[int, float], ...]  # request size in bytes and share of the requests, rising sizes, adding up to 1


def request_sizes(model: DirectionModel, block_bytes: int, most: int) -> Shares:
    """Sizes that can be asked for: whole blocks, at most `most` of them; neighbours are joined where there are more."""
    joined: dict[int, float] = {}
    for upper, share in model.sizes:
        size = max(upper // block_bytes, 1) * block_bytes
        joined[size] = joined.get(size, 0.0) + share
    sizes = [(size, share) for size, share in sorted(joined.items()) if share > 0.0]
    while len(sizes) > most:
        place = min(range(len(sizes) - 1), key=lambda at: sizes[at][1] + sizes[at + 1][1])
        sizes[place : place + 2] = [_joined(sizes[place], sizes[place + 1])]
    total = sum(share for _, share in sizes)
    return tuple((size, share / total) for size, share in sizes)


def _joined(item: tuple[int, float], other: tuple[int, float]) -> tuple[int, float]:
    """Two sizes as one: that of the more frequent."""
    return max(item, other, key=lambda pair: pair[1])[0], item[1] + other[1]


def mean_bytes(sizes: Shares) -> float:
    """Of a request."""
    return sum(size * share for size, share in sizes)


def most_requests(sizes: Shares) -> int:
    """The size that most requests have."""
    return max(sizes, key=lambda pair: pair[1])[0]


def most_bytes(sizes: Shares) -> int:
    """The size that carries the most bytes."""
    return max(sizes, key=lambda pair: pair[0] * pair[1])[0]


@dataclass(slots=True)
class WholePercents:
    """Shares in whole per cents, several times over: their average over the requests is what was asked for."""

    sizes: Shares
    _owed: list[float] = field(init=False)  # requests that each size should have had so far, less those it had

    def __post_init__(self) -> None:
        self._owed = [0.0] * len(self.sizes)

    def next(self, requests: float) -> dict[int, int]:
        """Per cents by size for the next so many requests; they add up to 100."""
        wanted = [
            max(100.0 * (share + owed / requests), 0.0) for (_, share), owed in zip(self.sizes, self._owed, strict=True)
        ]
        wanted = [100.0 * value / sum(wanted) for value in wanted]
        given = apportioned(wanted, 100)
        for place, ((_, share), percent) in enumerate(zip(self.sizes, given, strict=True)):
            self._owed[place] += requests * (share - percent / 100.0)
        return {size: percent for (size, _), percent in zip(self.sizes, given, strict=True) if percent}


def apportioned(wanted: Sequence[float], total: int) -> list[int]:
    """Whole numbers that add up to `total` as `wanted` does: rounded down, the largest remainders get the rest."""
    given = [floor(value) for value in wanted]
    order = sorted(range(len(wanted)), key=lambda place: given[place] - wanted[place])
    for place in order[: total - sum(given)]:
        given[place] += 1
    return given


# A workload model as fio job files (SPEC S12) -------------------------------------------------------------------------
# Its request sizes, its mix, its bursts and silences, within bounds.
#
# `layout.fio` writes the files in full, `workload.fio` runs phases one after the other, each with the request rate of
# an equal part of the model's busy time, sorted by demand. Within a phase requests come at random (Poisson), so that
# times between requests spread as the phases do. Both files take the tested directory from `$DIR`.

LAYOUT: Final = "layout.fio"
WORKLOAD: Final = "workload.fio"
MOST_SIZES: Final = 50  # fio takes 64 per direction
PHASES: Final = 8
SHORTEST_PHASE_S: Final = 0.5
MOST_SILENT: Final = 0.25  # of the run: longer silences test nothing
LAYOUT_TRANSFER: Final = MIB
_CONTROL: Final = re.compile(r"[^\x20-\x7e]+")

Options = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the run: when it begins, its length [s]; requests per second and per cents of sizes by direction.

    A direction without a request in it is absent.
    """

    name: str
    start_s: float
    length_s: float
    rates: Mapping[str, int]
    percents: Mapping[str, Mapping[int, int]]

    @property
    def requests(self) -> dict[str, float]:
        """Requests offered, by direction."""
        return {direction: rate * self.length_s for direction, rate in self.rates.items()}


@dataclass(frozen=True, slots=True)
class FioWorkload:
    """What a job file asks for: phases in the order they run, and the sizes all of them share."""

    phases: tuple[Phase, ...]
    sizes: Mapping[str, Shares]
    file_bytes: int  # of each process
    silent_share: float  # of the model's time, which the run may shorten

    def offered(self, direction: str) -> float:
        """Requests of that direction, all phases together."""
        return sum(phase.requests.get(direction, 0.0) for phase in self.phases)

    @property
    def read_requests_pct(self) -> float:
        """Of all requests offered; there is at least one."""
        reads = self.offered("read")
        return 100.0 * reads / (reads + self.offered("write"))

    def size_shares(self, direction: str) -> dict[int, float]:
        """Share of the requests by size, as the phases ask for them."""
        values: dict[int, float] = {}
        total = self.offered(direction)
        for phase in self.phases:
            for size, percent in phase.percents.get(direction, {}).items():
                values[size] = values.get(size, 0.0) + phase.requests[direction] * percent / 100.0
        return {size: count / total for size, count in sorted(values.items())}


def fio_workload(model: WorkloadModel, bounds: TrafficBounds, demand: DrawnDemand | None = None) -> FioWorkload:
    """The phases of a model within bounds; `demand` where it was drawn already, for the targets of the bounds."""
    demand = demand or drawn_demand(model, bounds.targets(model))
    sizes = {direction: request_sizes(model.of(direction), bounds.block_bytes, MOST_SIZES) for direction in DIRECTIONS}
    largest = max(size for shares in sizes.values() for size, _ in shares)
    busy = round((1.0 - demand.silent_share) * len(demand.requests_per_s["read"]))  # times
    number = max(1, min(PHASES, busy, int(bounds.max_s / (2 * SHORTEST_PHASE_S))))
    order = np.random.default_rng(SEED).permutation(number)  # bursts and lulls take turns
    levels = {direction: (_levels(demand, direction, number) * bounds.ssi)[order] for direction in DIRECTIONS}
    rates = {direction: _whole_rates(levels[direction], bounds.jobs) for direction in DIRECTIONS}
    if not any(any(rate) for rate in rates.values()):
        raise UsageError("less than a request per second is left: name a larger --scale")
    pauses = _pauses(model, number, bounds.max_s * min(demand.silent_share, MOST_SILENT))
    length = round((bounds.max_s - sum(pauses)) / number, 3)
    percents = {direction: WholePercents(shares) for direction, shares in sizes.items()}
    phases, start = [], 0.0
    for place in range(number):
        present = {direction: rates[direction][place] for direction in DIRECTIONS if rates[direction][place]}
        mixed = {direction: percents[direction].next(rate * length) for direction, rate in present.items()}
        if present:
            phases.append(Phase(f"phase-{place + 1:02}", round(start, 3), length, present, mixed))
        start += length + pauses[place]
    return FioWorkload(tuple(phases), sizes, bounds.file_bytes(largest), demand.silent_share)


def write_fio(model: WorkloadModel, directory: Path, bounds: TrafficBounds) -> list[Path]:
    """The job files in `directory`, which is made where it is not there; returns what was written."""
    workload = fio_workload(model, bounds)
    directory.mkdir(parents=True, exist_ok=True)
    files = {
        LAYOUT: layout_text(workload.file_bytes, bounds),
        WORKLOAD: workload_text(workload, bounds, _about(model, workload, bounds)),
    }
    for name, text in files.items():
        (directory / name).write_text(text, "utf-8")
    return [directory / name for name in files]


def layout_text(file_bytes: int, bounds: TrafficBounds) -> str:
    """The job that writes every block: reads of a merely allocated file never reach the disk."""
    options = {
        "rw": "write",
        "bs": min(LAYOUT_TRANSFER, file_bytes),
        "size": file_bytes,
        "numjobs": bounds.jobs,
        "end_fsync": 1,
        **_common(bounds),
        "iodepth": 4,
    }
    return _comment("Writes the files in full, before any other job.") + _section("layout", options)


def workload_text(workload: FioWorkload, bounds: TrafficBounds, about: Sequence[str] = ()) -> str:
    """The job file of all phases."""
    shared = {
        **_common(bounds),
        "size": workload.file_bytes,
        "numjobs": bounds.jobs,
        "overwrite": 1,
        "norandommap": 1,
        "time_based": 1,
        "rate_process": "poisson",
        **({"log_offset": 1, "disable_slat": 1} if bounds.log else {}),
    }
    sections = [_section("global", shared)]
    sections += [_phase_section(phase, number, bounds) for number, phase in enumerate(workload.phases)]
    return "\n".join([_comment(*about), *sections])


def saturating_text(direction: str, size: int, runtime_s: float, file_bytes: int, bounds: TrafficBounds) -> str:
    """A job of random requests of one size, as fast as they go."""
    options = {
        "rw": f"rand{direction}",
        "bs": size,
        "size": file_bytes,
        "numjobs": bounds.jobs,
        "overwrite": 1,
        "norandommap": 1,
        "time_based": 1,
        "runtime": _milliseconds(runtime_s),
        **_common(bounds),
    }
    return _section(direction, options)


def _levels(demand: DrawnDemand, direction: str, number: int) -> Floats:
    """Mean requests per second in equal parts of the time with traffic, parted by the requests of both directions."""
    total = demand.requests_per_s["read"] + demand.requests_per_s["write"]
    busy = np.flatnonzero(total)
    ordered = busy[np.argsort(total[busy], kind="stable")]
    return np.array(
        [demand.requests_per_s[direction][part].sum() / max(part.size, 1) for part in np.array_split(ordered, number)]
    )


def _whole_rates(levels: Floats, jobs: int) -> list[int]:
    """Requests per second and phase, a whole number for each process; what rounding takes is given to the next."""
    result, owed = [], 0.0
    for level in levels:
        given = jobs * max(round((level + owed) / jobs), 0)
        owed += float(level) - given
        result.append(given)
    return result


def _pauses(model: WorkloadModel, number: int, seconds: float) -> list[float]:
    """Silences after the phases, `seconds` together: as unequal as the model's own, in the order of the phases."""
    idle = model.read.idle or model.write.idle
    if not seconds or idle is None:
        return [0.0] * number
    lengths = idle.quantile((np.arange(number) + 0.5) / number)
    return [float(length) for length in seconds * lengths / lengths.sum()]


def _phase_section(phase: Phase, number: int, bounds: TrafficBounds) -> str:
    rates = {direction: rate // bounds.jobs for direction, rate in phase.rates.items()}
    options: dict[str, object] = {
        "rw": "randrw" if len(rates) > 1 else f"rand{next(iter(rates))}",
        "startdelay": _milliseconds(phase.start_s),
        "runtime": _milliseconds(phase.length_s),
        "rate_iops": ",".join(str(rate) for rate in rates.values()),  # reads, then writes; one alone is for both
        "bssplit": ",".join(_split(phase.percents[direction]) for direction in rates),
        "randseed": SEED + number,
    }
    if len(rates) > 1:
        options["rwmixread"] = round(100 * rates["read"] / sum(rates.values()))
    if bounds.log:
        options["write_lat_log"] = phase.name
    return _section(phase.name, options)


def _split(percents: Mapping[int, int]) -> str:
    return ":".join(f"{size}/{percent}" for size, percent in percents.items())


def _common(bounds: TrafficBounds) -> Options:
    return {
        "directory": "${DIR}",
        "filename_format": "iolens.$jobnum",  # a file of its own for each process, the same in all phases
        "ioengine": "libaio" if bounds.direct else "psync",  # libaio waits for buffered I/O anyway
        "direct": int(bounds.direct),
        "iodepth": bounds.queue_depth if bounds.direct else 1,
    }


def _section(name: str, options: Options) -> str:
    return "".join([f"[{name}]\n", *(f"{option}={value}\n" for option, value in options.items())])


def _milliseconds(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"


def _comment(*lines: str) -> str:
    """Lines that fio skips, whatever a name has in it."""
    return "".join(f"; {_CONTROL.sub('?', line)}\n" for line in lines)


def _about(model: WorkloadModel, workload: FioWorkload, bounds: TrafficBounds) -> list[str]:
    requests = " and ".join(f"{workload.offered(direction):,.0f} {direction}s" for direction in DIRECTIONS)
    space = format_bytes(workload.file_bytes * bounds.jobs)
    return [
        f"Workload of {model.filesystem}: {100 * bounds.share_of(model):.3g} % of its traffic, {bounds.ssi:g} times.",
        f"{requests} in at most {bounds.max_s:g} s on {space}; {workload.read_requests_pct:.1f} % reads.",
        f"The model is silent {100 * workload.silent_share:.1f} % of the time, here {100 * MOST_SILENT:g} % at most.",
        f"Run: DIR=/scratch/test fio {LAYOUT} && DIR=/scratch/test fio {WORKLOAD} --output-format=json",
    ]
