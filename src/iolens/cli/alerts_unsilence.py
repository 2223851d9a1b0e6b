"""End a silence now."""

from __future__ import annotations

import click

from iolens.cli.shared_alert_options import state_options


@click.command("unsilence", epilog="Example: iolens alerts unsilence 3")
@click.argument("number", type=click.IntRange(1))
@state_options
def COMMAND(number: int, state: str | None, config: str | None) -> None:
    """End the silence NUMBER, as `iolens alerts list` shows it. What still fires is sent by the next check."""
    from iolens.api.alerts import remove_silence
    from iolens.config import load_config

    silence = remove_silence(load_config(config).state_path(state), number)
    click.echo(f"silence {silence.id} of {silence.author} is over")
