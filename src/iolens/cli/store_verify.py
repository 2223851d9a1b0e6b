"""Check that every file is there and is the one written."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.opened_store import opened_store
from iolens.cli.shared_store_options import store_options
from iolens.cli.terminal_output import progress
from iolens.visible_text import counted


@verb(
    "store verify",
    "Check that every file is there and is the one written",
    epilog="Example: iolens store verify --store centre",
)
@store_options
def store_verify(store: str | None, config: str | None) -> int:
    """Check that every file is there and is the one that was written; exit code 1 when not."""
    from iolens.store.maintenance import verify_store

    with progress(None, "verifying") as step:
        result = verify_store(opened_store(store, config), step)
    for fault in result.faults:
        click.echo(f"{fault}", err=True)
    for line in result.unchecked:
        click.echo(f"not checked: {line}", err=True)
    click.echo(
        f"{counted(result.files, 'file')} checked, {result.unrecorded:,} without a recorded checksum, "
        f"{counted(len(result.faults), 'fault')}"
    )
    return 1 if result.faults else 0
