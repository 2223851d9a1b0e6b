"""What passes from `sources/` to `store/`: raw counter samples, rows that need no differencing, and problems.

Plain objects with no dependency, so that a sampler that only reads `/proc` stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from iolens.visible_text import visible

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class CounterSet(NamedTuple):
    """Counters that are reset together. A counter that is absent here was not readable: unknown, not zero.

    Except one that has never been seen: in a `complete` listing, such as Lustre's, it had not counted before, so all it
    shows has moved since. Otherwise its first value is only a baseline. What an absent counter moves falls into the
    interval in which it is seen again, unless the set `forgets`: then it starts anew, and that is in no interval.
    """

    counters: Mapping[str, int]
    start_us: int | None = None  # when counting began, where the format says so (Lustre 2.15 on)
    complete: bool = True
    forgets: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """The raw, cumulative counters of one target for one table, read at one time.

    `sets` has one entry named "" for wide tables; in `metadata_ops` there may be one more per client, and what they
    move adds up. For `target_histograms` it has one per histogram with counters named `read:<bin>` and `write:<bin>`;
    for `job_io` and `job_sizes` one per job; for `server_ops` one per text, with counters `<operation>`,
    `<operation>:us` and `<operation>:total`. Of a client `target` is the node, and each set is a text of one mount,
    called `<text>@<mount>`.
    """

    table: str
    filesystem: str
    target: str
    time_us: int  # the tick this sample belongs to, the same for all targets and tables of one sample
    snapshot_us: int  # when this very file was read: durations come from here
    sets: Mapping[str, CounterSet]
    labels: Mapping[str, str] = field(default_factory=dict)  # constant columns, such as target_kind


@dataclass(frozen=True, slots=True)
class Row:
    """One finished row of a table: a reading (capacity, state) or an interval that needs no differencing."""

    table: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """The raw, cumulative counters of one target for one wide table over many times, in the order of the input.

    That order is evidence where the clock was set back: it is not sorted. Means the same as one `Sample` per time.
    `counters` are arrays of one length; a masked (NumPy masked array) or absent value was not readable. `forgets`: as
    in `CounterSet`.
    """

    table: str
    filesystem: str
    target: str
    time_us: NDArray[np.int64]
    snapshot_us: NDArray[np.int64]
    counters: Mapping[str, NDArray[np.int64]]
    labels: Mapping[str, str] = field(default_factory=dict)
    forgets: bool = False

    def __len__(self) -> int:
        return len(self.time_us)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Many finished rows of one table, column by column: arrays or lists of one length, or one value for all rows.

    Means the same as one `Row` each. Times are integers, microseconds since 1970; None, NaN or masked is NULL.
    """

    table: str
    columns: Mapping[str, object]
    count: int

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the input that was not understood, and where. It is counted and reported, never guessed."""

    place: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        where = f"{self.place}:{self.line}" if self.line is not None else self.place
        return visible(f"{where}: {self.reason}")


@dataclass(frozen=True, slots=True)
class Note(Problem):
    """Something that was left out on purpose, by a rule the format's page states: said, though nothing was wrong."""


Item = Sample | Samples | Row | Rows | Problem


class RowMark(NamedTuple):
    """A row that the store has if, and only if, it has all of a capture: written after all others of it."""

    table: str
    column: str
    value: str


@dataclass(frozen=True, slots=True)
class Capture:
    """One ingestible piece (a file, a tree, a spool segment) with an identity that makes re-sending harmless."""

    origin: str  # path or address, for people
    identity: str  # `file/<sha256 of the content>` or `agent/<host>`
    items: Callable[[], Iterator[Item]]  # may be called again after a lost race: same items, same order
    sequence: int = 1  # the first batch number under this identity
    numbered: bool = False  # a piece of a stream, in its order: its number ends the identity, or is `sequence`
    row: RowMark | None = None  # by which the store knows it, where one row stands for all of it
    together: Together | None = None  # reads several small captures at once, in a process that it starts for that
    members: tuple[Capture, ...] = ()  # those that were gathered into this one
    place: int = 0  # of its path among those of the call, from 1 on: evidence where a clock was set back; 0: not known


Together = Callable[[Sequence[tuple[str, str]]], Iterator[Item]]  # of origins and values of their rows
