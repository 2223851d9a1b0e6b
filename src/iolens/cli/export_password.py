"""Print a line for --auth-file: a user and the hash of a password."""

from __future__ import annotations

import sys

import click

from iolens.cli.lazy_verbs import verb


@verb(
    "export password",
    "Print a line for --auth-file: a user and the hash of a password",
    epilog="""\b
Examples:
  iolens export password prometheus >> /etc/iolens-users        asks for it twice
  iolens export password prometheus < password.txt
""",
)
@click.argument("user")
def export_password(user: str) -> None:
    """Hash a password for USER, with scrypt and a new salt: the password itself is kept nowhere.

    It is asked for on a terminal, else it is the first line of standard input.
    """
    from iolens.agent.exporter.access import password_line

    if sys.stdin.isatty():
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    click.echo(password_line(user, password))
