"""How full a file system is and when it will be too full."""

from __future__ import annotations

import click

from iolens.cli.options import Asked, analysis_options


@click.command(
    "capacity",
    epilog="""\b
Examples:
  iolens capacity --filesystem scratch
  iolens capacity -f scratch --threshold 80 --method theil-sen --format json
  iolens capacity -f scratch --figure usage.png --figure targets=osts.svg
""",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 100, min_open=True),
    default=90.0,
    show_default=True,
    metavar="PERCENT",
    help="Fullness in per cent whose date is projected",
)
@click.option(
    "--method",
    type=click.Choice(["linear", "theil-sen"]),
    default="linear",
    show_default=True,
    help="Projection used for the headline; both are shown",
)
@analysis_options
def COMMAND(
    asked: Asked,
    threshold: float,
    method: str,
) -> None:
    """Usage over time, its projection to a threshold, and purges and surges with their dates.

    Usage is the sum over all targets, at times when all of them answered. Two lines are fitted: least squares, and
    Theil–Sen, on which sudden changes have little effect.
    """
    result = asked.analyse(
        "capacity",
        threshold_pct=threshold,
        method=method,
    )
    asked.show(result)
