"""Segments of agents that the store did not take, or not all of: what is in `late/` and `bad/` of the hub."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iolens.alerts.changes import SegmentsAside
from iolens.alerts.rule import AlertRule, Answers, CheckedWindow, Condition, EvidenceQuestion, RuleKind
from iolens.units import DAY_S, iso


def questions(rule: AlertRule) -> Sequence[EvidenceQuestion]:
    """What lies beside the inbox now."""
    return (EvidenceQuestion("put_aside", rule.window_s),)


def conditions(rule: AlertRule, answers: Answers, window: CheckedWindow) -> Iterator[Condition]:
    """Every agent that has sent segments."""
    aside: Sequence[SegmentsAside] = answers["put_aside"]
    for agent in aside:
        count = agent.late + agent.bad
        if agent.since is None:
            why = f"No segment of {agent.host} is put aside."
        else:
            why = (
                f"Of the agent on {agent.host} {agent.late} segments are in late/ and {agent.bad} in bad/, the first "
                f"since {iso(agent.since)}: these samples are not in the store. The files beside them say why."
            )
        yield Condition(agent.host, rule.level(count), why, float(count), since=agent.since)


KIND = RuleKind(
    summary="samples of an agent are not in the store: segments were put aside",
    measure="segments in late/ and bad/",
    unit="n",
    threshold=1.0,
    clear=1.0,
    window_s=1.0 * DAY_S,
    questions=questions,
    conditions=conditions,
    verb=("store", "info"),
    page="data",
    of_store=True,
    absent="clear",
    absent_why="Its folder is empty.",
)
