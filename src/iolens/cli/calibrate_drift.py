"""Name slower targets, and what I/Os cost by month."""

from __future__ import annotations

from pathlib import Path

import click

from iolens.cli.options import FORMAT, Selected, selection_options
from iolens.cli.terminal_output import present, progress, table_options


@click.command(
    "drift",
    epilog="""\b
Examples:
  iolens calibrate drift -f scratch
  iolens calibrate drift -f scratch --from 2026-01-01 --to 2026-07-01 --format json
  iolens calibrate drift -f scratch --figure drift.png
""",
)
@click.option("--format", "format_", type=FORMAT, default="table", show_default=True)
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write here")
@click.option(
    "--figure", "figures", multiple=True, metavar="[NAME=]FILE",
    help="drift: coefficients by month, fullness beside them (.svg .png .pdf .html); repeatable",
)  # fmt: skip
@table_options
@selection_options
def COMMAND(selected: Selected, format_: str, output: Path | None, figures: tuple[str, ...]) -> None:
    """Targets that are slower than their class, and what a disk I/O costs from month to month.

    By the counters of `calibrate estimate`. A target is named if an I/O takes it at least 1.25 times as long as the
    others of its class, beyond chance for so many targets, with the day since when. Coefficients of each month have
    their intervals, and their change with age and with fullness.
    """
    from iolens.api.calibration_drift import drift_of
    from iolens.views.render.formats import check_figures

    if figures:
        check_figures("calibration_drift", figures)
    with selected.opened() as opened, progress(None, "reading") as step:
        result = drift_of(opened, selected.scope, lambda day: step(str(day)))
    present(result, format_, output, figures)
