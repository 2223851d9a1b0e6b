"""Tokens with which people and agents reach the server."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import LazyVerbs


@click.group("token", cls=LazyVerbs, under="serve_token", epilog="Example: iolens serve token add alice --role viewer")
def COMMAND() -> None:
    """Make, list and revoke tokens of `iolens serve`. A running server follows at once."""
