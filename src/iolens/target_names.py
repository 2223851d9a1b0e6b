"""What the name of a target tells: Lustre's name their kind and number, those of other systems tell nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

_LUSTRE: Final = re.compile(r"(?:.*-)?(OST|MDT)[0-9a-f]{1,8}", re.IGNORECASE | re.DOTALL)


def kind_by_name(target: str) -> str | None:
    """`ost`, `mdt` or `mgs`; None where the name does not say."""
    if match := _LUSTRE.fullmatch(target):
        return match[1].lower()
    return "mgs" if target == "MGS" else None


def of_like_kind(names: Iterable[str], others: Iterable[str]) -> set[str]:
    """Those names that are of a kind some of the others are of, as far as names tell."""
    kinds = {kind_by_name(name) for name in others}
    return {name for name in names if kind_by_name(name) in kinds}


def members_by_pattern(groups: Mapping[str, Sequence[str]], targets: Iterable[str]) -> dict[str, list[str]]:
    """Targets by group: the first in order that has a pattern (`*`, `?`, `[abc]`) which fits."""
    members: dict[str, list[str]] = {name: [] for name in groups}
    for target in sorted(targets):
        fits = (name for name, patterns in groups.items() if any(fnmatchcase(target, pattern) for pattern in patterns))
        if (first := next(fits, None)) is not None:
            members[first].append(target)
    return members
