"""Was it me or the system: the verdict of one run as a sentence, and its factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from iolens.views.explain.tables import tables
from iolens.views.explain.words import notes, verdict_words
from iolens.views.render.section import Part

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation

SHORT: Final[Mapping[str, str]] = {
    "own": "It was slower than like runs because of what it did itself.",
    "system": "It was slower than like runs because of the system, not because of what it did.",
    "both": "It was slower than like runs, because of what it did itself and because of the system.",
    "unexplained": "It was slower than like runs, and nothing that was measured explains it.",
    "not slow": "It was not slow against like runs.",
}
NO_LOG: Final = "Whether it was slow cannot be said: that needs a Darshan log of it, and of like runs."
READING: Final = (
    "Percentile: its place among like runs, 50 is the middle. ρ: how the speed of like runs goes with the factor, from"
    " −1 (slower) to 1 (faster)."
)


def verdict_in_short(result: RunExplanation) -> str:
    """The verdict without its evidence."""
    return SHORT[result.verdict]


def verdict_sentence(result: RunExplanation) -> str:
    """`It was slow because of the system: …`."""
    if result.verdict == "no log":
        return NO_LOG
    words = verdict_words(result)
    return f"It was {words}" if result.verdict in SHORT else f"Whether it was slow cannot be said: {words}"


def verdict_parts(result: RunExplanation) -> tuple[Part, ...]:
    """The sentence, and the factors where any has a value."""
    own, system = ([line for line in lines if line.value is not None] for lines in (result.own, result.system))
    if not own and not system:
        return (verdict_sentence(result), *notes(result))
    factors = tables(replace(result, own=own, system=system))[0]
    return (
        verdict_sentence(result),
        replace(factors, title="Factors, its own and the system's", note=f"{READING}\n{factors.note}"),
    )
