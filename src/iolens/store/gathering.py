"""Small captures gathered into one: thousands of logs would otherwise be a unit of the store each, with all its cost.

Each is looked for by its own row before, so that what the store has is left out however captures are gathered. The row
is written after all others of its capture: where a load broke off, the rows that are there already are dropped by key.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from iolens.open_files import release
from iolens.records import Capture
from iolens.visible_text import counted

MOST: Final = 512  # captures in one
LARGEST_BYTES: Final = 1 << 20  # a larger file is read alone
MOST_BYTES: Final = 8 << 20  # of all files in one


def gathered(
    captures: Iterable[Capture], is_wanted: Callable[[Capture], bool], unwanted: Callable[[Capture], None]
) -> Iterator[Capture]:
    """The captures in order, with small ones that can be read together as one; `unwanted` hears of those left out."""
    members: list[Capture] = []
    total = 0
    for capture in captures:
        size = None if capture.together is None else _small_size(capture)
        if members and (size is None or capture.together is not members[0].together or total + size > MOST_BYTES):
            yield _combined(members)
            members, total = [], 0
        if size is None:
            yield capture
            continue
        release(capture.origin)  # whoever reads them together opens them again
        if not is_wanted(capture):
            unwanted(capture)
            continue
        members.append(capture)
        total += size
        if len(members) == MOST:
            yield _combined(members)
            members, total = [], 0
    if members:
        yield _combined(members)


def _small_size(capture: Capture) -> int | None:
    try:
        size = os.stat(capture.origin).st_size  # noqa: PTH116 (for each of many thousands)
    except OSError:
        return None
    return size if size <= LARGEST_BYTES else None


def _combined(members: list[Capture]) -> Capture:
    together = members[0].together
    assert together is not None
    others = f" and {counted(len(members) - 1, 'more file')}" if len(members) > 1 else ""
    names = [(capture.origin, "" if capture.row is None else capture.row.value) for capture in members]
    items = partial(together, names)
    return Capture(f"{members[0].origin}{others}", f"gathered/{uuid.uuid4()}", items, members=tuple(members))
