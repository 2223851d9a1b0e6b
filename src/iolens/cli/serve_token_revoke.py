"""Revoke a token; its sessions end."""

from __future__ import annotations

from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_state_options import state_directory, state_options


@verb("serve token revoke", "Revoke a token; its sessions end", epilog="Example: iolens serve token revoke wall-screen")
@click.argument("name")
@state_options
def serve_token_revoke(name: str, state: Path | None, store: str | None, config: str | None) -> None:
    """Revoke the token called NAME. It is refused from now on, and browsers that logged in with it are logged out."""
    from iolens.web.access.token_changes import revoke_token

    revoke_token(state_directory(state, store, config), name)
