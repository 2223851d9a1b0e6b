"""Was it me or the system, for a page that is sent to a user: without the names of others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from iolens.analyses.job_page.results import MissingPart
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.explain import explanation
from iolens.errors import IolensError
from iolens.store.scope import Scope

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation

WHAT = "whether it was slow, and why"


def verdict_of(
    opened: StoreAnalyses, which: str, scope: Scope, names: bool = False
) -> tuple[RunExplanation | None, list[MissingPart]]:
    """The explanation of a run or job, or why there is none. `names`: with its neighbours."""
    try:
        result = explanation(opened, which, scope)
    except IolensError as error:
        return None, [MissingPart(WHAT, str(error))]
    return (result if names else replace(result, neighbours=[])), []
