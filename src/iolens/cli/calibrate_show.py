"""List calibrations, what they mean and how they changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import format_option, output_option
from iolens.cli.shared_store_options import store_options
from iolens.cli.terminal_output import ShownTables, present, shown_tables, table_options

if TYPE_CHECKING:
    from iolens.analyses.calibration.stored import KnownCalibrations


@verb(
    "calibrate show",
    "List calibrations, what they mean and how they changed",
    epilog="Example: iolens calibrate show --store centre",
)
@click.option("--filesystem", "-f", metavar="NAME", help="Only those of this file system, and how they changed")
@format_option()
@output_option()
@store_options
@table_options
def calibrate_show(
    filesystem: str | None, format_: str, output: Path | None, store: str | None, config: str | None
) -> None:
    """List stored, configured and shipped calibrations, what they mean, and how they changed over time."""
    from iolens.api.calibration import calibrations
    from iolens.config import load_config
    from iolens.store.store import Store

    known = load_config(config)
    opened = Store(known.store_url(store))
    if store is not None:
        opened.check_that_it_exists()
    result = calibrations(opened, known, filesystem)
    if format_ == "table" and output is None and shown_tables() == ShownTables():
        _list(result)
    else:
        present(result, format_, output, ())


def _list(result: KnownCalibrations) -> None:
    """Two lines per calibration and its ceiling where one was measured, then the drift."""
    from iolens.units import MIB
    from iolens.views.render.formats import tables_of
    from iolens.views.render.tables import to_terminal

    for known in result.calibrations:
        of_class = f" [{known.target_class}]" if known.target_class else ""
        click.echo(f"{known.calibration.name}{of_class}  {known.origin} ({known.state})")
        for direction in ("write", "read"):
            cost = known.calibration.of(direction)
            limits = f"{cost.bytes_per_s_limit / MIB:,.0f} MiB/s, {cost.iops_limit:,.0f} IOPS at most"
            click.echo(f"  {direction:5} {cost.latency_s:.4g} s + {cost.s_per_byte:.4g} s/byte: {limits}")
        if known.ceiling_fsu_pct is not None:
            click.echo(f"  full at an FSU of {known.ceiling_fsu_pct:.1f} %, as a saturating test showed")
    if result.drift:
        click.echo()
        click.echo(to_terminal(tables_of(result)[1:]), nl=False)
