"""What was ingested, batch by batch, and what was taken back."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from iolens.cli.options import FORMAT, store_options
from iolens.cli.shared_time_options import TIME
from iolens.cli.terminal_output import present, table_options


@click.command(
    "log",
    epilog="""\b
Examples:
  iolens store log --store centre
  iolens store log --source slurm --since -2d
""",
)
@click.option("--source", metavar="NAME", help="Only batches of this source")
@click.option("--since", type=TIME, metavar="TIME", help="Only batches that were ingested since then")
@click.option("--top", type=click.IntRange(1), default=50, show_default=True, help="How many, newest first")
@click.option("--format", "format_", type=FORMAT, default="table", show_default=True)
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write here")
@store_options
@table_options
def COMMAND(
    source: str | None,
    since: datetime | None,
    top: int,
    format_: str,
    output: Path | None,
    store: str | None,
    config: str | None,
) -> None:
    """List what was ingested, newest first: id, time, source, origin, rows by table, refused places, when taken back.

    The id of a batch is what `iolens store undo` takes.
    """
    from iolens.api import OpenStore
    from iolens.api.ingest_log import ingest_log

    with OpenStore(store, config=config) as opened:
        present(ingest_log(opened, source, since, top), format_, output, ())
