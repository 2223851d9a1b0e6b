"""One rank spends much longer in I/O than the others, which wait for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.remedies import CARNS, collective_hints
from iolens.findings.rule import Evidence, FindingRule, Inputs


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    slowest_s, processes = inputs["slowest_rank_s"], inputs["processes"]
    mean_s = inputs["io_s"] / processes
    if slowest_s >= thresholds["shortest_s"] and slowest_s > thresholds["factor"] * mean_s:
        yield {"slowest_rank_s": slowest_s, "mean_rank_s": mean_s, "processes": processes}


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    return {"hints": collective_hints(inputs)}


RULE: Final = FindingRule(
    code="rank-imbalance",
    title="one rank is slower than the others",
    severity="warn",
    inputs=("slowest_rank_s", "io_s", "processes"),
    also_reads=("nodes",),
    thresholds={"factor": 2, "shortest_s": 10},
    check=_check,
    condition="the slowest rank spends at least {shortest_s:g} s in I/O, and more than {factor:g} times the mean "
    "of all ranks",
    message="the slowest rank spent {slowest_rank_s:,.1f} s in I/O, the mean of {processes:,} ranks is "
    "{mean_rank_s:,.1f} s",
    remedy="Give ranks equal shares: collective MPI-IO divides the data evenly among aggregators (`{hints}`, and calls "
    "that end in _all); where one rank reads or writes for all, let several do (MPI_Comm_split_type by node).",
    reference=f"{CARNS}, Sections 5.2, 5.8 and 8",
    general_words={"hints": collective_hints({})},
    own_words=_own_words,
)
