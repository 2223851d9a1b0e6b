"""What IOR must be asked for so that it does what a job did (SPEC N5; Table III of the study), and why.

In IOR's words each task moves `segments` blocks, a block in transfers; blocks of a shared file lie task after task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class IorParameters:
    """One run of IOR; `reorder`: a task reads what one of another node wrote.

    Each of the `repetitions` makes its files anew.
    """

    api: str
    tasks: int
    transfer_bytes: int
    block_bytes: int
    segments: int
    file_per_process: bool
    write: bool
    read: bool
    collective: bool = False
    random: bool = False
    fsync: bool = False
    reorder: bool = False
    repetitions: int = 1
    nodes: int | None = None

    @property
    def task_bytes(self) -> int:
        """What a task writes, or reads, in one repetition."""
        return self.segments * self.block_bytes

    @property
    def aggregate_bytes(self) -> int:
        """Size of all files of one repetition."""
        return self.tasks * self.task_bytes

    @property
    def directions(self) -> int:
        """1 where it only writes or only reads, else 2."""
        return self.write + self.read

    @property
    def moved_bytes(self) -> int:
        """Bytes written and read, of all repetitions."""
        return self.directions * self.repetitions * self.aggregate_bytes

    @property
    def operations(self) -> int:
        """Transfers, of all repetitions."""
        return self.moved_bytes // self.transfer_bytes

    @property
    def files(self) -> int:
        """Files made, of all repetitions."""
        return self.repetitions * (self.tasks if self.file_per_process else 1)

    @property
    def work(self) -> RecordedWork:
        """What IOR does when it is asked for this."""
        moved = self.repetitions * self.aggregate_bytes
        return RecordedWork(self.read * moved, self.write * moved, self.operations, self.files)

    def scaled(self, share: float, most_tasks: int | None = None) -> IorParameters:
        """A smaller run of the same shape: about `share` of the bytes, by at most so many tasks.

        No task moves more than it did. Repetitions become fewer first, then segments, then blocks smaller; transfers
        stay as they are, and every task makes at least one.
        """
        tasks = self.tasks if most_tasks is None else max(min(self.tasks, most_tasks), 1)
        whole = self.repetitions * self.task_bytes
        wanted = min(whole, max(round(whole * self.tasks * share / tasks), self.transfer_bytes))
        repetitions = max(wanted // self.task_bytes, 1)
        segments = self.segments if wanted >= self.task_bytes else max(wanted // self.block_bytes, 1)
        block = self.block_bytes if wanted >= self.block_bytes else wanted // self.transfer_bytes * self.transfer_bytes
        nodes = self.nodes if tasks == self.tasks else None
        return replace(self, tasks=tasks, repetitions=repetitions, segments=segments, block_bytes=block, nodes=nodes)


@dataclass(frozen=True, slots=True)
class ParameterEvidence:
    """Why a parameter has its value; `is_known` is False for one that the record leaves open."""

    parameter: str
    value: str
    words: str
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class RecordedWork:
    """What the record says of some files; `operations` are reads and writes as the program made them."""

    read_bytes: int
    write_bytes: int
    operations: int | None
    files: int | None

    @property
    def moved_bytes(self) -> int:
        """Read and written."""
        return self.read_bytes + self.write_bytes

    @property
    def mean_access_bytes(self) -> float | None:
        """Bytes of a read or write, on average."""
        return self.moved_bytes / self.operations if self.operations else None


@dataclass(frozen=True, slots=True)
class ImitatedFiles:
    """Files that were used alike, the IOR run that imitates their use, and why it does."""

    what: str  # in words: 4 files, one per task, written through POSIX
    parameters: IorParameters
    evidence: Sequence[ParameterEvidence]
    recorded: RecordedWork
    share_pct: float  # of the bytes of the job
    example: str | None = None  # path of a file


@dataclass(frozen=True, slots=True)
class NotImitated:
    """Files that no IOR run stands for."""

    what: str
    moved_bytes: int
    share_pct: float


@dataclass(frozen=True, slots=True)
class Imitation:
    """The IOR runs that imitate a job, those with most bytes first."""

    record: str  # darshan, or client_counters: which knows neither files nor accesses
    runs: Sequence[ImitatedFiles]
    not_imitated: Sequence[NotImitated]
    notes: Sequence[str]
    mib_per_s: float | None = None  # of the job: bytes by the I/O time of its slowest rank (DEFINITIONS)

    @property
    def is_coarse(self) -> bool:
        """Whether there were only sums to go by."""
        return self.record != "darshan"
