"""End a silence now."""

from __future__ import annotations

from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_state_options import state_directory, state_options


@verb("alerts unsilence", "End a silence now", epilog="Example: iolens alerts unsilence 3")
@click.argument("number", type=click.IntRange(1))
@state_options
def alerts_unsilence(number: int, state: Path | None, store: str | None, config: str | None) -> None:
    """End the silence NUMBER, as `iolens alerts list` shows it. What still fires is sent by the next check."""
    from iolens.api.alerts import remove_silence

    silence = remove_silence(state_directory(state, store, config), number)
    click.echo(f"silence {silence.id} of {silence.author} is over")
