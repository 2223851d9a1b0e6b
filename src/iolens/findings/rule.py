"""What a rule is, and what it gives: findings, or what is missing to judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    "key_access_bytes": "the most frequent size of reads and writes: a Darshan log with the POSIX module",
    "posix_ops": "reads and writes through POSIX: a Darshan log with the POSIX module",
    "sequential_ops": "reads and writes at a higher offset than the one before: a Darshan log with the POSIX module",
    "misaligned_ops": "reads and writes that are not aligned to blocks: a Darshan log with the POSIX module",
    "alignment_bytes": "block size of the file system: a Darshan log with the POSIX module",
    "slowest_rank_s": "I/O time of the slowest rank: a Darshan log of version 2 or later whose shared files were "
    "not in use at the same time",
    "shared_mpiio_files": "files that several ranks used through MPI-IO: the file records of a Darshan log",
    "files_read": "bytes read of each file and its extent: the file records of a Darshan log",
    "files_written": "bytes written to each file and how far: the file records of a Darshan log",
    "shared_files": "bytes of the busiest rank of each shared file: the file records of a Darshan log",
    "stdio_files": "files used through STDIO but for standard streams: the file records of a Darshan log",
    "striped_files": "stripes of files: the Lustre module of a Darshan log",
    "ost_times": "times of files of equal work by OST: the Lustre module of a Darshan log",
    "device": "disk or flash, where it is known",
    "duration_s": "run time: a Darshan log",
    "moved_bytes": "bytes read and written: a Darshan log",
    "busiest_rank_bytes": "what the rank that moved most moved at most: a Darshan log that tells ranks apart",
    "io_kinds_s": "time in reads, in writes and in metadata operations: a Darshan log",
    "strategy": "how the ranks of a run share files: a Darshan log",
    "interface": "the interface that most bytes went through: a Darshan log",
    "main_output": "the file that most bytes were written to: the file records of a Darshan log",
    "nodes": "nodes of the run: the scheduler's record, or a Darshan log with DXT",
}

KINDS: Final = ("read", "write", "metadata")
NOT_NAMED: Final = "(not named in the log)"
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
    written_extent_bytes: int | None = None  # one more than the highest offset written
    reads: int | None = None
    writes: int | None = None
    reads_to_mib: int | None = None  # of at most 1 MiB, through POSIX
    writes_to_mib: int | None = None
    reads_to_100_kib: int | None = None
    writes_to_100_kib: int | None = None
    busiest_rank_bytes: int | None = None  # at least, by the highest layer that counts bytes
    mean_rank_bytes: int | None = None  # of the same layer
    mount: str | None = None
    read_s: float | None = None  # summed over ranks
    write_s: float | None = None
    io_s: float | None = None

    @property
    def moved_bytes(self) -> int:
        """Read and written."""
        return self.read_bytes + self.write_bytes


@dataclass(frozen=True)
class OstTimes:
    """Files of equal work on one OST: one stripe each, as many ranks, bytes within a tenth."""

    ost: int  # its index
    mount: str | None
    files: int
    file_bytes: int  # of each, in the mean
    mean_s: float  # I/O time of a file and rank
    p: float  # one-sided: that they take longer than those on the other OSTs by chance
    io_s: float  # in files of equal work on it, summed over ranks
    lost_s: float  # by which the slowest rank would be earlier if they took the median time of the others


@dataclass(frozen=True)
class Part:
    """The part of a run's I/O that a finding is about. None: not known, or not what it speaks of."""

    kinds: Sequence[str] = KINDS
    seconds: float | None = None  # summed over ranks; None: all time in these kinds
    moved_bytes: float | None = None
    accesses: float | None = None
    waited_s: float | None = None  # by which the slowest rank, for which all others wait, is held up


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
    io_s: float | None = None  # time that it is about, summed over ranks; findings may share it
    io_kinds: Sequence[str] = KINDS  # what that time went into
    explained_by: Sequence[str] = ()  # codes of findings of the same run that are to be looked at before it
    subject: str | None = None  # what it is about where that is not the run, such as an OST


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

    `about` says which part of the run's I/O the finding is about: too small a part is not worth a word (importance.py).
    `not_judged` is the reason why the rule does not apply to a run although its inputs are known.

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
    about: Callable[[Inputs, Evidence], Part] = lambda inputs, evidence: Part()
    not_judged: Callable[[Inputs], str | None] | None = None
    subject: str | None = None  # with the evidence in braces; None: the run

    def noticed(self, inputs: Inputs, configured: Mapping[str, float]) -> Iterator[tuple[Finding, Part]]:
        """What the inputs show, and the part of the I/O that it is about; configured thresholds before the defaults."""
        for evidence in self.check(inputs, {**self.thresholds, **configured}):
            part = part_of_run(self.about(inputs, evidence), inputs)
            yield self._finding(inputs, evidence, part), part

    def _finding(self, inputs: Inputs, evidence: Evidence, part: Part) -> Finding:
        gain = self.study_gain(inputs, evidence) if self.study_gain else None
        remedy = self._worded(self.own_words(inputs, evidence) if self.own_words else {})
        message = self.message.format(**evidence)
        origin = None if gain is None else STUDY
        subject = self.subject.format(**evidence) if self.subject else None
        return Finding(
            self.code, self.severity, message, evidence, remedy, self.reference, gain, origin, part.seconds, part.kinds,
            subject=subject,
        )  # fmt: skip

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


def part_of_run(part: Part, inputs: Inputs) -> Part:
    """With the time of its kinds where the rule gives none, and never more time than the run spent in I/O."""
    seconds = part.seconds
    if seconds is None:
        by_kind = inputs.get("io_kinds_s") or {"metadata": inputs.get("metadata_s")}
        known = [by_kind[kind] for kind in part.kinds if by_kind.get(kind) is not None]
        is_known = len(known) == len(part.kinds)
        seconds = inputs.get("io_s") if {*part.kinds} == {*KINDS} else float(sum(known)) if is_known else None
    whole_s = inputs.get("io_s")
    return replace(part, seconds=seconds if seconds is None or whole_s is None else min(seconds, whole_s))


def files_evidence(files: Sequence[FileUse]) -> dict[str, float | int]:
    """How many files there are, and what was moved of them: what a finding on files is about."""
    return {
        "files": len(files),
        "files_bytes": sum(file.moved_bytes for file in files),
        "files_accesses": sum((file.reads or 0) + (file.writes or 0) for file in files),
        "files_io_s": sum(file.io_s or 0.0 for file in files),
    }


def about_files(inputs: Inputs, evidence: Evidence) -> Part:
    """The part of the I/O that went into those files, where their times are known."""
    seconds, accesses = float(evidence["files_io_s"]), float(evidence["files_accesses"])
    return Part(KINDS, seconds or None, float(evidence["files_bytes"]), accesses or None)
