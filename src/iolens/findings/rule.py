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
    "metadata_s": "time in metadata operations: llite stats of Lustre 2.14 and later, or a Darshan log",
    "io_s": "time in all reads, writes and metadata operations: llite stats of Lustre 2.14 and later, or a Darshan log",
    "stats_by_node": "stat calls by node, and the seconds in which it made them: llite stats of the clients",
    "written_by": "bytes written by each rank or node: clients of every node, or a Darshan log",
}


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

    Everything a person reads is here, so that a rule can be listed and explained without data.
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
    estimated_gain: float | None = field(default=None)

    def findings(self, inputs: Inputs, configured: Mapping[str, float]) -> list[Finding]:
        """What the inputs show, with the thresholds of the configuration before the defaults."""
        thresholds = {**self.thresholds, **configured}
        return [
            Finding(self.code, self.severity, self.message.format(**evidence), evidence, self.remedy, self.reference)
            for evidence in self.check(inputs, thresholds)
        ]

    def stated_condition(self, configured: Mapping[str, float]) -> str:
        """When it speaks, with the thresholds in use."""
        return self.condition.format(**{**self.thresholds, **configured})

    def missing_reason(self, missing: Sequence[str]) -> str:
        """What would be needed to judge."""
        return "needs " + "; ".join(INPUTS.get(name, name) for name in missing)
