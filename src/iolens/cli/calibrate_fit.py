"""Fit the transaction model t = a0 + a1·b to benchmark runs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import format_option, output_option
from iolens.cli.shared_store_options import store_options
from iolens.cli.terminal_output import present, table_options
from iolens.cli.value_types import BYTES, TIME
from iolens.messages import say

if TYPE_CHECKING:
    from iolens.store.store import Store


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
