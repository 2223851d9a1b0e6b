"""How much bandwidth and how many operations per second: percentile demand of the reference system × SSI."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.options import WORDS, analysis_options, in_zone, present, progress
from iolens.errors import UsageError
from iolens.units import parse_rate

if TYPE_CHECKING:
    from iolens.analyses.demand import Demand
    from iolens.plans.inputs import Input


@click.command(
    "performance",
    epilog="""\b
Examples:
  iolens plan performance --filesystem scratch --ssi 3,4
  iolens plan performance -f scratch --ssi 3..4 --percentile 99,100 --figure demand.png
  iolens plan performance --ssi 4 --demand write_bytes_per_s=90GB/s
""",
)
@click.option("--ssi", default="1", show_default=True, metavar="LIST", help="Speed of the new system over the old")
@click.option(
    "--percentile", type=WORDS, default="95,99,100", show_default=True, metavar="LIST", help="50, 95, 99, 100 of ticks"
)
@click.option(
    "--demand",
    "demands",
    multiple=True,
    metavar="MEASURE=VALUE",
    help="Demand as known elsewhere, such as bytes_per_s=35GB/s or ops_per_s=2e6; repeatable",
)
@analysis_options
def COMMAND(
    ssi: str,
    percentile: tuple[str, ...],
    demands: tuple[str, ...],
    store: str | None,
    config: str | None,
    engine: str | None,
    filesystem: str | None,
    target: tuple[str, ...],
    source: str | None,
    since: datetime | None,
    until: datetime | None,
    timezone: str | None,
    resolution: str,
    format_: str,
    output: Path | None,
    figures: tuple[str, ...],
) -> None:
    """Bandwidth and operations per second of the next system: demand at a percentile over ticks, times SSI.

    Bandwidth and operations come from the counters of data targets, disk I/Os from their histograms of sizes, metadata
    operations from the MDTs. With --demand no store is opened unless --store or --filesystem names one.
    """
    from iolens.plans.performance import plan_performance

    speeds = [_input("ssi", word, "--ssi") for word in ssi.split(",")]
    given = [_demand(text) for text in demands]
    found: Demand | None = None
    if not given or store is not None or filesystem is not None:
        from iolens.analyses.demand import demand
        from iolens.notebook import OpenStore

        with OpenStore(store, engine=engine, config=config) as opened, progress(None, "reading") as step:
            found = opened.ask(
                lambda selection: demand(selection, progress=lambda day: step(str(day))),
                filesystem,
                since=in_zone(since, timezone),
                until=in_zone(until, timezone),
                targets=target,
                source=source,
                resolution=resolution,
            )
    shares = [_number(word, "--percentile") for word in percentile]
    present(plan_performance(speeds, found, given=given, percentiles=shares), format_, output, figures)


def _demand(text: str) -> Input:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name.endswith("_per_s"):
        raise UsageError(f"--demand {text!r}: write MEASURE=VALUE, such as bytes_per_s=35GB/s or ops_per_s=2e6")
    return _input(name, value, "--demand")


def _input(name: str, text: str, option: str) -> Input:
    from iolens.plans.inputs import parse_input

    parse = parse_rate if "bytes" in name else (lambda word: _number(word, option))
    return parse_input(name, text.strip(), parse, f"option {option}")


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is not a number") from None
