"""Application runs whose I/O is known: what each rank does to each file, or totals that are stated."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, get_args

from iolens.errors import UsageError
from iolens.models.transaction_time import Calibration, Coefficients
from iolens.units import MIB

# Reads and writes of simulated application runs -----------------------------------------------------------------------
# Equal accesses, a rank's use of a file, all work on a file.

Direction = Literal["read", "write"]

Sizes = tuple[tuple[int, int], ...]
"""Accesses of a file: bytes of one, and how many."""
_GOLDEN: Final = 0.6180339887498949


@dataclass(frozen=True, slots=True)
class Accesses:
    """Equal reads or writes by one rank: `count` of `size` bytes, the first at `offset`, `step` bytes apart.

    Each is `jump` places after the one before; behind the last place follows the first. No place is used twice.
    """

    size: int
    count: int
    offset: int
    step: int
    jump: int = 1

    @property
    def moved_bytes(self) -> int:
        """Bytes of all of them."""
        return self.size * self.count

    @property
    def forward(self) -> int:
        """How many of them, without the first, are behind the one before."""
        return self.count - 1 - (self.count - 1) * self.jump // self.count

    @property
    def gap(self) -> int:
        """Bytes between an access and the next one, where that is behind it."""
        return self.jump * self.step - self.size

    @property
    def last_byte(self) -> int:
        """Offset of the last byte of the last access."""
        return self.place(self.count - 1) + self.size - 1

    @property
    def highest_byte(self) -> int:
        """Offset of the last byte of all of them."""
        return self.offset + (self.count - 1) * self.step + self.size - 1

    def place(self, number: int) -> int:
        """Offset of one of them, counted from 0."""
        return self.offset + number * self.jump % self.count * self.step


@dataclass(frozen=True, slots=True)
class SimulatedFileUse:
    """What one rank does to one file between its first open and its last close; it reads first, then writes."""

    path: str
    rank: int
    reads: tuple[Accesses, ...]
    writes: tuple[Accesses, ...]
    opens: int
    stats: int
    metadata_s: float
    read_s: float
    write_s: float
    start_s: float
    end_s: float

    @property
    def read_bytes(self) -> int:
        """Bytes it read."""
        return sum(accesses.moved_bytes for accesses in self.reads)

    @property
    def write_bytes(self) -> int:
        """Bytes it wrote."""
        return sum(accesses.moved_bytes for accesses in self.writes)

    @property
    def io_s(self) -> float:
        """Time in metadata operations, reads and writes."""
        return self.metadata_s + self.read_s + self.write_s

    @property
    def spans(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """When it reads and when it writes: after the opens, in proportion to the time each takes."""
        begin = self.start_s + self.metadata_s
        share = self.read_s / (self.read_s + self.write_s) if self.read_s + self.write_s else 0.0
        middle = begin + (self.end_s - begin) * share
        return (begin, middle), (middle, self.end_s)


@dataclass(frozen=True, slots=True)
class FileWork:
    """All that a run does to one file, from `start_s` to `end_s`; `osts` are those it is striped over, in order."""

    path: str
    osts: tuple[int, ...]
    reads: Sizes = ()
    writes: Sizes = ()
    opens: int = 0
    stats: int = 0
    start_s: float = 0.0
    end_s: float = 0.0

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written."""
        return sum(size * count for size, count in (*self.reads, *self.writes))


def transfers(total_bytes: int, transfer_bytes: int) -> Sizes:
    """Bytes as equal transfers and a shorter one for the rest."""
    whole, rest = divmod(total_bytes, transfer_bytes)
    return tuple((size, count) for size, count in ((transfer_bytes, whole), (rest, 1)) if size and count)


def divided(total: int, parts: int) -> list[int]:
    """A whole number in almost equal parts that add up."""
    return [total * (part + 1) // parts - total * part // parts for part in range(parts)]


def in_turn(sizes: Sizes, rank: int, ranks: int) -> tuple[Accesses, ...]:
    """The accesses of one rank where all ranks take turns."""
    own, begin = [], 0
    for size, count in sizes:
        mine = len(range(rank, count, ranks))
        if mine:
            own.append(Accesses(size, mine, begin + rank * size, size * ranks))
        begin += size * count
    return tuple(own)


def consecutive(sizes: Iterable[tuple[int, int]], begin: int = 0) -> tuple[Accesses, ...]:
    """Accesses one after another, the first at byte `begin`."""
    own = []
    for size, count in sizes:
        if count:
            own.append(Accesses(size, count, begin, size))
            begin += size * count
    return tuple(own)


def scattered(accesses: Accesses) -> Accesses:
    """The same places in an order that jumps to and fro, by the golden section of all: most jumps lead back."""
    jump = max(1, round(accesses.count * _GOLDEN))
    while math.gcd(jump, accesses.count) > 1:
        jump += 1
    return replace(accesses, jump=jump)


def by_rank(uses: Iterable[SimulatedFileUse], amount: Callable[[SimulatedFileUse], float]) -> dict[int, float]:
    """Sum of an amount over the uses of each rank."""
    sums: dict[int, float] = defaultdict(float)
    for use in uses:
        sums[use.rank] += amount(use)
    return sums


# Application runs whose I/O is known ----------------------------------------------------------------------------------
# What each rank does to each file, and what Darshan must say of it.
#
# A run is files with reads and writes by size, and a strategy that says which ranks share that work. Times within a run
# count from its start. Every time is a sum of what single accesses and metadata operations take.

Strategy = Literal["rank0", "subset", "file_per_process", "shared", "partially_shared", "collective", "none"]
STRATEGIES: Final[tuple[Strategy, ...]] = get_args(Strategy)
SHARED_BY_ALL: Final = ("shared", "collective")
COLLECTIVE_BUFFER_BYTES: Final = 16 * MIB


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


# Application runs by their totals -------------------------------------------------------------------------------------
# Bytes, transfer size, rate per rank and phases.


def stated_run(
    strategy: Strategy,
    *,
    job_id: int,
    start_s: float,
    duration_s: float,
    processes: int,
    read_bytes: int = 0,
    write_bytes: int = 0,
    transfer_bytes: int = MIB,
    rank_mib_per_s: float = 200.0,
    phases: int = 1,
    osts: int = 24,
    stripe_count: int = 1,
    executable: str = "simulated",
    user: str = "user",
    uid: int = 1000,
    directory: str = "/scratch/simulated",
    opens: int = 0,
    stats: int = 0,
    subset_ranks: int = 0,
    metadata_s: float = 1e-3,
    spread: float = 0.1,
    is_interleaved: bool = False,
    printed_bytes: int = 0,
    has_dxt: bool = False,
    nodes: Sequence[str] = (),
) -> SimulatedRun:
    """A run by its totals: bytes in equal transfers at a rate per rank, in `phases` of equal length, each with files of
    its own. `opens` and `stats` are at least one per rank and file, and none.
    """
    cost = Coefficients(0.0, 1.0 / (rank_mib_per_s * MIB))
    chosen = subset_ranks or max(2, processes // 4)
    per_phase = _files_of(strategy, processes, chosen)
    names = [f"{directory}/{executable}.{phase:03}.{number:06}" for phase in range(phases) for number in per_phase]
    shares = list(zip(*(divided(total, len(names)) for total in (read_bytes, write_bytes, opens, stats)), strict=True))
    length = duration_s / max(phases, 1)
    files = tuple(
        FileWork(
            path,
            tuple((number * stripe_count + stripe) % osts for stripe in range(stripe_count)),
            transfers(shares[number][0], transfer_bytes),
            transfers(shares[number][1], transfer_bytes),
            opens=shares[number][2],
            stats=shares[number][3],
            start_s=(number // len(per_phase) + 0.05) * length,
            end_s=(number // len(per_phase) + 0.95) * length,
        )
        for number, path in enumerate(names)
    )
    return SimulatedRun(
        executable=executable,
        user=user,
        uid=uid,
        job_id=job_id,
        start_s=start_s,
        end_s=start_s + duration_s,
        processes=processes,
        strategy=strategy,
        files=files,
        cost=Calibration("stated", cost, cost),
        metadata_s=metadata_s,
        spread=spread,
        subset_ranks=chosen,
        is_interleaved=is_interleaved,
        transfer_bytes=transfer_bytes,
        printed_bytes=printed_bytes,
        nodes=tuple(nodes),
        has_dxt=has_dxt,
    )


def _files_of(strategy: Strategy, processes: int, subset_ranks: int) -> range:
    """Numbers of the files that a phase needs so that every rank of the strategy has its part."""
    counts = {"file_per_process": processes, "subset": subset_ranks, "none": 0}
    counts["partially_shared"] = max(1, processes // subset_ranks)
    return range(counts.get(strategy, 1))
