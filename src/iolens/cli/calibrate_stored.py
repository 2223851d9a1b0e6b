"""`iolens calibrate`: fit, add, choose and show calibrations."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import ShownTables, format_option, output_option, present, shown_tables, table_options
from iolens.cli.shared_store_options import store_options
from iolens.cli.value_types import BYTES, TIME
from iolens.messages import say

if TYPE_CHECKING:
    from iolens.analyses.calibration.stored import KnownCalibrations
    from iolens.store.store import Store


# Store known coefficients under NAME ----------------------------------------------------------------------------------


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


# List classes of disks, with their bands and evidence -----------------------------------------------------------------


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


# Fit the transaction model t = a0 + a1·b to benchmark runs ------------------------------------------------------------


@verb(
    "calibrate fit",
    "Fit the transaction model t = a0 + a1·b to benchmark runs",
    epilog="""\b
Examples:
  iolens calibrate fit                                    the last sweep in the store
  iolens calibrate fit sdx.json --figure prediction=fit.png
  iolens calibrate fit ior-*.json --queue-depth 4 --format json
  iolens calibrate fit --save scratch-2026 -f scratch --target-class ssd
""",
)
@click.argument("what", nargs=-1, metavar="[SWEEP|FILE]...")
@click.option("--queue-depth", type=click.IntRange(1), help="Only runs with this number of I/Os in flight")
@click.option(
    "--access", type=click.Choice(["random", "sequential", "any"]), default="random", show_default=True,
    help="Only runs of this kind",
)  # fmt: skip
@click.option(
    "--repeats", type=click.Choice(["all", "median", "best"]), default="all", show_default=True,
    help="Which runs of each size count; best: if other load disturbed the runs",
)  # fmt: skip
@click.option("--tool", metavar="NAME", help="Only runs of this benchmark: fio or ior")
@click.option("--min-aggregate", type=BYTES, metavar="SIZE", help="Only runs on files of at least this total size")
@click.option("--from", "since", type=TIME, metavar="TIME", help="Only stored runs from this time on")
@click.option("--to", "until", type=TIME, metavar="TIME", help="Only stored runs before this time")
@click.option("--save", "name", metavar="NAME", help="Store the coefficients as a calibration")
@click.option(
    "--save-sizes",
    type=click.Choice(["observed", "requested"]),
    help="Which fit to store [observed if there is one]",
)
@click.option("--filesystem", "-f", metavar="NAME", help="File system of the runs, and of the calibration")
@click.option("--target-class", metavar="NAME", help="Class of targets the calibration is for")
@click.option("--valid-from", type=TIME, metavar="TIME", help="Time from which on it is valid [the last run]")
@format_option()
@output_option()
@click.option(
    "--figure", "figures", multiple=True, metavar="[NAME=]FILE",
    help="prediction, bandwidth, sizes or asymptote (.svg .png .pdf .html); repeatable; `--figure list` names them",
)  # fmt: skip
@store_options
@table_options
def calibrate_fit(
    what: tuple[str, ...],
    queue_depth: int | None,
    access: str,
    repeats: Any,
    tool: str | None,
    min_aggregate: int | None,
    since: datetime | None,
    until: datetime | None,
    name: str | None,
    save_sizes: Any,
    filesystem: str | None,
    target_class: str | None,
    valid_from: datetime | None,
    format_: str,
    output: Path | None,
    figures: tuple[str, ...],
    store: str | None,
    config: str | None,
) -> None:
    """Fit the transaction model t = a0 + a1·b to runs, by the sizes asked for and by those at the disk.

    Takes files (of `calibrate run`, IOR or fio) or names of sweeps in the store. Without either: the last sweep in
    the store; with --tool, --filesystem, --from or --to all stored runs that match.
    """
    from iolens.analyses.calibration.fit import calibration_fit
    from iolens.api.calibration import RunFilter, benchmark_runs, only_filesystem, save_fit
    from iolens.config import load_config

    known = load_config(config)

    def opened() -> Store:
        from iolens.store.store import Store

        return Store(known.store_url(store))

    wanted = RunFilter(tool, filesystem, since, until)
    runs = benchmark_runs(what, opened, wanted, say)
    result = calibration_fit(
        runs, queue_depth=queue_depth, access=access, repeats=repeats, minimum_aggregate_bytes=min_aggregate
    )
    present(result, format_, output, figures)
    if name is not None:
        kept = opened()
        evidence = save_fit(
            result,
            kept,
            name,
            sizes=save_sizes,
            filesystem=filesystem or only_filesystem(runs),
            target_class=target_class,
            valid_from=valid_from,
        )
        say(f"stored {name} in {kept.url} ({evidence})")


# List calibrations, what they mean and how they changed ---------------------------------------------------------------


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


# Choose a class of disks, or another calibration, for a file system ---------------------------------------------------


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
