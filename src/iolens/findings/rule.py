"""What a rule is, and what it gives: findings, or what is missing to judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Inputs = Mapping[str, Any]  # by name, see INPUTS; None or absent: not known
Evidence = Mapping[str, "float | int | str"]  # numbers, with units in their names

INPUTS: Final[Mapping[str, str]] = {
    "rpc_sizes": "RPCs by size and direction: rpc_stats of the clients",
    "read_bytes": "bytes read as applications asked for them: llite stats of the clients",
    "write_bytes": "bytes written as applications asked for them: llite stats of the clients",
    "opens": "files opened: llite stats of the clients, or a Darshan log",
    "processes": "processes of the job: the scheduler's number of tasks, or a Darshan log",
    "file_uses": "files, each counted once for every process that used it: a Darshan log",
    "metadata_s": "time in metadata operations: llite stats of Lustre 2.14 and later, or a Darshan log",
    "io_s": "time in all reads, writes and metadata operations: llite stats of Lustre 2.14 and later, or a Darshan log",
    "stats_by_node": "stat calls by node, and the seconds in which it made them: llite stats of the clients",
    "written_by": "bytes written by each rank or node: clients of every node, or a Darshan log that tells ranks apart",
    "access_sizes": "reads and writes by size: a Darshan log with the POSIX module",
    "posix_ops": "reads and writes through POSIX: a Darshan log with the POSIX module",
    "sequential_ops": "reads and writes at a higher offset than the one before: a Darshan log with the POSIX module",
    "misaligned_ops": "reads and writes that are not aligned to blocks: a Darshan log with the POSIX module",
    "alignment_bytes": "block size of the file system: a Darshan log with the POSIX module",
    "slowest_rank_s": "I/O time of the slowest rank: a Darshan log of version 2 or later whose shared files were "
    "not in use at the same time",
    "shared_mpiio_files": "files that several ranks used through MPI-IO: the file records of a Darshan log",
    "files_read": "bytes read of each file and its extent: the file records of a Darshan log",
    "striped_files": "stripes of shared files: the Lustre module of a Darshan log",
    "strategy": "how the ranks of a run share files: a Darshan log",
    "interface": "the interface that most bytes went through: a Darshan log",
    "main_file": "path of the file that most bytes were moved of: the file records of a Darshan log",
    "nodes": "nodes of the run: the scheduler's record, or a Darshan log with DXT",
}

STUDY: Final = "study"  # where an estimated gain is from: printed in the study that the rule refers to
LIKE_RUNS: Final = "like_runs"  # or measured: the best quartile of runs of the same user, program and processes


@dataclass(frozen=True)
class Writers:
    """Who wrote how much, as far as it matters: the busiest of all, and the sum."""

    unit: str  # ranks or nodes
    count: int
    busiest: str
    busiest_bytes: int
    total_bytes: int

    @classmethod
    def of(cls, unit: str, bytes_by_name: Mapping[str, int]) -> Writers:
        """From the bytes of each."""
        busiest = max(bytes_by_name, key=lambda name: bytes_by_name[name], default="")
        total = sum(bytes_by_name.values())
        return cls(unit, len(bytes_by_name), busiest, bytes_by_name.get(busiest, 0), total)


@dataclass(frozen=True)
class FileUse:
    """One file of a run, all ranks together; None is not known."""

    path: str | None
    interface: str  # the highest one that opened it
    ranks: int  # that used it
    read_bytes: int
    write_bytes: int
    extent_bytes: int | None  # least size
    independent_ops: int = 0  # through MPI-IO
    collective_ops: int = 0
    stripe_count: int | None = None
    stripe_bytes: int | None = None


@dataclass(frozen=True)
class Finding:
    """Something that a user or operator should know and can act on."""

    code: str
    severity: str  # info, warn or high
    message: str
    evidence: Evidence
    remedy: str
    reference: str
    estimated_gain: float | None = None  # a factor; only where it was measured on like runs or printed in a study
    gain_from: str | None = None  # STUDY or LIKE_RUNS


@dataclass(frozen=True)
class NotEvaluated:
    """A rule that could not be judged."""

    code: str
    missing: Sequence[str]  # names of inputs
    reason: str


@dataclass(frozen=True)
class Evaluation:
    """What all rules said."""

    findings: Sequence[Finding]
    not_evaluated: Sequence[NotEvaluated]


@dataclass(frozen=True)
class FindingRule:
    """One rule. `check` gives the evidence of each finding; `message` is filled in from it.

    Everything a person reads is here, so that a rule can be listed and explained without data. The remedy may have
    places for what is at hand, such as a directory: `general_words` stand there without data, `own_words` with.
    """

    code: str
    title: str
    severity: str
    inputs: Sequence[str]
    thresholds: Mapping[str, float]  # defaults; units in the names
    check: Callable[[Inputs, Mapping[str, float]], Iterator[Evidence]]
    condition: str  # in words, with the thresholds in braces
    message: str  # with the evidence in braces
    remedy: str
    reference: str
    also_reads: Sequence[str] = ()  # inputs that it judges by, or speaks of, where they are known
    general_words: Mapping[str, str] = field(default_factory=dict)
    own_words: Callable[[Inputs, Evidence], Mapping[str, str]] | None = None
    study_gain: Callable[[Inputs, Evidence], float | None] | None = None  # where the situation is that of the study

    def findings(self, inputs: Inputs, configured: Mapping[str, float]) -> list[Finding]:
        """What the inputs show, with the thresholds of the configuration before the defaults."""
        thresholds = {**self.thresholds, **configured}
        return [self._finding(inputs, evidence) for evidence in self.check(inputs, thresholds)]

    def _finding(self, inputs: Inputs, evidence: Evidence) -> Finding:
        gain = self.study_gain(inputs, evidence) if self.study_gain else None
        remedy = self._worded(self.own_words(inputs, evidence) if self.own_words else {})
        message = self.message.format(**evidence)
        origin = None if gain is None else STUDY
        return Finding(self.code, self.severity, message, evidence, remedy, self.reference, gain, origin)

    @property
    def general_remedy(self) -> str:
        """What to do, without data."""
        return self._worded({})

    def _worded(self, words: Mapping[str, str]) -> str:
        return self.remedy.format(**{**self.general_words, **words}) if self.general_words else self.remedy

    def stated_condition(self, configured: Mapping[str, float]) -> str:
        """When it speaks, with the thresholds in use."""
        return self.condition.format(**{**self.thresholds, **configured})

    def missing_reason(self, missing: Sequence[str]) -> str:
        """What would be needed to judge."""
        return "needs " + "; ".join(INPUTS.get(name, name) for name in missing)
