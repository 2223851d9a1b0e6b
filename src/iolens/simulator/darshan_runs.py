"""Application runs whose I/O is known: what each rank does to each file, and what Darshan must say of it.

A run is files with reads and writes by size, and a strategy that says which ranks share that work. Times within a run
count from its start. Every time is a sum of what single accesses and metadata operations take.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, get_args

from iolens.errors import UsageError
from iolens.models.transaction_time import Calibration
from iolens.simulator.darshan_accesses import (
    Accesses,
    Direction,
    FileWork,
    SimulatedFileUse,
    Sizes,
    by_rank,
    consecutive,
    divided,
    in_turn,
    scattered,
    transfers,
)
from iolens.units import MIB

Strategy = Literal["rank0", "subset", "file_per_process", "shared", "partially_shared", "collective", "none"]
STRATEGIES: Final[tuple[Strategy, ...]] = get_args(Strategy)
SHARED_BY_ALL: Final = ("shared", "collective")
COLLECTIVE_BUFFER_BYTES: Final = 16 * MIB
_GOLDEN: Final = 0.6180339887498949


@dataclass(frozen=True)
class SimulatedRun:
    """One run of an application. `subset_ranks`: how many ranks write (subset), write for all (collective), or share a
    file (partially_shared). `cost` is what an access takes; the slowest rank takes up to `spread` more. Aggregators
    write buffers of `collective_buffer_bytes`; None: what the files say.
    """

    executable: str
    user: str
    uid: int
    job_id: int
    start_s: float
    end_s: float
    processes: int
    strategy: Strategy
    files: tuple[FileWork, ...]
    cost: Calibration
    metadata_s: float = 1e-3
    spread: float = 0.1
    subset_ranks: int = 1
    is_interleaved: bool = False
    is_random: bool = False  # the accesses of a rank jump within its region
    transfer_bytes: int = MIB
    collective_buffer_bytes: int | None = COLLECTIVE_BUFFER_BYTES
    stripe_bytes: int = MIB
    alignment_bytes: int = MIB
    printed_bytes: int = 0
    arguments: str = ""
    mounts: tuple[tuple[str, str], ...] = (("/", "ext4"), ("/scratch", "lustre"))
    nodes: tuple[str, ...] = ()
    has_dxt: bool = False

    def __post_init__(self) -> None:
        _check(self)

    @property
    def duration_s(self) -> float:
        """Elapsed."""
        return self.end_s - self.start_s

    @cached_property
    def uses(self) -> tuple[SimulatedFileUse, ...]:
        """What POSIX sees, by file and rank."""
        uses = tuple(use for number, work in enumerate(self.files) for use in _uses(self, number, work))
        late = max((use.end_s for use in uses), default=0.0)
        busiest = max(by_rank(uses, lambda use: use.io_s).values(), default=0.0)
        if max(late, busiest) > self.duration_s:
            raise UsageError(f"I/O of {max(late, busiest):.3f} s does not fit into a run of {self.duration_s:.3f} s")
        for use in uses:
            if use.start_s <= 0:
                raise UsageError(f"{use.path}: opened at {use.start_s} s, which would mean never; after the start")
            if use.io_s > use.end_s - use.start_s:
                has_s = use.end_s - use.start_s
                raise UsageError(f"{use.path}: rank {use.rank} needs {use.io_s:.3f} s, more than {has_s:.3f} s")
        return uses

    @cached_property
    def uses_by_file(self) -> dict[str, list[SimulatedFileUse]]:
        """The same, by path."""
        grouped: dict[str, list[SimulatedFileUse]] = defaultdict(list)
        for use in self.uses:
            grouped[use.path].append(use)
        return grouped

    @property
    def is_reduced(self) -> bool:
        """All ranks open every file: Darshan keeps a single record of each, with rank −1."""
        return self.strategy in SHARED_BY_ALL and self.processes > 1

    def access_s(self, direction: Direction, rank: int, size: int) -> float:
        """What one access takes."""
        return self.accesses_s(direction, rank, 1, size)

    def accesses_s(self, direction: Direction, rank: int, count: int, moved_bytes: int) -> float:
        """What accesses take; some ranks are slower than others, always by the same factor."""
        slower = 1.0 + self.spread * ((rank * _GOLDEN) % 1.0)
        return slower * float(self.cost.of(direction).counted_seconds(count, moved_bytes))

    @cached_property
    def collective_uses(self) -> tuple[SimulatedFileUse, ...]:
        """What MPI-IO sees: every rank takes part and waits for the slowest aggregator."""
        return tuple(use for work in self.files for use in _collective(self, work))

    @cached_property
    def printed(self) -> SimulatedFileUse | None:
        """What rank 0 writes to a text file through STDIO, a line of 128 bytes at a time."""
        if not self.printed_bytes:
            return None
        lines, rest = divmod(self.printed_bytes, 128)
        writes = consecutive([(128, lines), (rest, 1 if rest else 0)])
        seconds = _seconds(self, "write", 0, writes)
        name = f"{self.mounts[-1][0].rstrip('/')}/{self.user}/{self.executable}.{self.job_id}.log"
        start_s = self.duration_s / 1000  # 0 would mean that it was never opened
        return SimulatedFileUse(name, 0, (), writes, 1, 0, self.metadata_s, 0.0, seconds, start_s, self.duration_s)


def users_of(run: SimulatedRun, number: int) -> Sequence[int]:
    """Ranks that open file `number`."""
    return _USERS[run.strategy](run, number)


def movers_of(run: SimulatedRun, number: int) -> Sequence[int]:
    """Ranks of them that read and write: the aggregators of a collective run, else all."""
    if run.strategy != "collective":
        return users_of(run, number)
    step = run.processes // run.subset_ranks
    return [number * step for number in range(run.subset_ranks)]


def longest_s(run: SimulatedRun, number: int) -> float:
    """No rank needs more time for file `number`."""
    work, users, movers = run.files[number], len(users_of(run, number)), len(movers_of(run, number))
    total = run.metadata_s * (-(-max(work.opens, users) // users) - (-work.stats // users))
    directions: tuple[Direction, ...] = ("read", "write")
    for direction, sizes in zip(directions, _posix_sizes(run, work), strict=True):
        most = [(size, -(-count // movers)) for size, count in sizes]
        moved_bytes = sum(size * count for size, count in most)
        cost = run.cost.of(direction).counted_seconds(sum(count for _, count in most), moved_bytes)
        total += (1.0 + run.spread) * float(cost)
    return total


def _subset_member(run: SimulatedRun, number: int) -> Sequence[int]:
    return ((number % run.subset_ranks) * (run.processes // run.subset_ranks),)


def _group(run: SimulatedRun, number: int) -> Sequence[int]:
    groups = run.processes // run.subset_ranks
    first = (number % groups) * run.subset_ranks
    return range(first, first + run.subset_ranks)


_USERS: Final[Mapping[str, Callable[[SimulatedRun, int], Sequence[int]]]] = {
    "rank0": lambda run, number: (0,),
    "subset": _subset_member,
    "file_per_process": lambda run, number: (number % run.processes,),
    "shared": lambda run, number: range(run.processes),
    "partially_shared": _group,
    "collective": lambda run, number: range(run.processes),
    "none": lambda run, number: (),
}


def _check(run: SimulatedRun) -> None:
    if run.strategy not in STRATEGIES:
        raise UsageError(f"no strategy is called {run.strategy!r}; they are {', '.join(STRATEGIES)}")
    if run.processes < 1 or run.duration_s <= 0:
        raise UsageError(f"a run needs processes and time: {run.processes} processes, {run.duration_s} s")
    if run.strategy == "none" and run.files:
        raise UsageError("a run with strategy 'none' has no files")
    few = 1 if run.strategy == "collective" else 2
    if run.strategy in ("subset", "partially_shared") and not few <= run.subset_ranks < run.processes:
        raise UsageError(f"{run.strategy} needs 2 or more ranks of {run.processes}, and not all: {run.subset_ranks}")
    if run.strategy == "collective" and not few <= run.subset_ranks <= run.processes:
        raise UsageError(f"{run.subset_ranks} aggregators cannot be among {run.processes} ranks")


def _uses(run: SimulatedRun, number: int, work: FileWork) -> Iterator[SimulatedFileUse]:
    users = users_of(run, number)
    movers = set(movers_of(run, number))
    reads, writes = (_placed(run, sizes, len(movers)) for sizes in _posix_sizes(run, work))
    opens, stats = divided(max(work.opens, len(users)), len(users)), divided(work.stats, len(users))
    place = 0
    for index, rank in enumerate(users):
        own: tuple[tuple[Accesses, ...], tuple[Accesses, ...]] = ((), ())
        if rank in movers:
            own, place = (reads[place], writes[place]), place + 1
        yield SimulatedFileUse(
            work.path,
            rank,
            *own,
            opens=max(1, opens[index]),
            stats=stats[index],
            metadata_s=(max(1, opens[index]) + stats[index]) * run.metadata_s,
            read_s=_seconds(run, "read", rank, own[0]),
            write_s=_seconds(run, "write", rank, own[1]),
            start_s=work.start_s,
            end_s=work.end_s,
        )


def _posix_sizes(run: SimulatedRun, work: FileWork) -> tuple[Sizes, Sizes]:
    """Accesses of POSIX: aggregators of a collective run write whole buffers."""
    if run.strategy != "collective" or run.collective_buffer_bytes is None:
        return work.reads, work.writes
    totals = (sum(size * count for size, count in sizes) for sizes in (work.reads, work.writes))
    reads, writes = (transfers(total, run.collective_buffer_bytes) for total in totals)
    return reads, writes


def _placed(run: SimulatedRun, sizes: Sizes, ranks: int) -> list[tuple[Accesses, ...]]:
    """Accesses of a file divided between ranks: regions one after another, or in turn."""
    shares = [divided(count, ranks) for _, count in sizes]
    if run.is_interleaved and run.strategy == "shared":
        return [in_turn(sizes, rank, ranks) for rank in range(ranks)]
    placed, begin = [], 0
    for rank in range(ranks):
        own = consecutive([(size, share[rank]) for (size, _), share in zip(sizes, shares, strict=True)], begin)
        placed.append(tuple(map(scattered, own)) if run.is_random else own)
        begin += sum(accesses.moved_bytes for accesses in own)
    return placed


def _seconds(run: SimulatedRun, direction: Direction, rank: int, accesses: Sequence[Accesses]) -> float:
    count, moved_bytes = sum(part.count for part in accesses), sum(part.moved_bytes for part in accesses)
    return run.accesses_s(direction, rank, count, moved_bytes)


def _collective(run: SimulatedRun, work: FileWork) -> Iterator[SimulatedFileUse]:
    if run.strategy != "collective":
        return
    totals = [sum(size * count for size, count in sizes) for sizes in (work.reads, work.writes)]
    parts = [divided(total, run.processes) for total in totals]
    posix = run.uses_by_file[work.path]
    read_s, write_s = (max(getattr(use, name) for use in posix) for name in ("read_s", "write_s"))
    metadata_s = max(use.metadata_s for use in posix)
    begins = [0, 0]
    for rank in range(run.processes):
        own = [consecutive(transfers(parts[move][rank], run.transfer_bytes), begins[move]) for move in (0, 1)]
        begins = [begin + part[rank] for begin, part in zip(begins, parts, strict=True)]
        yield SimulatedFileUse(
            work.path, rank, own[0], own[1], 1, 0, metadata_s, read_s, write_s, work.start_s, work.end_s
        )  # fmt: skip
