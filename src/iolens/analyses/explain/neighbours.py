"""Who else used the targets of a run in its time, out of what blame says of them (B1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from iolens.analyses.attribution.job_ids import JobIdParts
from iolens.analyses.blame.results import Blame
from iolens.analyses.explain.results import RunNeighbour

MOST: Final = 10


def neighbours_of(blame: Blame, job_id: str | None, parts_of: Callable[[str], JobIdParts]) -> list[RunNeighbour]:
    """Other jobs by their share of the targets' disk time, the largest first."""
    others = [line for line in blame.who if job_id is None or job_id not in (line.name, parts_of(line.name).job_id)]
    used = [line for line in others if line.share_pct > 0]
    return [RunNeighbour(line.name, line.share_pct, line.user, line.executable) for line in used[:MOST]]
