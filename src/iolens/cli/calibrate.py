"""Calibrations: what a disk I/O costs, per file system and date."""

from __future__ import annotations

from datetime import datetime

import click

from iolens.cli.options import TIME, in_zone, store_options


@click.group("calibrate")
def COMMAND() -> None:
    """Look at calibrations and store known ones."""


@COMMAND.command(epilog="Example: iolens calibrate show --store centre")
@store_options
def show(store: str | None, config: str | None) -> None:
    """List stored, configured and shipped calibrations with what they mean."""
    from iolens.analyses.calibrations import known_calibrations
    from iolens.config import load_config
    from iolens.store.store import Store
    from iolens.units import MIB

    found = load_config(config)
    for one in known_calibrations(Store(found.store_url(store)).calibrations(), found):
        click.echo(f"{one.calibration.name}  {one.origin}")
        for direction in ("write", "read"):
            cost = one.calibration.of(direction)
            limits = f"{cost.bytes_per_s_limit / MIB:,.0f} MiB/s, {cost.iops_limit:,.0f} IOPS at most"
            click.echo(f"  {direction:5} {cost.latency_s:.4g} s + {cost.s_per_byte:.4g} s/byte: {limits}")


@COMMAND.command(
    epilog="""\b
Example:
  iolens calibrate add hopper-2012 --filesystem scratch --from 2012-10-01
    --write 1.04e-3,4.55e-9 --read 8.02e-4,1.23e-9 --evidence "IOR sweep of October 2012"
"""
)
@click.argument("name")
@click.option("--filesystem", "-f", metavar="NAME", help="File system it holds for; left out: only by name")
@click.option("--write", "write_cost", required=True, metavar="LATENCY,S_PER_BYTE", help="w0 in seconds, w1 in s/byte")
@click.option("--read", "read_cost", required=True, metavar="LATENCY,S_PER_BYTE", help="r0 in seconds, r1 in s/byte")
@click.option("--from", "valid_from", type=TIME, metavar="TIME", help="First moment it holds for")
@click.option("--queue-depth", type=int, help="Transfers in flight while it was measured")
@click.option("--evidence", default="given on the command line", show_default=True, help="Where the numbers come from")
@store_options
def add(
    name: str,
    filesystem: str | None,
    write_cost: str,
    read_cost: str,
    valid_from: datetime | None,
    queue_depth: int | None,
    evidence: str,
    store: str | None,
    config: str | None,
) -> None:
    """Store known coefficients under NAME; utilization then finds them by file system and date."""
    import time

    from iolens.config import load_config
    from iolens.store.store import Store
    from iolens.units import epoch_us

    moment = in_zone(valid_from, None)
    (write_latency, write_rate), (read_latency, read_rate) = _cost(write_cost, "--write"), _cost(read_cost, "--read")
    opened = Store(load_config(config).store_url(store))
    opened.add_calibration(
        {
            "time": time.time_ns() // 1000,
            "source": "command line",
            "filesystem": filesystem,
            "name": name,
            "valid_from": epoch_us(moment) if moment else None,
            "write_latency_s": write_latency,
            "write_s_per_byte": write_rate,
            "read_latency_s": read_latency,
            "read_s_per_byte": read_rate,
            "queue_depth": queue_depth,
            "evidence": evidence,
        }
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
