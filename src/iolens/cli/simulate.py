"""A synthetic centre whose truth is known: telemetry in a store, or a live Lustre server."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iolens.cli.options import DURATION, TIME, WORDS, in_zone, progress, store_options

if TYPE_CHECKING:
    from iolens.simulator.lustre_centre import SimulatedEvent


@click.group("simulate")
def COMMAND() -> None:
    """Simulate a file system whose true utilisation is known, to check what is measured."""


def _workload_option(function: Any) -> Any:
    return click.option(
        "--workload",
        default="scratch",
        show_default=True,
        metavar="NAME|FILE",
        help="scratch (many small I/Os), scratch2 (large ones), spider (controllers; telemetry only) or a TOML file",
    )(function)


@COMMAND.command(
    epilog="Example: iolens simulate telemetry --workload scratch --osts 24 --days 2 --seed 1 --store centre"
)
@_workload_option
@click.option("--osts", type=click.IntRange(1, 65535), help="Number of OSTs  [the workload's]")
@click.option("--mdts", type=click.IntRange(0, 65535), help="Number of MDTs  [the workload's]")
@click.option("--days", type=click.FloatRange(0, 36525, min_open=True), default=1.0, show_default=True)
@click.option("--start", type=TIME, default="2012-10-22", show_default=True, metavar="DATE", help="First moment, UTC")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Same seed, same numbers")
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Processes, a day each")
@click.option("--jobs/--no-jobs", default=True, show_default=True, help="Also what each job did, every 60 s")
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
@store_options
def telemetry(
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

    The truth is kept beside the tables as truth-FILESYSTEM.json; `iolens utilization` must find the same. Asking for
    the same again adds nothing.
    """
    import json
    import time

    from iolens.config import load_config
    from iolens.simulator.synthetic_workload import is_model
    from iolens.simulator.telemetry import order_of, simulate_telemetry, truth_of
    from iolens.simulator.workload import load_workload

    url = load_config(config).store_url(store)
    moment = in_zone(start, None) or start
    if is_model(workload):
        if mdts:
            raise click.UsageError("a workload model has no MDTs")
        _controllers(url, workload, osts, moment, days, seed, format_)
        return
    order = order_of(
        url, load_workload(workload), start=moment, days=days, osts=osts, mdts=mdts, seed=seed, with_jobs=jobs
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
    for one in truth["categories"]:
        shown = f"{one['optimal_pct']:5.1f} %" if one["optimal_pct"] is not None else "    –"
        click.echo(f"  {one['name']:9} {one['observations_pct']:5.1f} % of the observations, optimal I/Os {shown}")
    click.echo(
        f"{rows} rows of target_sizes and as many of target_io in {seconds:.1f} s: {rows / seconds:.0f} a second"
    )


def _controllers(
    url: str, name: str, targets: int | None, start: datetime, days: float, seed: int, format_: str
) -> None:
    """Telemetry of a workload model; what is true of it is the model itself."""
    import json

    from iolens.simulator.synthetic_telemetry import order_of, synthesize_telemetry, truth_of
    from iolens.simulator.synthetic_workload import load_model

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
    click.echo(f"check it with: iolens synthesize --from {url} -f {truth['filesystem']}")


@COMMAND.command(
    epilog="""\b
Examples:
  iolens simulate lustre --root /tmp/oss1 --version 2.15 --osts 4 --speed 10 --duration 1h
  iolens simulate lustre --root /tmp/oss1 --root2 /tmp/oss2 --failover OST0002@10min --reset-at 5min,20min
"""
)
@click.option("--root", type=click.Path(path_type=Path, file_okay=False), required=True, help="An empty directory")
@click.option("--root2", type=click.Path(path_type=Path, file_okay=False), help="The fail-over partner's directory")
@click.option("--version", type=click.Choice(["1.8", "2.10", "2.12", "2.15"]), default="2.15", show_default=True)
@_workload_option
@click.option("--osts", type=click.IntRange(1, 65535), help="Number of OSTs  [the workload's]")
@click.option("--mdts", type=click.IntRange(0, 65535), help="Number of MDTs  [the workload's]")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Same seed, same activity")
@click.option("--start", type=TIME, metavar="TIME", help="What the simulated clock shows at first, UTC  [now]")
@click.option("--speed", type=click.FloatRange(0.001, 1e6), default=1.0, show_default=True, help="Times real time")
@click.option("--duration", type=DURATION, metavar="TIME", help="Stop after this much simulated time  [never]")
@click.option("--reset-at", type=WORDS, default="", metavar="TIME,…", help="All counters go to zero, since the start")
@click.option("--dead-ost", multiple=True, metavar="NAME@TIME", help="An OST vanishes; repeatable")
@click.option("--failover", multiple=True, metavar="NAME@TIME", help="A target moves to --root2; repeatable")
def lustre(
    root: Path,
    root2: Path | None,
    version: str,
    workload: str,
    osts: int | None,
    mdts: int | None,
    seed: int,
    start: datetime | None,
    speed: float,
    duration: float | None,
    reset_at: tuple[str, ...],
    dead_ost: tuple[str, ...],
    failover: tuple[str, ...],
) -> None:
    """Keep a live /proc and /sys tree of a Lustre server under a directory.

    Counters advance by the workload; every file is replaced at once. Times given to --reset-at, --dead-ost, --failover
    and --duration are simulated time since the start. Without --duration it runs until interrupted.
    """
    import time
    from contextlib import suppress

    from iolens.simulator.lustre_centre import Centre, run
    from iolens.simulator.lustre_tree import RealClock, Tree
    from iolens.simulator.workload import load_workload

    chosen = load_workload(workload)
    moment = in_zone(start, None)
    start_s = time.time() if moment is None else moment.timestamp()
    events = _events(start_s, chosen.filesystem, reset_at, dead_ost, failover)
    server = Tree(root, version, chosen, start_s=start_s, osts=osts, mdts=mdts, seed=seed)
    partner = (
        Tree(root2, version, chosen, start_s=start_s, osts=osts, mdts=mdts, seed=seed, targets=())
        if root2 is not None
        else None
    )
    centre = Centre(server, partner, events)
    click.echo(f"{chosen.filesystem}: {len(server.mounted)} targets of Lustre {version} under {root}", err=True)
    until_s = None if duration is None else start_s + duration
    with progress(None, "simulating") as step, suppress(KeyboardInterrupt):
        clock = RealClock(time.time() if moment is None else start_s, speed)
        run(centre, clock, until_s, lambda second: step(f"{second - start_s:.0f} s"))
    truth = server.truth.summary()
    mean = f"{truth['mean_fsu_pct']:.3f} %" if truth["mean_fsu_pct"] is not None else "unknown"
    click.echo(f"{truth['samples']} ticks; true mean FSU of the OSTs under {root}: {mean}")


def _events(
    start_s: float, filesystem: str, reset_at: tuple[str, ...], dead_ost: tuple[str, ...], failover: tuple[str, ...]
) -> list[SimulatedEvent]:
    from iolens.errors import UsageError
    from iolens.simulator.lustre_centre import SimulatedEvent, event_of
    from iolens.units import parse_duration

    try:
        found = [SimulatedEvent(start_s + parse_duration(word), "reset") for word in reset_at]
    except ValueError as error:
        raise UsageError(f"--reset-at: {error}") from None
    found += [event_of("dead", word, start_s, filesystem, parse_duration) for word in dead_ost]
    return found + [event_of("failover", word, start_s, filesystem, parse_duration) for word in failover]
