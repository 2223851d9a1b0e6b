"""Parts that were made of one reading for several questions: each question's own stream, and what came of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any


@dataclass(frozen=True, slots=True)
class GatheredWhole:
    """All parts of a question together, and what is said of them."""

    whole: Any
    days_from_parts: dict[str, set[date]]


def streams_of(made: Iterator[Any], count: int) -> list[Iterator[Any]]:
    """Each question's parts, of those that were made together; nothing is held that all have taken, as `tee` does."""
    waiting: list[deque[Any]] = [deque() for _ in range(count)]

    def stream(place: int) -> Iterator[Any]:
        while True:
            if not waiting[place]:
                parts = next(made, None)
                if parts is None:
                    return
                for queue, part in zip(waiting, parts, strict=True):
                    queue.append(part)
                del parts, part  # no part outlives its turn
            yield waiting[place].popleft()

    return [stream(place) for place in range(count)]
