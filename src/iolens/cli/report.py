"""Turn a store into one self-contained HTML report."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from iolens.cli.options import RATE, TIME, WORDS, in_zone, reading_options, store_options
from iolens.cli.terminal_output import progress
from iolens.store.scope import Scope

PARTLY_DONE = 3


@click.command(
    "report",
    epilog="""\b
Examples:
  iolens report --store centre --output report.html
  iolens report -f scratch,home --from 2012-10-22 --to 2012-10-29 --peak 35GB/s -o week.html
""",
)
@click.option("--engine", metavar="NAME", help="duckdb, local-spark, spark://HOST:PORT or sc://HOST:PORT")
@click.option(
    "--filesystem", "-f", "filesystems", type=WORDS, default="", metavar="NAMES",
    help="File systems, comma-separated [all in the store]",
)  # fmt: skip
@click.option("--from", "since", type=TIME, metavar="TIME", help="Start of the window, such as 2012-10-22")
@click.option("--to", "until", type=TIME, metavar="TIME", help="End of the window, not included")
@click.option("--timezone", metavar="ZONE", help="Zone of times without one, such as Europe/Berlin [UTC]")
@click.option("--resolution", type=click.Choice(["raw", "60s", "1h"]),
              help="Raw rows or a rollup [raw; a rollup where none is left]")  # fmt: skip
@click.option("--calibration", metavar="NAME", help="Stored, configured or shipped calibration (shipped: grace-2012)")
@click.option(
    "--peak", type=RATE, metavar="RATE", help="Peak bandwidth, such as 35GB/s; default: configured, else largest tick"
)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), default=Path("report.html"), show_default=True,
    help="Where to write it",
)  # fmt: skip
@reading_options
@store_options
def COMMAND(
    engine: str | None,
    filesystems: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    timezone: str | None,
    resolution: str | None,
    calibration: str | None,
    peak: float | None,
    output: Path,
    **opened_with: Any,
) -> int:
    """Write every table and figure of a store's file systems into one HTML file.

    It opens from disk in any browser, fetches nothing, and prints well: a summary in words first, then the evidence,
    with what is missing in the data beside it.
    """
    from iolens.api import OpenStore
    from iolens.api.access.listener import Listener
    from iolens.api.report import write_report
    from iolens.views.render import atomic

    atomic.check_place(output)
    scope = Scope(None, in_zone(since, timezone), in_zone(until, timezone), resolution=resolution)
    with OpenStore(opened_with.pop("store"), engine=engine, **opened_with) as opened, progress(None, "reading") as step:
        written = write_report(
            opened,
            output,
            filesystems,
            scope,
            timezone=timezone,
            listener=Listener(step=step),
            calibration=calibration,
            peak=peak,
        )
    click.echo(f"written: {output}, {written.bytes / 1e6:.1f} MB", err=True)
    for line in written.refused:
        click.echo(f"iolens: {line}", err=True)
    return PARTLY_DONE if written.refused else 0
