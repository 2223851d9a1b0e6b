"""Write the manual pages, one per command, for `man iolens`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb


@verb(
    "man",
    "Write the manual pages, one per command, for `man iolens`",
    epilog="""\b
Examples:
  iolens man                               then: man iolens; man iolens utilization
  iolens man /usr/local/share/man/man1
""",
)
@click.argument("directory", required=False, type=click.Path(path_type=Path, file_okay=False))
def man(directory: Path | None) -> None:
    """Write a manual page for each command into DIRECTORY.

    Without DIRECTORY: share/man/man1 of the environment that iolens runs in, where `man` looks by itself when the
    environment's bin directory is in PATH.
    """
    from iolens.cli.main import iolens
    from iolens.cli.manual_pages import manual_pages
    from iolens.views.render import atomic

    place = directory or Path(sys.prefix) / "share" / "man" / "man1"
    place.mkdir(parents=True, exist_ok=True)
    pages = manual_pages(iolens)
    for name, text in pages.items():
        atomic.write(place / name, text)
    click.echo(f"{len(pages)} manual pages in {place}")
