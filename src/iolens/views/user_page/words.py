"""What is said to a user first: what ran, what it cost, what to change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from iolens.views.brief_page.advice import first_advice
from iolens.views.brief_page.numbers import cost_words, hours, moved_words
from iolens.views.render.shown_times import window_with_zone
from iolens.visible_text import counted, shown_name

if TYPE_CHECKING:
    from iolens.analyses.user_page import UserPage

WHEN: Final = "in this time"


def answer(page: UserPage) -> Iterator[str]:
    """Two or three short paragraphs."""
    window = window_with_zone(page.window_start, page.window_end)
    if not page.jobs:
        yield f"Nothing of {shown_name(page.user)} is stored from {window}."
        return
    yield f"{_what(page, window)} {' '.join(_costs(page))}"
    if page.slow_runs:
        were = "was" if len(page.slow_runs) == 1 else "were"
        yield f"At least {counted(len(page.slow_runs), 'run')} {were} slower than like runs; below is why."
    yield first_advice(page.advice, page.is_judged, page.runs)


def _what(page: UserPage, window: str) -> str:
    cost = f" ({hours(page.core_hours)})" if page.core_hours else ""
    they = _they(page)
    words = moved_words(page.read_bytes, page.write_bytes)
    moved = f"; {they} {words}" if words else f"; what {they} moved is not known"
    return f"From {window}, {shown_name(page.user)} ran {counted(page.jobs, 'job')}{cost}{moved}."


def _costs(page: UserPage) -> Iterator[str]:
    for use in page.uses:
        yield cost_words(_they(page).capitalize(), shown_name(use.filesystem), use.cost, WHEN)
    if not page.uses:
        yield f"How much disk time {_they(page)} took is not known."


def _they(page: UserPage) -> str:
    return "it" if page.jobs == 1 else "they"
