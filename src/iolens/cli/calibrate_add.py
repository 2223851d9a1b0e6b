"""Store known coefficients under NAME."""

from __future__ import annotations

from datetime import datetime

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_store_options import store_options
from iolens.cli.value_types import TIME


@verb(
    "calibrate add",
    "Store known coefficients under NAME",
    epilog="""\b
Example:
  iolens calibrate add hopper-2012 --filesystem scratch --from 2012-10-01
    --write 1.04e-3,4.55e-9 --read 8.02e-4,1.23e-9 --evidence "IOR sweep of October 2012"
""",
)
@click.argument("name")
@click.option("--filesystem", "-f", metavar="NAME", help="File system it is for [none: used only by name]")
@click.option("--target-class", metavar="NAME", help="Class of targets it is for [all]")
@click.option("--write", "write_cost", required=True, metavar="LATENCY,S_PER_BYTE", help="w0 in seconds, w1 in s/byte")
@click.option("--read", "read_cost", required=True, metavar="LATENCY,S_PER_BYTE", help="r0 in seconds, r1 in s/byte")
@click.option("--from", "valid_from", type=TIME, metavar="TIME", help="Time from which on it is valid")
@click.option("--queue-depth", type=int, help="Transfers in flight while it was measured")
@click.option(
    "--ceiling", type=click.FloatRange(0, min_open=True), metavar="PCT", help="FSU measured during a saturating test"
)
@click.option(
    "--state",
    type=click.Choice(["measured", "class"]),
    default="measured",
    show_default=True,
    help="Measured on such targets, or a published class that you choose",
)
@click.option("--evidence", default="given on the command line", show_default=True, help="Where the numbers come from")
@store_options
def calibrate_add(
    name: str,
    filesystem: str | None,
    target_class: str | None,
    write_cost: str,
    read_cost: str,
    valid_from: datetime | None,
    queue_depth: int | None,
    ceiling: float | None,
    state: str,
    evidence: str,
    store: str | None,
    config: str | None,
) -> None:
    """Store known coefficients under NAME; utilization then finds them by file system and date."""
    from iolens.api.calibration import add_calibration
    from iolens.config import load_config
    from iolens.models.transaction_time import CalibrationState
    from iolens.store.store import Store

    opened = Store(load_config(config).store_url(store))
    add_calibration(
        opened,
        name,
        _cost(write_cost, "--write"),
        _cost(read_cost, "--read"),
        filesystem=filesystem,
        target_class=target_class,
        valid_from=valid_from,
        queue_depth=queue_depth,
        ceiling_fsu_pct=ceiling,
        state=CalibrationState(state),
        evidence=evidence,
    )
    click.echo(f"stored {name} in {opened.url}")


def _cost(text: str, option: str) -> tuple[float, float]:
    """Two positive numbers."""
    try:
        latency, rate = (float(word) for word in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r}: write two numbers, such as 1.04e-3,1.73e-9", param_hint=option) from None
    if latency <= 0 or rate <= 0:
        raise click.BadParameter(f"{text!r}: both must be positive", param_hint=option)
    return latency, rate
