"""List classes of disks, with their bands and evidence."""

from __future__ import annotations

from pathlib import Path

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import format_option, output_option
from iolens.cli.terminal_output import present, table_options


@verb(
    "calibrate classes",
    "List classes of disks, with their bands and evidence",
    epilog="Example: iolens calibrate classes --format json",
)
@format_option()
@output_option()
@table_options
def calibrate_classes(format_: str, output: Path | None) -> None:
    """List the shipped classes of disks: what an I/O costs, how exactly that is known, and where it comes from."""
    from iolens.analyses.calibration.classes import shipped_classes

    present(shipped_classes(), format_, output, ())
