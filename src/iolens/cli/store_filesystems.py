"""File systems: targets, time of the data, fullness, and more."""

from __future__ import annotations

from pathlib import Path

import click

from iolens.cli.options import FORMAT, store_options
from iolens.cli.terminal_output import present, table_options


@click.command("filesystems", epilog="Example: iolens store filesystems --store centre")
@click.option("--format", "format_", type=FORMAT, default="table", show_default=True)
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write here")
@store_options
@table_options
def COMMAND(format_: str, output: Path | None, store: str | None, config: str | None) -> None:
    """File systems of the store: targets, servers, time of the data, fullness, and what else is stored of each."""
    from iolens.api import OpenStore
    from iolens.api.centre_state import centre_state

    with OpenStore(store, config=config) as opened:
        result = centre_state(opened)
    present(result, format_, output, ())
