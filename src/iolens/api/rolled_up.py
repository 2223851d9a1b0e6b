"""What follows a rollup: answers over long windows, which read the widest one, begin with parts that are remembered."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from iolens.api.access.store_analyses import StoreAnalyses
from iolens.errors import IolensError
from iolens.store.scope import Scope

LONG_WINDOWS: Final = "1h"  # the rollup that months and years are read from


def remember_long_windows(opened: StoreAnalyses) -> None:
    """Make the parts of utilization over all data, which the store then remembers; what cannot be made is left."""
    for name in opened.store.targets_by_filesystem():
        with suppress(IolensError):  # who asks for it hears why
            opened.analyse("utilization", Scope(name, resolution=LONG_WINDOWS))
