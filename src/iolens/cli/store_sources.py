"""What brought data and when, what was refused, days to roll up."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from iolens.cli.options import FORMAT, store_options
from iolens.cli.shared_time_options import window_options
from iolens.cli.terminal_output import present, table_options


@click.command(
    "sources",
    epilog="""\b
Examples:
  iolens store sources --store centre
  iolens store sources --from -7d --table refused_inputs
""",
)
@click.option("--top", type=click.IntRange(1), default=50, show_default=True, help="How many origins, refused inputs")
@click.option("--format", "format_", type=FORMAT, default="table", show_default=True)
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write here")
@window_options
@store_options
@table_options
def COMMAND(
    top: int,
    format_: str,
    output: Path | None,
    since: datetime | None,
    until: datetime | None,
    timezone: str | None,
    store: str | None,
    config: str | None,
) -> None:
    """What brought data into the store and when, what was refused and why, agents, and days to roll up.

    A batch is in the window if its data overlap it; if it has no time of data, if it was ingested then.
    """
    from iolens.api import OpenStore
    from iolens.api.source_list import source_list

    with OpenStore(store, config=config) as opened:
        result = source_list(opened, since, until, top)
    present(result, format_, output, ())
