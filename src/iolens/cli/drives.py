"""How worn flash drives are, and how many years they have left."""

from __future__ import annotations

import click

from iolens.cli.options import Asked, analysis_options
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
    help="Years for which the drives are rated",
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
    help="Look for hot spots by these",
)
@analysis_options
def COMMAND(
    asked: Asked,
    rated_dwpd: float | None,
    warranty_years: float,
    waf_limit: float | None,
    group_by: str,
) -> None:
    """Write amplification (WAF), drive writes per day (DWPD) and wear of every drive and of all together.

    Lifetime numbers are those of each drive's last reading in the window; if it was read more than once, what it did
    in between is shown too. Drives with a high WAF are listed, and whether low use explains it.
    """
    if asked.target:
        raise UsageError("drives are no targets: leave --target out")
    result = asked.analyse(
        "drives",
        rated_dwpd=rated_dwpd,
        warranty_years=warranty_years,
        waf_limit=waf_limit,
        group_by=group_by,
    )
    asked.show(result)
