"""Tokens with which people and agents reach the server."""

from __future__ import annotations

from iolens.cli.lazy_verbs import verb_group


@verb_group(
    "serve token",
    "Tokens with which people and agents reach the server",
    epilog="Example: iolens serve token add alice --role viewer",
)
def serve_token() -> None:
    """Make, list and revoke tokens of `iolens serve`. A running server follows at once."""
