"""The store that verbs which look after one work on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iolens.store.store import Store


def opened_store(store: str | None, config: str | None) -> Store:
    """The store named, or the usual one; it must be there."""
    from iolens.config import load_config
    from iolens.store.store import Store

    opened = Store(load_config(config).store_url(store))
    opened.check_that_it_exists()
    return opened
