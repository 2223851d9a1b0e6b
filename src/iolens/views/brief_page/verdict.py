"""Was it me or the system: the verdict of one run as a sentence, and its factors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from iolens.views.explain.tables import tables
from iolens.views.explain.words import notes, verdict_words
from iolens.views.render.section import Part

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation

JUDGED: Final = ("own", "system", "both", "unexplained", "not slow")
READING: Final = (
    "Percentile: its place among like runs, 50 is the middle. ρ: how the speed of like runs goes with the factor, from"
    " −1 (slower) to 1 (faster)."
)


def verdict_sentence(result: RunExplanation) -> str:
    """`It was slow because of the system: …`."""
    words = verdict_words(result)
    return f"It was {words}" if result.verdict in JUDGED else f"Whether it was slow cannot be said: {words}"


def verdict_parts(result: RunExplanation) -> tuple[Part, ...]:
    """The sentence, and the factors where any has a value."""
    said = [verdict_sentence(result)]
    if all(line.value is None for line in (*result.own, *result.system)):
        return (*said, *notes(result))
    factors = tables(result)[0]
    return (*said, replace(factors, title="Factors, its own and the system's", note=f"{READING}\n{factors.note}"))
