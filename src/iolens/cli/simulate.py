"""`iolens simulate`: `/proc` trees, telemetry and Darshan logs of a file system whose true load is known."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iolens.cli.lazy_verbs import verb, verb_group
from iolens.cli.output_options import format_option, progress
from iolens.cli.shared_store_options import store_options
from iolens.cli.value_types import DURATION, TIME, WORDS
from iolens.messages import say

if TYPE_CHECKING:
    from iolens.simulator.client_tree import SimulatedClients
    from iolens.simulator.lustre_centre import Action, SimulatedEvent
    from iolens.simulator.lustre_tree import Tree


# A synthetic centre whose truth is known: store or live server --------------------------------------------------------


@verb_group("simulate", "A synthetic centre whose truth is known: store or live server")
def simulate() -> None:
    """Simulate a file system whose true utilization is known, to check what is measured."""


# The option that names a simulated workload ---------------------------------------------------------------------------


def workload_option(function: Any) -> Any:
    """`--workload`."""
    return click.option(
        "--workload",
        default="scratch",
        show_default=True,
        metavar="NAME|FILE",
        help="scratch (many small I/Os), scratch2 (large ones), spider (controllers; telemetry only) or a TOML file",
    )(function)


# Keep live /proc and /sys trees of a Lustre server and clients --------------------------------------------------------


@verb(
    "simulate lustre",
    "Keep live /proc and /sys trees of a Lustre server and clients",
    epilog="""\b
Examples:
  iolens simulate lustre --root /tmp/oss1 --version 2.15 --osts 4 --speed 10 --duration 1h
  iolens simulate lustre --root /tmp/oss1 --root2 /tmp/oss2 --failover OST0002@10min --reset-at 5min,20min
  iolens simulate lustre --root /tmp/oss1 --clients 8 --client-version 2.15,2.12 --reboot node0002@10min
""",
)
@click.option("--root", type=click.Path(path_type=Path, file_okay=False), required=True, help="An empty directory")
@click.option("--root2", type=click.Path(path_type=Path, file_okay=False), help="The failover partner's directory")
@click.option(
    "--version", type=click.Choice(["1.8", "2.10", "2.12", "2.15", "2.17"]), default="2.15", show_default=True
)
@workload_option
@click.option("--osts", type=click.IntRange(1, 65535), help="Number of OSTs  [the workload's]")
@click.option("--mdts", type=click.IntRange(0, 65535), help="Number of MDTs  [the workload's]")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Same seed, same activity")
@click.option("--start", type=TIME, metavar="TIME", help="What the simulated clock shows at first, UTC  [now]")
@click.option("--speed", type=click.FloatRange(0.001, 1e6), default=1.0, show_default=True, help="× real time")
@click.option("--duration", type=DURATION, metavar="TIME", help="Stop after this much simulated time  [never]")
@click.option("--reset-at", type=WORDS, default="", metavar="TIME,…", help="Reset all counters at these times")
@click.option("--dead-ost", multiple=True, metavar="NAME@TIME", help="An OST disappears; repeatable")
@click.option("--failover", multiple=True, metavar="NAME@TIME", help="A target moves to --root2; repeatable")
@click.option(
    "--clients", type=click.IntRange(0, 9999), default=0, show_default=True,
    help="Number of nodes that mount it and run its jobs, below ROOT/clients",
)  # fmt: skip
@click.option(
    "--client-version", type=WORDS, default="2.5,2.10,2.12,2.15", show_default=True, metavar="VERSION,…",
    help="Lustre versions of the nodes, in turn",
)  # fmt: skip
@click.option(
    "--client-page-size", type=WORDS, default="4096", show_default=True, metavar="BYTES,…",
    help="Page sizes of the nodes, in turn",
)  # fmt: skip
@click.option(
    "--cache-hits", type=click.FloatRange(0, 0.99), default=0.05, show_default=True, metavar="SHARE",
    help="Share of the nodes' reads that their caches answer",
)  # fmt: skip
@click.option("--reboot", multiple=True, metavar="NODE@TIME", help="A node's counters begin at zero; repeatable")
@click.option(
    "--truth", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Write the true values of the OSTs and of each job to this file at the end, as JSON",
)  # fmt: skip
def simulate_lustre(
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
    clients: int,
    client_version: tuple[str, ...],
    client_page_size: tuple[str, ...],
    cache_hits: float,
    reboot: tuple[str, ...],
    truth: Path | None,
) -> None:
    """Keep live /proc and /sys trees of a Lustre server and its clients under a directory.

    Counters advance as the workload says; every file is replaced atomically. Times given to --reset-at, --dead-ost,
    --failover, --reboot and --duration are simulated time since the start. Without --duration it runs until
    interrupted. The name of a server is that of its directory. Which job runs on which nodes is in
    ROOT/clients/sacct.txt, what it did in ROOT/clients/jobs.json.
    """
    import json
    import time
    from contextlib import suppress

    from iolens.simulator.lustre_centre import Centre, run
    from iolens.simulator.lustre_tree import RealClock, Tree
    from iolens.simulator.workload import load_workload

    chosen = load_workload(workload)
    start_s = time.time() if start is None else start.timestamp()
    events = _events(start_s, chosen.filesystem, reset_at, {"dead": dead_ost, "failover": failover, "reboot": reboot})
    order: dict[str, Any] = {"start_s": start_s, "osts": osts, "mdts": mdts, "seed": seed}
    server = Tree(root, version, chosen, **order, host=root.resolve().name)
    partner = None if root2 is None else Tree(root2, version, chosen, **order, targets=(), host=root2.resolve().name)
    nodes = _nodes(server, clients, client_version, client_page_size, cache_hits)
    centre = Centre(server, partner, events, nodes)
    say(f"{chosen.filesystem}: {len(server.mounted)} targets of Lustre {version} under {root}")
    if nodes is not None:
        say(f"{clients} clients, Lustre {', '.join(client_version)}, under {nodes.root}")
    until_s = None if duration is None else start_s + duration
    with progress(None, "simulating") as step, suppress(KeyboardInterrupt):
        clock = RealClock(time.time() if start is None else start_s, speed)
        run(centre, clock, until_s, lambda second: step(f"{second - start_s:.0f} s"))
    true = centre.truth()
    mean = f"{true['mean_fsu_pct']:.3f} %" if true["mean_fsu_pct"] is not None else "unknown"
    click.echo(f"{true['samples']} ticks; true mean FSU of the OSTs under {root}: {mean}")
    if truth is not None:
        truth.write_text(json.dumps(true, indent=2) + "\n")


def _nodes(
    server: Tree, count: int, versions: tuple[str, ...], sizes: tuple[str, ...], cache_hits: float
) -> SimulatedClients | None:
    from iolens.errors import UsageError
    from iolens.simulator.client_tree import FOLDER, SimulatedClients

    if not count:
        return None
    if not all(size.isdecimal() for size in sizes):
        raise UsageError(f"--client-page-size: {', '.join(sizes)} are not numbers of bytes, such as 4096 or 65536")
    return SimulatedClients(
        server.root / FOLDER, server.activity, server.mdts, count, start_s=server.start_s, versions=versions,
        page_sizes=[int(size) for size in sizes], cache_hit_share=cache_hits,
    )  # fmt: skip


def _events(
    start_s: float, filesystem: str, reset_at: tuple[str, ...], named: dict[Action, tuple[str, ...]]
) -> list[SimulatedEvent]:
    from iolens.errors import UsageError
    from iolens.simulator.lustre_centre import SimulatedEvent, event_of
    from iolens.units import parse_duration

    try:
        events = [SimulatedEvent(start_s + parse_duration(word), "reset") for word in reset_at]
    except ValueError as error:
        raise UsageError(f"--reset-at: {error}") from None
    return events + [
        event_of(action, word, start_s, filesystem, parse_duration) for action, words in named.items() for word in words
    ]


# Write Darshan logs and the job list of a simulated system ------------------------------------------------------------


@verb(
    "simulate darshan",
    "Write Darshan logs and the job list of a simulated system",
    epilog="""\b
Examples:
  iolens simulate darshan --output runs --workload scratch --osts 24 --days 1 --seed 1
  iolens ingest darshan runs/logs --filesystem scratch
  iolens ingest slurm runs/sacct.txt
""",
)
@click.option("--output", "-o", type=click.Path(path_type=Path, file_okay=False), required=True, help="A directory")
@workload_option
@click.option("--osts", type=click.IntRange(1, 65535), help="Number of OSTs  [the workload's]")
@click.option("--mdts", type=click.IntRange(0, 65535), help="Number of MDTs  [the workload's]")
@click.option("--nodes", type=click.IntRange(1, 9999), default=8, show_default=True, help="Nodes that run the jobs")
@click.option("--days", type=click.FloatRange(0, 366, min_open=True), default=1.0, show_default=True)
@click.option("--start", type=TIME, default="2012-10-22", show_default=True, metavar="DATE", help="First time, UTC")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Same seed, same logs")
def simulate_darshan(
    output: Path,
    workload: str,
    osts: int | None,
    mdts: int | None,
    nodes: int,
    days: float,
    start: datetime,
    seed: int,
) -> None:
    """Write Darshan logs of the jobs that a simulated file system runs, and the scheduler's list of these jobs.

    Jobs that begin and end within the days have one log each, with all they read, wrote and opened, on the OSTs they
    did it on: the same as `simulate telemetry` and `simulate lustre --clients` of the same workload, OSTs and seed.
    Some projects do not use Darshan. What is true of each run is in OUTPUT/runs.json. Needs the extra `darshan`.
    """
    from iolens.simulator.activity import Activity
    from iolens.simulator.darshan_jobs import LOGS, SACCT_FILE, write_job_logs
    from iolens.simulator.workload import HOLD_S, load_workload
    from iolens.units import DAY_S

    chosen = load_workload(workload)
    start_s = int(start.timestamp()) // HOLD_S * HOLD_S
    with progress(None, "simulating") as step:
        written = write_job_logs(
            output,
            Activity(chosen, osts, seed),
            mdts=chosen.mdts if mdts is None else mdts,
            nodes=nodes,
            start_s=start_s,
            end_s=start_s + round(days * DAY_S / HOLD_S) * HOLD_S,
            progress=step,
        )
    click.echo(f"{len(written.logs)} logs of {written.jobs} jobs in {output / LOGS}; jobs in {output / SACCT_FILE}")


# Write days of telemetry into a store, and what is true of it ---------------------------------------------------------


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
