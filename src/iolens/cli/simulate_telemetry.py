"""Write days of telemetry into a store, and what is true of it."""

from __future__ import annotations

from datetime import datetime

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import format_option
from iolens.cli.shared_store_options import store_options
from iolens.cli.terminal_output import progress
from iolens.cli.value_types import TIME
from iolens.cli.workload_option import workload_option


@verb(
    "simulate telemetry",
    "Write days of telemetry into a store, and what is true of it",
    epilog="Example: iolens simulate telemetry --workload scratch --osts 24 --days 2 --seed 1 --store centre",
)
@workload_option
@click.option("--osts", type=click.IntRange(1, 65535), help="Number of OSTs  [the workload's]")
@click.option("--mdts", type=click.IntRange(0, 65535), help="Number of MDTs  [the workload's]")
@click.option("--days", type=click.FloatRange(0, 36525, min_open=True), default=1.0, show_default=True)
@click.option("--start", type=TIME, default="2012-10-22", show_default=True, metavar="DATE", help="First time, UTC")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Same seed, same numbers")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Number of processes, one day each"
)
@click.option("--jobs/--no-jobs", default=True, show_default=True, help="Also write what each job did, every 60 s")
@format_option("table", "json")
@store_options
def simulate_telemetry(
    workload: str,
    osts: int | None,
    mdts: int | None,
    days: float,
    start: datetime,
    seed: int,
    workers: int,
    jobs: bool,
    format_: str,
    store: str | None,
    config: str | None,
) -> None:
    """Write days of telemetry straight into a store, and print what is true of it.

    The true values are written to truth-FILESYSTEM.json in the store; `iolens utilization` must give the same.
    Running the same command again adds nothing.
    """
    import json
    import time

    from iolens.config import load_config
    from iolens.simulator.synthetic import is_model
    from iolens.simulator.telemetry import order_of, simulate_telemetry, truth_of
    from iolens.simulator.workload import load_workload

    url = load_config(config).store_url(store)
    if is_model(workload):
        if mdts:
            raise click.UsageError("a workload model has no MDTs")
        _controllers(url, workload, osts, start, days, seed, format_)
        return
    order = order_of(
        url, load_workload(workload), start=start, days=days, osts=osts, mdts=mdts, seed=seed, with_jobs=jobs
    )
    began = time.monotonic()
    with progress(None, "simulating") as step:
        written = simulate_telemetry(order, workers=workers, progress=step)
    seconds = time.monotonic() - began
    truth = truth_of(order, written)
    if format_ == "json":
        click.echo(json.dumps(truth, indent=2))
        return
    rows = written.rows["target_sizes"]
    click.echo(f"{truth['filesystem']}: {order.osts} OSTs, {truth['from']} to {truth['to']}, seed {seed}, in {url}")
    click.echo(f"true mean FSU {truth['mean_fsu_pct']:.6f} %, busy {truth['busy_time_pct']:.4f} % of the time")
    for item in truth["categories"]:
        shown = f"{item['optimal_pct']:5.1f} %" if item["optimal_pct"] is not None else "    –"
        click.echo(f"  {item['name']:9} {item['observations_pct']:5.1f} % of the observations, optimal I/Os {shown}")
    click.echo(
        f"{rows} rows of target_sizes and as many of target_io in {seconds:.1f} s: {rows / seconds:.0f} a second"
    )


def _controllers(
    url: str, name: str, targets: int | None, start: datetime, days: float, seed: int, format_: str
) -> None:
    """Telemetry of a workload model; what is true of it is the model itself."""
    import json

    from iolens.simulator.synthetic import load_model
    from iolens.simulator.synthetic_telemetry import order_of, synthesize_telemetry, truth_of

    order = order_of(url, load_model(name), start=start, days=days, targets=targets, seed=seed)
    with progress(order.blocks, "simulating") as step:
        done = synthesize_telemetry(order, step)
    truth = truth_of(order, done)
    if format_ == "json":
        click.echo(json.dumps(truth, indent=2))
        return
    click.echo(
        f"{truth['filesystem']}: {order.targets} controllers, {truth['from']} to {truth['to']}, seed {seed}, in {url}"
    )
    click.echo(", ".join(f"{rows} rows of {table}" for table, rows in done.rows.items()))
    click.echo(f"check it with: iolens synthesize model --store {url} -f {truth['filesystem']}")
