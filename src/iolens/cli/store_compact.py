"""Merge small files of each day into one, in time order."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.opened_store import opened_store
from iolens.cli.shared_store_options import store_options
from iolens.cli.terminal_output import progress
from iolens.visible_text import counted


@verb(
    "store compact",
    "Merge small files of each day into one, in time order",
    epilog="Example: iolens store compact --store centre",
)
@store_options
def store_compact(store: str | None, config: str | None) -> None:
    """Merge small files of each day into one, in time order."""
    from iolens.store.maintenance import compact_store

    with progress(None, "compacting") as step:
        done = compact_store(opened_store(store, config), step)
    click.echo(f"{counted(done.files_before, 'file')} of {counted(done.days, 'table-day')} became {done.files_after:,}")
