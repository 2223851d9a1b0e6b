"""One rank spends much longer in I/O than the others, which wait for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.remedies import CARNS, collective_hints, is_collective
from iolens.findings.rule import Evidence, FindingRule, Inputs


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    slowest_s, processes = inputs["slowest_rank_s"], inputs["processes"]
    mean_s = inputs["io_s"] / processes
    if slowest_s >= thresholds["shortest_s"] and slowest_s > thresholds["factor"] * mean_s:
        yield {"slowest_rank_s": slowest_s, "mean_rank_s": mean_s, "processes": processes}


def _own_words(inputs: Inputs, evidence: Evidence) -> Mapping[str, str]:
    if _has_equal_shares(inputs):
        return {"how": _EQUAL_ALREADY}
    return {"how": _FOR_ALL if is_collective(inputs) else _shares(inputs)}


def _has_equal_shares(inputs: Inputs) -> bool:
    """Whether the rank that moved most is within a tenth of the mean."""
    most, moved = inputs.get("busiest_rank_bytes"), inputs.get("moved_bytes")
    return bool(most is not None and moved and most * inputs["processes"] <= EQUAL_WITHIN * moved)


def _shares(inputs: Inputs) -> str:
    return (
        "Give ranks equal shares: collective MPI-IO divides the data evenly among aggregators "
        f"(`{collective_hints(inputs)}`, and calls that end in _all); {_FOR_ALL[0].lower()}{_FOR_ALL[1:]}"
    )


EQUAL_WITHIN: Final = 1.1
_FOR_ALL: Final = "Where one rank reads or writes for all, let several do (MPI_Comm_split_type by node)"
_EQUAL_ALREADY: Final = (
    "Ranks moved equal bytes already, so shares are not the reason: look at where the files of the slowest rank lie "
    "(`lfs getstripe FILE`), at the node it ran on, and at what else used these OSTs then"
)


RULE: Final = FindingRule(
    code="rank-imbalance",
    title="one rank is slower than the others",
    severity="warn",
    inputs=("slowest_rank_s", "io_s", "processes"),
    also_reads=("nodes", "strategy", "busiest_rank_bytes", "moved_bytes"),
    thresholds={"factor": 2, "shortest_s": 10},
    check=_check,
    condition="the slowest rank spends at least {shortest_s:g} s in I/O, and more than {factor:g} times the mean "
    "of all ranks",
    message="the slowest rank spent {slowest_rank_s:,.1f} s in I/O, the mean of {processes:,} ranks is "
    "{mean_rank_s:,.1f} s",
    remedy="{how}.",
    reference=f"{CARNS}, Sections 5.2, 5.8 and 8",
    general_words={"how": _shares({})},
    own_words=_own_words,
)
