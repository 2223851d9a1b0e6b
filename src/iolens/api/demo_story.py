"""The story of the demo: one busy hour from FSU to a name, a victim that is cleared, a remedy and a plan."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from iolens.analyses.blame.results import Blame
from iolens.analyses.explain.analysis import RunExplanation
from iolens.analyses.runs.advise import RunAdvice
from iolens.analyses.utilization.analysis import Utilization
from iolens.api.demo_workload import victim_id
from iolens.api.explain import explanation
from iolens.api.open_store import OpenStore
from iolens.api.run_advice import advice_on
from iolens.api.runs import RunAccess
from iolens.store.scope import Scope

FILESYSTEM = "scratch"


@dataclass(frozen=True, slots=True)
class DemoStory:
    """Answers of the same verbs that a person types; without Darshan there is neither explanation nor advice."""

    whole: Utilization
    hour: Utilization
    blame: Blame
    explained: RunExplanation | None
    advice: RunAdvice | None
    plan_before: Any
    plan_of_hour: Any


def demo_story(opened: OpenStore, whole: Utilization, start: datetime, has_runs: bool) -> DemoStory:
    """Asked of the demo's store."""
    blame = opened.blame(FILESYSTEM, busiest="1h")
    hour = Scope(FILESYSTEM, blame.window_start, blame.window_end)
    before = Scope(FILESYSTEM, start, blame.window_start)
    first = blame.who[0].name
    return DemoStory(
        whole=whole,
        hour=opened.analyse("utilization", hour),
        blame=blame,
        explained=explanation(opened, victim_id(), Scope(FILESYSTEM), load=True) if has_runs else None,
        advice=advice_on([first], RunAccess(opened.store.url)) if has_runs else None,
        plan_before=opened.plan("performance", before),
        plan_of_hour=opened.plan("performance", hour),
    )
