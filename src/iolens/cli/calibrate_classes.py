"""List classes of disks, with their bands and evidence."""

from __future__ import annotations

from pathlib import Path

import click

from iolens.cli.options import FORMAT
from iolens.cli.terminal_output import present, table_options


@click.command("classes", epilog="Example: iolens calibrate classes --format json")
@click.option("--format", "format_", type=FORMAT, default="table")
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write here")
@table_options
def COMMAND(format_: str, output: Path | None) -> None:
    """List the shipped classes of disks: what an I/O costs, how exactly that is known, and where it comes from."""
    from iolens.analyses.calibration.classes import shipped_classes

    present(shipped_classes(), format_, output, ())
