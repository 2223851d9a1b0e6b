"""List tokens: names, roles, when made and last used."""

from __future__ import annotations

from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import format_option
from iolens.cli.shared_state_options import state_directory, state_options


@verb(
    "serve token list",
    "List tokens: names, roles, when made and last used",
    epilog="Example: iolens serve token list --format json",
)
@format_option("table", "json")
@state_options
def serve_token_list(format_: str, state: Path | None, store: str | None, config: str | None) -> None:
    """List all tokens that were made, also those that are revoked or expired. No token is shown: none is kept.

    The last use is known to the hour.
    """
    import json

    from iolens.web.access.token_changes import listed_tokens, token_lines

    tokens = listed_tokens(state_directory(state, store, config))
    click.echo(json.dumps(tokens, indent=2) if format_ == "json" else "\n".join(token_lines(tokens)))
