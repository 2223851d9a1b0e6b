"""Choose a class of disks, or another calibration, for a file system."""

from __future__ import annotations

from datetime import datetime

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_store_options import store_options
from iolens.cli.value_types import TIME
from iolens.messages import say


@verb(
    "calibrate use",
    "Choose a class of disks, or another calibration, for a file system",
    epilog="""\b
Examples:
  iolens calibrate use virtual-disk-2026 -f scratch
  iolens calibrate use scratch-2026 -f scratch --class ssd --from 2026-03-01
""",
)
@click.argument("name", metavar="CLASS|NAME")
@click.option("--filesystem", "-f", metavar="NAME", required=True, help="File system it is for")
@click.option("--class", "target_class", metavar="NAME", help="Class of targets it is for [all]")
@click.option(
    "--from", "valid_from", type=TIME, metavar="TIME", help="Time from which on it is valid [that of the one in use]"
)
@store_options
def calibrate_use(
    name: str,
    filesystem: str,
    target_class: str | None,
    valid_from: datetime | None,
    store: str | None,
    config: str | None,
) -> None:
    """Choose the calibration of a file system: a shipped or configured class, or a stored calibration by its name.

    Without --from it takes the place of the newest calibration of the same file system and class of targets.
    """
    from iolens.api.calibration import use_calibration
    from iolens.config import load_config
    from iolens.store.store import Store
    from iolens.units import iso

    known = load_config(config)
    opened = Store(known.store_url(store))
    used = use_calibration(opened, known, name, filesystem=filesystem, target_class=target_class, valid_from=valid_from)
    of_class = f", class {target_class}," if target_class else ""
    since = "at all times" if used.valid_from is None else f"from {iso(used.valid_from)} on"
    click.echo(f"{filesystem}{of_class} uses {name} {since} (state: {used.state or 'not known'}) in {opened.url}")
    click.echo(used.evidence)
    for note in used.notes:
        say(f"warning: {note}")
