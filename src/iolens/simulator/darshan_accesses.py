"""Reads and writes of simulated application runs: equal accesses, a rank's use of a file, all work on a file."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

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
