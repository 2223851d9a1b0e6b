"""What the demo tells of its busiest hour: five steps, each with the command that shows it and a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iolens.units import format_bytes_si, iso
from iolens.views.render.figures import Figure, draw
from iolens.views.render.shown_times import show_time, zone_name
from iolens.views.render.tables import show_percent

if TYPE_CHECKING:
    from datetime import datetime

    from iolens.analyses.utilization.analysis import Utilization
    from iolens.api.demo import DemoStory
    from iolens.plans.performance import PerformancePlan

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
