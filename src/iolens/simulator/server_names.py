"""Which server of a simulated centre serves which target, as long as none fails over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

OSTS_PER_SERVER: Final = 4


def server_names(osts: Sequence[str], mdts: Sequence[str]) -> dict[str, str]:
    """Four OSTs on each OSS in turn, an MDT on each MDS; names sort as their numbers do."""
    last = -(-len(osts) // OSTS_PER_SERVER)
    width = max(2, len(str(last)))
    of_osts = {name: f"oss{place // OSTS_PER_SERVER + 1:0{width}d}" for place, name in enumerate(osts)}
    return of_osts | {name: f"mds{place + 1:02d}" for place, name in enumerate(mdts)}
