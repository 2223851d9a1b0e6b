"""The workload: bandwidth, mix, sizes, arrivals, idle times."""

from __future__ import annotations

import click

from iolens.cli.options import RATE, Asked, analysis_options

SECTIONS = ("bandwidth", "mix", "sizes", "arrivals", "idle", "rhythm", "throughput")


@click.command(
    "workload",
    epilog="""\b
Examples:
  iolens workload --filesystem scratch --from 2026-01-05 --to 2026-02-02
  iolens workload throughput rhythm -f scratch --timezone Europe/Berlin
  iolens workload sizes -f scratch --format csv --output sizes.csv
  iolens workload -f scratch --without-maintenance --format json --output scratch.json
  iolens workload -f scratch --figure month.png --figure bandwidth-model=pareto.svg
""",
)
@click.argument("sections", metavar="[SECTION]...", nargs=-1, type=click.Choice(SECTIONS))
@click.option(
    "--peak",
    type=RATE,
    metavar="RATE",
    help="Peak bandwidth, such as 35GB/s; default: configured, else the largest minute",
)
@click.option("--without-maintenance", is_flag=True, help="Leave out maintenance windows, configured or found")
@click.option(
    "--weight",
    type=click.Choice(["samples", "requests"]),
    default="samples",
    show_default=True,
    help="Weight of a sample in the time between requests: 1, or its number of requests",
)
@click.option(
    "--bootstrap",
    type=click.IntRange(0, 10_000),
    default=100,
    show_default=True,
    metavar="N",
    help="Number of resamples for the p-values of the tail models; 0: no p-values",
)
@click.option(
    "--top", type=click.IntRange(1), default=24, show_default=True, metavar="N", help="Number of targets in a table"
)
@analysis_options
def COMMAND(
    asked: Asked,
    sections: tuple[str, ...],
    peak: float | None,
    without_maintenance: bool,
    weight: str,
    bootstrap: int,
    top: int,
) -> None:
    """What a file system is used for: how much, how large, how often, when, and how long not at all.

    SECTION is bandwidth, mix, sizes, arrivals, idle, rhythm or throughput; without any, all are shown. Bandwidth, the
    time between requests and idle times are compared with the Pareto and other distributions, and a verdict says
    which describes them best.
    """
    result = asked.analyse(
        "workload",
        sections=sections or SECTIONS,
        peak=peak,
        without_maintenance=without_maintenance,
        weight_by_requests=weight == "requests",
        resamples=bootstrap,
        top=top,
    )
    asked.show(result)
