"""A node asks for the attributes of files at a high rate for a minute or longer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolens.findings.rule import Evidence, FindingRule, Inputs, Part


def _check(inputs: Inputs, thresholds: Mapping[str, float]) -> Iterator[Evidence]:
    rates = {
        node: count / seconds
        for node, (count, seconds) in inputs["stats_by_node"].items()
        if seconds >= thresholds["shortest_s"]
    }
    over = {node: rate for node, rate in rates.items() if rate > thresholds["stats_per_s"]}
    if over:
        node = max(over, key=lambda name: over[name])
        yield {"node": node, "stats_per_s": over[node], "nodes_over": len(over), "shortest_s": thresholds["shortest_s"]}


def _about(inputs: Inputs, evidence: Evidence) -> Part:
    return Part(("metadata",))


RULE: Final = FindingRule(
    code="stat-storm",
    title="storm of stat calls",
    severity="high",
    inputs=("stats_by_node",),
    thresholds={"stats_per_s": 50, "shortest_s": 60},
    check=_check,
    condition="more than {stats_per_s:g} stat calls per second on one node, on average over {shortest_s:g} s or longer",
    message="{stats_per_s:,.0f} stat calls per second on {node}, on average over {shortest_s:g} s or longer; nodes "
    "above the limit: {nodes_over:,}",
    remedy="Look for loops that wait for a file (stat, ls, os.path.exists) and let them sleep; use lfs find and "
    "ls --color=never; let one process look for all.",
    reference="Lustre Operations Manual, Monitoring a Lustre File System",
    about=_about,
)
