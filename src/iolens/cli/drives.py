"""How worn flash drives are: write amplification, drive writes per day, years left, and drives that stand out."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from iolens.cli.options import analysis_options, in_zone, present
from iolens.errors import UsageError


@click.command(
    "drives",
    epilog="""\b
Examples:
  iolens drives --filesystem burst
  iolens drives -f burst --to 2019-04-02 --rated-dwpd 3 --group-by host --format json
  iolens drives -f burst --figure waf.png --figure wear=wear.svg
""",
)
@click.option(
    "--rated-dwpd",
    type=click.FloatRange(0, min_open=True),
    metavar="DWPD",
    help="Rated drive writes per day, for the years left by rating",
)
@click.option(
    "--warranty-years",
    type=click.FloatRange(0, min_open=True),
    default=5,
    show_default=True,
    metavar="YEARS",
    help="Years the rating is for",
)
@click.option(
    "--waf-limit",
    type=click.FloatRange(0, min_open=True),
    metavar="WAF",
    help="Drives above it are listed [third quartile + 3 inter-quartile ranges]",
)
@click.option(
    "--group-by",
    type=click.Choice(["model", "host"]),
    default="model",
    show_default=True,
    help="Hot spots among these",
)
@analysis_options
def COMMAND(
    rated_dwpd: float | None,
    warranty_years: float,
    waf_limit: float | None,
    group_by: str,
    store: str | None,
    config: str | None,
    engine: str | None,
    filesystem: str | None,
    target: tuple[str, ...],
    source: str | None,
    since: datetime | None,
    until: datetime | None,
    timezone: str | None,
    resolution: str,  # readings are never rolled up
    format_: str,
    output: Path | None,
    figures: tuple[str, ...],
) -> None:
    """Write amplification (WAF), drive writes per day (DWPD) and wear of every drive and of all together.

    Lifetime numbers are those of each drive's last reading in the window; where it was read more than once, what it did
    in between stands beside them. Drives with a high WAF are listed, and whether low use explains it.
    """
    from iolens.notebook import OpenStore

    if target:
        raise UsageError("drives are no targets: leave --target out")
    with OpenStore(store, engine=engine, config=config) as opened:
        result = opened.analyse(
            "drives",
            filesystem,
            since=in_zone(since, timezone),
            until=in_zone(until, timezone),
            source=source,
            rated_dwpd=rated_dwpd,
            warranty_years=warranty_years,
            waf_limit=waf_limit,
            group_by=group_by,
        )
    present(result, format_, output, figures)
