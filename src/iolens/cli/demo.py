"""What the demo tells of its busiest hour: five steps, each with the command that shows it and a picture."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from iolens.api.listener import Listener
from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import present, progress
from iolens.cli.value_types import TIME
from iolens.messages import say
from iolens.units import format_bytes_si, iso
from iolens.views.render.figures import Figure, draw
from iolens.views.render.shown_times import show_time, zone_name
from iolens.views.render.tables import show_percent

if TYPE_CHECKING:
    from datetime import datetime

    from iolens.analyses.utilization.analysis import Utilization
    from iolens.api import OpenStore
    from iolens.api.demo import DemoRuns, DemoStory
    from iolens.plans.performance import PerformancePlan
    from iolens.simulator.activity import Activity
    from iolens.simulator.workload import SimulatedWorkload


PERCENTILE: Final = 95.0
WIDTH: Final = 100


def step_lines(story: DemoStory) -> Iterator[str]:
    """Words, from the same numbers as the verbs print."""
    from iolens.views.blame import verdict
    from iolens.views.explain import verdict_words, who_words

    hour, blame = story.hour, story.blame
    when = f"{show_time(blame.window_start)[:16]} to {show_time(blame.window_end)[11:16]} {zone_name()}"
    yield f"The busiest hour of scratch: {when}"
    yield (
        f"1. FSU saw it: {_pct(hour.mean_fsu_pct)} in that hour, {_pct(story.whole.mean_fsu_pct)} over the whole time."
        f" Bandwidth did not: {_rate(hour)} and {_rate(story.whole)}."
    )
    yield f"2. blame: {verdict(blame)}"
    if story.explained is None or story.advice is None:
        yield "3. and 4. explain and advise need Darshan logs, and those libdarshan-util: pip install 'iolens[darshan]'"
    else:
        yield f"3. explain: {who_words(story.explained)}: {verdict_words(story.explained)}"
        lines = story.advice.lines
        first = next((line for line in lines if line.code == "small-accesses"), lines[0] if lines else None)
        advice = f"{first.message}. {first.remedy}" if first else "nothing was found that needs attention."
        yield f"4. advise: job {blame.who[0].name}: {advice}"
    ios, before = (_required(plan) for plan in (story.plan_of_hour, story.plan_before))
    yield (
        f"5. plan: disks for that hour need {ios:,.0f} disk I/Os per second ({PERCENTILE:g} % of its ticks), for the"
        f" time before it {before:,.0f}: mend the job before you buy for it."
    )


def next_commands(store: str, start: datetime, story: DemoStory, example_job: str | None) -> list[str]:
    """What to try next; where there are Darshan logs `example_job` is a job that has one."""
    from iolens.api.demo import victim_id

    commands = [
        f"iolens utilization --store {store} --filesystem scratch --from {iso(start)} --figure day.html",
        f"iolens blame --store {store} -f scratch --busiest 1h",
    ]
    if example_job is not None:
        commands += [
            f"iolens explain {victim_id()} --store {store}",
            f"iolens runs advise {story.blame.who[0].name} --store {store}",
            f"iolens runs coverage --store {store}",
            f"iolens runs projects --store {store} --min-processes 1",
            f"iolens runs summary {example_job} --store {store}",
        ]
    return commands


def step_figures(story: DemoStory) -> Iterator[tuple[str, Figure]]:
    """A picture of each step, by the name of its file."""
    from iolens.views.blame import shares
    from iolens.views.explain import factors, timeline
    from iolens.views.plan_performance import required
    from iolens.views.runs_advise import core_hours
    from iolens.views.utilization.figures import bandwidth

    yield "1-fsu", bandwidth(story.whole)
    yield "2-blame", shares(story.blame)
    if story.explained is not None:
        yield "3-explain", timeline(story.explained)
        yield "3-explain-history", factors(story.explained)
    if story.advice is not None and story.advice.lines:
        yield "4-advise", core_hours(story.advice)
    plan = required(story.plan_of_hour)
    yield "5-plan", replace(plan, panels=tuple(panel for panel in plan.panels if panel.title == "disk I/Os"))


def draw_steps(story: DemoStory, folder: Path) -> None:
    """Into PNG files."""
    for name, figure in step_figures(story):
        draw(figure, folder / f"{name}.png")


def _pct(value: float | None) -> str:
    return "not known" if value is None else f"{show_percent(value)} %"


def _rate(result: Utilization) -> str:
    """Mean bandwidth over the window."""
    moved = sum((day.read_bytes or 0) + (day.write_bytes or 0) for day in result.daily)
    if result.window_start is None or result.window_end is None:
        return "not known"
    return f"{format_bytes_si(moved / (result.window_end - result.window_start).total_seconds())}/s"


def _required(plan: PerformancePlan) -> float:
    cases = (case for case in plan.cases if case.measure == "disk_ios_per_s" and case.percentile == PERCENTILE)
    return next((case.required for case in cases), 0.0)


def write_report(path: Path, results: list[Any]) -> None:
    """The page of the demo."""
    from datetime import UTC, datetime

    from iolens import __version__
    from iolens.views.render import atomic
    from iolens.views.report.centre import report_html
    from iolens.views.report.page import ReportInfo

    atomic.write(path, report_html(results, ReportInfo(__version__, datetime.now(UTC), (None, None), None, ())))


# See it work: simulate a centre, measure it, write the report ---------------------------------------------------------

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
