"""How much bandwidth and how many operations per second: percentile demand of the reference system × SSI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from iolens.cli.options import WORDS, Asked, analysis_options, progress
from iolens.cli.reference_system import ReferenceSystem
from iolens.errors import UsageError
from iolens.units import parse_rate

if TYPE_CHECKING:
    from iolens.analyses.demand.analysis import Demand
    from iolens.plans.inputs import Input
    from iolens.plans.performance import PerformancePlan


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
    asked: Asked,
    ssi: str,
    percentile: tuple[str, ...],
    demands: tuple[str, ...],
) -> None:
    """Bandwidth and operations per second of the next system: demand at a percentile over ticks, times SSI.

    Bandwidth and operations come from the counters of data targets, disk I/Os from their histograms of sizes, metadata
    operations from the MDTs. With --demand no store is opened unless --store or --filesystem names one.
    """
    speeds = [input_of("ssi", word, "--ssi") for word in ssi.split(",")]
    with ReferenceSystem.of(asked) as reference:
        result = performance_plan(speeds, [demand_of(text) for text in demands], percentiles_of(percentile), reference)
    asked.show(result)


def performance_plan(
    speeds: Sequence[Input], given: Sequence[Input], percentiles: Sequence[float], reference: ReferenceSystem
) -> PerformancePlan:
    """The plan, with demand from the store where none is given or a store is named."""
    from iolens.plans.performance import plan_performance

    found: Demand | None = None
    if not given or reference.is_named:
        with progress(None, "reading") as step:
            found = reference.demand(lambda day: step(str(day)))
    return plan_performance(speeds, found, given=given, percentiles=percentiles)


def percentiles_of(words: tuple[str, ...]) -> list[float]:
    """Shares of ticks in per cent."""
    return [_number(word, "--percentile") for word in words]


def demand_of(text: str) -> Input:
    """A demand known elsewhere, from `MEASURE=VALUE`."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name.endswith("_per_s"):
        raise UsageError(f"--demand {text!r}: write MEASURE=VALUE, such as bytes_per_s=35GB/s or ops_per_s=2e6")
    return input_of(name, value, "--demand")


def input_of(name: str, text: str, option: str) -> Input:
    """A rate for what is called bytes, a plain number for the rest."""
    from iolens.plans.inputs import parse_input

    parse = parse_rate if "bytes" in name else (lambda word: _number(word, option))
    return parse_input(name, text.strip(), parse, f"option {option}")


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is not a number") from None
