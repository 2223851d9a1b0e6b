"""What somebody may have meant who gave a name that is not there."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

MOST: Final = 3  # names that are suggested
ALL_LISTED: Final = 16  # names that are listed where there are no more


def not_among(name: str, known: Iterable[str]) -> str:
    """`; did you mean scratch? There are: home, scratch`: the nearest names, and all where they are few."""
    names = sorted(set(known))
    if not names:
        return "; there is none"
    by_lower = {name.lower(): name for name in names}
    near = [by_lower[close_match] for close_match in get_close_matches(name.lower(), by_lower, MOST)]
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    if len(names) <= ALL_LISTED:
        return f"{meant} There are: {', '.join(names)}" if meant else f"; there are: {', '.join(names)}"
    return meant or f"; there are {len(names)}, such as {', '.join(names[:MOST])}"
