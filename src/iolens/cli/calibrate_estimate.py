"""Estimate what a disk I/O costs from the telemetry that is stored."""

from __future__ import annotations

from pathlib import Path

import click

from iolens.cli.options import FORMAT, Selected, selection_options
from iolens.cli.terminal_output import present, progress, table_options
from iolens.messages import say


@click.command(
    "estimate",
    epilog="""\b
Examples:
  iolens calibrate estimate -f scratch
  iolens calibrate estimate -f scratch --from 2026-01-01 --to 2026-02-01 --format json
  iolens calibrate estimate -f scratch --save scratch-january
""",
)
@click.option("--save", "name", metavar="NAME", help="Store the coefficients, where both directions are identified")
@click.option("--format", "format_", type=FORMAT, default="table", show_default=True)
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write here")
@table_options
@selection_options
def COMMAND(selected: Selected, name: str | None, format_: str, output: Path | None) -> None:
    """Estimate what a disk I/O costs from counters that are stored, without a test on the disks.

    Three kinds of evidence per class of targets and direction: the limit that targets reached, the time their devices
    were busy, and times of single I/Os by size (Lustre 2.17). What is not known is called an upper bound of FSU.
    """
    from iolens.api.calibration_estimate import estimated_calibrations, save_estimate

    with selected.opened() as opened:
        with progress(None, "reading") as step:
            result = estimated_calibrations(opened, selected.scope, lambda day: step(str(day)))
        present(result, format_, output, ())
        if name is not None:
            classes = [
                f" [{target_class}]" if target_class else "" for target_class in save_estimate(result, opened, name)
            ]
            say(f"stored {', '.join(name + of_class for of_class in classes)} in {opened.store.url}")
