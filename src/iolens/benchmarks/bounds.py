"""How large, how long and how fast made-up load may be: what every fio job file and IOR script keeps to."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from iolens.errors import UsageError
from iolens.models.workload_model import WorkloadModel
from iolens.units import GIB, KIB, format_bytes


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
