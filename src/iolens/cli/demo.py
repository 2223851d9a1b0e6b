"""See it work: simulate a centre, measure it, write the report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from iolens.api.access.listener import Listener
from iolens.cli.terminal_output import present, progress
from iolens.messages import say

if TYPE_CHECKING:
    from iolens.api import OpenStore
    from iolens.api.demo_runs import DemoRuns
    from iolens.simulator.activity import Activity
    from iolens.simulator.workload import SimulatedWorkload

START: Final = "2026-01-05"
DAYS: Final = 2
OSTS: Final = 24
AGENT_MINUTES: Final = 5


@click.command("demo", epilog="Example: iolens demo --output /tmp/demo")
@click.option("--output", "-o", type=click.Path(path_type=Path, file_okay=False), default=Path("demo"),
              show_default=True, help="Where to put the store, the report and the figures")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Same seed, same numbers")
def COMMAND(output: Path, seed: int) -> None:
    """Simulate a centre for two days, measure it, and follow its busiest hour to a name.

    Two Lustre file systems have 24 OSTs and the same disks: `scratch` gets many small I/Os, `scratch2` large ones. On
    `scratch` a weather model runs every hour, and on the second afternoon a job writes 4 KiB at random offsets. The
    last five minutes are sampled by the real agents of its servers from simulated /proc trees, and in the middle of
    them an OST fails over to another server; the two hours before are also counted by the nodes, and jobs have Darshan
    logs (with the extra `darshan`).
    """
    from dataclasses import replace
    from datetime import timedelta

    from iolens.api import OpenStore
    from iolens.api.blame import reported_blame
    from iolens.api.demo_clients import sampled_clients
    from iolens.api.demo_runs import loaded_runs
    from iolens.api.demo_story import demo_story
    from iolens.api.demo_workload import NODES, demo_workload, victim_id
    from iolens.api.job_list import reported_jobs
    from iolens.api.run_analyses import reported_runs
    from iolens.cli.demo_steps import draw_steps, step_lines
    from iolens.simulator.activity import Activity
    from iolens.simulator.workload import load_workload
    from iolens.store.scope import Scope
    from iolens.units import parse_time

    began = time.monotonic()
    output.mkdir(parents=True, exist_ok=True)
    store, start = str(output / "store"), parse_time(START)
    end = start + timedelta(days=DAYS)
    centre = Activity(demo_workload(start, DAYS), OSTS, seed)
    workloads = {"scratch": centre.workload, "scratch2": load_workload("scratch2")}
    sampled_clients(store, centre, end)
    say(f"{NODES} nodes were sampled every half hour of the last two hours")
    with progress(None, "simulating applications") as step:
        runs = loaded_runs(store, centre, end, step)
    say(_loaded(runs))
    truths = {name: _simulate(store, name, workload, seed, runs is None) for name, workload in workloads.items()}
    _sample(output, store, centre)
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
        _report(output / "report.html", results)
    draw_steps(story, output)
    click.echo("")
    for line in step_lines(story):
        click.echo(line)
    click.echo(f"\nThe report: {(output / 'report.html').absolute()}  ({time.monotonic() - began:.0f} s in all)")
    click.echo(f"Next: iolens utilization --store {store} --filesystem scratch --from {START} --figure day.html")
    click.echo(f"      iolens blame --store {store} -f scratch --busiest 1h")
    if runs is not None:
        click.echo(f"      iolens explain {victim_id()} --store {store}")
        click.echo(f"      iolens runs advise {story.blame.who[0].name} --store {store}")
        click.echo(f"      iolens runs coverage --store {store}")
        click.echo(f"      iolens runs projects --store {store} --min-processes 1")
        click.echo(f"      iolens runs summary {runs.example_job} --store {store}")


def _loaded(runs: DemoRuns | None) -> str:
    if runs is None:
        return "no applications: Darshan logs need libdarshan-util: pip install 'iolens[darshan]'"
    return f"{runs.runs} of {runs.jobs} jobs left a Darshan log"


def _simulate(store: str, name: str, workload: SimulatedWorkload, seed: int, with_records: bool) -> dict[str, Any]:
    """Two days straight into the store; what is true of them."""
    from iolens.simulator.telemetry import order_of, simulate_telemetry, truth_of
    from iolens.units import parse_time

    has_jobs = bool(workload.planted)
    order = order_of(store, workload, start=parse_time(START), days=DAYS, osts=OSTS, seed=seed, with_jobs=has_jobs)
    with progress(None, f"simulating {name}") as step:
        written = simulate_telemetry(order, progress=step, with_records=with_records)
    rows = sum(written.rows.values())
    say(f"simulated {DAYS} days of {name}: {OSTS} OSTs, {rows:,} rows")
    return truth_of(order, written)


def _sample(output: Path, store: str, centre: Activity) -> None:
    """Five more minutes of `scratch` through the agent."""
    from datetime import timedelta

    from iolens.api.demo_server import sampled_servers
    from iolens.units import parse_time

    start = parse_time(START) + timedelta(days=DAYS)
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


def _report(path: Path, results: list[Any]) -> None:
    from datetime import UTC, datetime

    from iolens import __version__
    from iolens.views.render import atomic
    from iolens.views.report.centre import report_html
    from iolens.views.report.page import ReportInfo

    atomic.write(path, report_html(results, ReportInfo(__version__, datetime.now(UTC), (None, None), None, ())))
