"""Which findings are worth a word, and which stands first (DEFINITIONS, Minimum for a finding, Order of findings)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from iolens.findings.rule import Finding, Inputs, Part

SEVERITIES: Final = ("high", "warn", "info")  # the worst first
DISK: Final = "disk"

LEAST_PCT: Final = 1.0  # of the run's bytes, and of its I/O time
LEAST_ACCESSES: Final = 100

ORDER: Final = (
    "slow-ost", "stat-storm", "single-writer", "uneven-bytes", "file-per-process", "many-opens", "metadata-bound",
    "small-accesses", "random-access", "small-rpcs", "stdio", "no-collectives", "redundant-reads", "redundant-writes",
    "rank-imbalance", "misaligned", "stripe", "below-stripe", "client-cache",
)  # fmt: skip
"""Codes of one severity and about one time, the first to be looked at first; rules of other packages come last."""
EXPLAINS: Final[Mapping[str, Sequence[str]]] = {
    "slow-ost": ("rank-imbalance",),
    "single-writer": ("uneven-bytes", "rank-imbalance", "stripe"),
    "uneven-bytes": ("rank-imbalance",),
    "file-per-process": ("metadata-bound",),
    "many-opens": ("metadata-bound",),
    "small-accesses": ("small-rpcs", "misaligned", "below-stripe"),
    "random-access": ("small-rpcs",),
}
"""What outranks what, because it is the reason for it; each stands before the others in `ORDER`."""
ON_DISKS: Final = ("random-access", "small-accesses")  # a seek costs more than a small piece: random explains small


def is_worth_a_word(part: Part, inputs: Inputs) -> bool:
    """Whether the part of the I/O is large enough in all that is known of it.

    What all ranks wait for is compared with the time of the slowest rank: one writer of 65,536 ranks has little of the
    time of all together, and all of that of the run.
    """
    if part.waited_s is None:
        is_long = _is_share(part.seconds, inputs.get("io_s"))
    else:
        is_long = _is_share(part.waited_s, inputs.get("slowest_rank_s") or inputs.get("duration_s"))
    is_often = part.accesses is None or part.accesses >= LEAST_ACCESSES
    return is_long and is_often and _is_share(part.moved_bytes, inputs.get("moved_bytes"))


def in_order(findings: Sequence[Finding], inputs: Inputs) -> list[Finding]:
    """The worst first; what explains another before it, which names it."""
    explains, order = _on_device(inputs.get("device"))
    codes = {finding.code for finding in findings}
    named = [
        replace(finding, explained_by=tuple(code for code in order if code in codes and finding.code in explains[code]))
        for finding in findings
    ]

    def place(finding: Finding) -> tuple[int, int]:
        at = order.index(finding.code) if finding.code in order else len(order)
        return SEVERITIES.index(finding.severity), at

    return sorted(named, key=place)


def _on_device(device: str | None) -> tuple[Mapping[str, Sequence[str]], Sequence[str]]:
    explains, order = {code: EXPLAINS.get(code, ()) for code in ORDER}, list(ORDER)
    if device == DISK:
        first, second = ON_DISKS
        order.remove(first)
        order.insert(order.index(second), first)
        explains[first] = (*explains[first], second)
    return explains, order


def _is_share(part: float | None, whole: float | None) -> bool:
    return part is None or not whole or 100 * part >= LEAST_PCT * whole
