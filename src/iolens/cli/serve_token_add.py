"""Make a token and print it, once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_state_options import state_directory, state_options

if TYPE_CHECKING:
    from iolens.web.access.principal import Role


@verb(
    "serve token add",
    "Make a token and print it, once",
    epilog="""\b
Examples:
  iolens serve token add wall-screen --role viewer
  iolens serve token add ada --role user --user ada --expires 90d
  iolens serve token add oss1 --role agent > /etc/iolens-token
""",
)
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["viewer", "user", "operator", "agent"]),
    required=True,
    help="viewer: all pages; user: the own jobs; operator: also silences; agent: sends samples",
)
@click.option("--user", metavar="LOGIN", help="Whose jobs a token of the role user shows")
@click.option("--expires", metavar="DURATION", help="In force for so long, such as 90d; without it, until revoked")
@state_options
def serve_token_add(
    name: str,
    role: Role,
    user: str | None,
    expires: str | None,
    state: Path | None,
    store: str | None,
    config: str | None,
) -> None:
    """Make a token called NAME and print it on standard output.

    It is shown this once: only its hash is kept.
    """
    from iolens.units import parse_duration
    from iolens.web.access.token_changes import add_token

    try:
        seconds = None if expires is None else parse_duration(expires)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--expires") from None
    click.echo(add_token(state_directory(state, store, config), name, role, user, seconds))
