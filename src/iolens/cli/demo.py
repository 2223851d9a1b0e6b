"""See it work: simulate a centre, measure it, write the report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from iolens.api.listener import Listener
from iolens.cli.lazy_verbs import verb
from iolens.cli.terminal_output import present, progress
from iolens.cli.value_types import TIME
from iolens.messages import say

if TYPE_CHECKING:
    from datetime import datetime

    from iolens.api import OpenStore
    from iolens.api.demo import DemoRuns
    from iolens.simulator.activity import Activity
    from iolens.simulator.workload import SimulatedWorkload

DAYS: Final = 2
OSTS: Final = 24
AGENT_MINUTES: Final = 5


@verb(
    "demo",
    "See it work: simulate a centre, measure it, write the report",
    epilog="Example: iolens demo --output /tmp/demo",
)
@click.option("--output", "-o", type=click.Path(path_type=Path, file_okay=False), default=Path("demo"),
              show_default=True, help="Where to put the store, the report and the figures")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Same seed and end, same numbers")
@click.option("--end", type=TIME, metavar="TIME", help="End of the two days, a whole minute [five minutes ago]")
def demo(output: Path, seed: int, end: datetime | None) -> None:
    """Simulate a centre for two days, measure it, and follow its busiest hour to a name.

    Two Lustre file systems have 24 OSTs and the same disks: `scratch` gets many small I/Os, `scratch2` large ones. On
    `scratch` a weather model runs every hour, and on the second day a job writes 4 KiB at random offsets for two
    hours. The five minutes after the two days are sampled by the real agents of its servers from simulated /proc trees,
    and in the middle of them an OST fails over to another server; the two hours before are also counted by the nodes,
    and jobs have Darshan logs (with the extra `darshan`).
    """
    from dataclasses import replace
    from datetime import timedelta

    from iolens.api import OpenStore
    from iolens.api.blame import reported_blame
    from iolens.api.demo import NODES, demo_story, demo_workload, loaded_runs, sampled_clients
    from iolens.api.jobs import reported_jobs
    from iolens.api.run_analyses import reported_runs
    from iolens.cli.demo_steps import draw_steps, next_commands, step_lines, write_report
    from iolens.simulator.activity import Activity
    from iolens.simulator.workload import load_workload
    from iolens.store.scope import Scope

    began = time.monotonic()
    output.mkdir(parents=True, exist_ok=True)
    store, until = str(output / "store"), _end(end)
    start = until - timedelta(days=DAYS)
    centre = Activity(demo_workload(start, DAYS), OSTS, seed)
    workloads = {"scratch": centre.workload, "scratch2": load_workload("scratch2")}
    sampled_clients(store, centre, until)
    say(f"{NODES} nodes were sampled every half hour of the last two hours")
    with progress(None, "simulating applications") as step:
        runs = loaded_runs(store, centre, until, step)
    say(_loaded(runs))
    truths = {name: _simulate(store, name, workload, start, seed, runs is None) for name, workload in workloads.items()}
    _sample(output, store, centre, until)
    with OpenStore(store) as opened:
        whole = {name: opened.analyse("utilization", name) for name in truths}
        figures = tuple(f"{name}={output / name}.png" for name in ("bandwidth", "histogram", "sizes", "heatmap"))
        present(replace(whole["scratch"], compare=whole["scratch2"]), "table", None, figures)
        _compare(opened, truths, runs)
        story = demo_story(opened, whole["scratch"], start, runs is not None)
        applications = reported_runs(opened, Scope())
        busy = reported_blame(opened, Scope("scratch"))
        more = (reported_jobs(opened, Scope("scratch")), busy, applications)
        results = [*whole.values(), *(result for result in more if result is not None)]
        write_report(output / "report.html", results)
    draw_steps(story, output)
    click.echo("")
    for line in step_lines(story):
        click.echo(line)
    click.echo(f"\nThe report: {(output / 'report.html').absolute()}  ({time.monotonic() - began:.0f} s in all)")
    example = None if runs is None else runs.example_job
    click.echo("Next: " + "\n      ".join(next_commands(store, start, story, example)))


def _end(given: datetime | None, now: datetime | None = None) -> datetime:
    """Of the two days: as given, else so that the agents' minutes end at the last whole minute, and pages are fresh."""
    from datetime import UTC, datetime, timedelta

    from iolens.errors import UsageError

    if given is None:
        last = (now or datetime.now(UTC)).replace(second=0, microsecond=0)
        return last - timedelta(minutes=AGENT_MINUTES)
    if given.second or given.microsecond:
        raise UsageError(f"--end {given:%FT%T}: a whole minute, such as 2026-01-07T14:05")
    return given


def _loaded(runs: DemoRuns | None) -> str:
    if runs is None:
        return "no applications: Darshan logs need libdarshan-util: pip install 'iolens[darshan]'"
    return f"{runs.runs} of {runs.jobs} jobs left a Darshan log"


def _simulate(
    store: str, name: str, workload: SimulatedWorkload, start: datetime, seed: int, with_records: bool
) -> dict[str, Any]:
    """Two days straight into the store; what is true of them."""
    from iolens.simulator.telemetry import order_of, simulate_telemetry, truth_of

    has_jobs = bool(workload.planted)
    order = order_of(store, workload, start=start, days=DAYS, osts=OSTS, seed=seed, with_jobs=has_jobs)
    with progress(None, f"simulating {name}") as step:
        written = simulate_telemetry(order, progress=step, with_records=with_records)
    rows = sum(written.rows.values())
    say(f"simulated {DAYS} days of {name}: {OSTS} OSTs, {rows:,} rows")
    return truth_of(order, written)


def _sample(output: Path, store: str, centre: Activity, start: datetime) -> None:
    """Five more minutes of `scratch` through the agent."""
    from iolens.api.demo import sampled_servers

    with progress(None, "sampling") as step:
        agents = sampled_servers(store, output / "spool", centre, start, AGENT_MINUTES * 60, Listener(say, step))
    samples, targets = (sum(getattr(agent, name) for agent in agents) for name in ("samples", "targets"))
    say(f"the agents of {len(agents)} servers took {samples:,} samples of {targets} targets and shipped them")


def _compare(opened: OpenStore, truths: dict[str, dict[str, Any]], runs: DemoRuns | None) -> None:
    """What was found of the two simulated days beside what is true of them."""
    click.echo("\nFound and true, over the simulated days")
    for name, truth in truths.items():
        result = opened.analyse("utilization", name, since=truth["from"], until=truth["to"])
        click.echo(
            f"  {name:9} mean FSU {result.mean_fsu_pct:.4f} % (true {truth['mean_fsu_pct']:.4f} %), "
            f"busy {result.busy_time_pct:.3f} % of the time (true {truth['busy_time_pct']:.3f} %)"
        )
    if runs is not None:
        bytes_, strategies = runs.same_bytes, runs.same_strategy
        click.echo(f"  runs      {bytes_} of {runs.runs} have the true bytes, {strategies} the true strategy")
