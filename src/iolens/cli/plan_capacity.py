"""How much capacity: growth of the reference system, purge policy and the new system's speed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from iolens.cli.options import CAPACITY, TIME, Asked, analysis_options
from iolens.cli.reference_system import ReferenceSystem
from iolens.errors import UsageError
from iolens.units import parse_capacity

if TYPE_CHECKING:
    from iolens.analyses.contents.ages import Ages
    from iolens.analyses.growth.analysis import Growth
    from iolens.plans.capacity import CapacityPlan
    from iolens.plans.inputs import Input


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number; write 28, 3,4 or 3..4") from None


PARSERS: Final[dict[str, Callable[[str], float]]] = {
    "ssi": _number,
    "purge_days": _number,
    "purge_fraction": _number,
    "daily_growth_bytes": parse_capacity,
}
OPTIONS: Final = {name.removesuffix("_bytes").replace("_", "-"): name for name in PARSERS}


@click.command(
    "capacity",
    epilog="""\b
Examples:
  iolens plan capacity --ssi 3,4 --daily-growth 133TB
  iolens plan capacity --store centre --ssi 3..4 --method paper --cutoff 2017-04-02
  iolens plan capacity -f scratch --ssi 3 --what-if purge-days=14,28,56 --figure growth.png
""",
)
@click.option("--ssi", default="1", show_default=True, metavar="LIST", help="Speed of the new system over the old")
@click.option("--purge-days", default="28", show_default=True, metavar="LIST", help="Days after which files may go")
@click.option(
    "--purge-fraction", default="0.5", show_default=True, metavar="LIST", help="Share of capacity a purge reclaims"
)
@click.option("--daily-growth", metavar="SIZE", help="Bytes gained per day, such as 133TB; default: from the store")
@click.option(
    "--method",
    type=click.Choice(["strict", "paper"]),
    default="strict",
    show_default=True,
    help="How growth is found in the store",
)
@click.option("--cutoff", type=TIME, metavar="DATE", help="Leave out growth before this day")
@click.option("--capacity", type=CAPACITY, metavar="SIZE", help="Capacity of the reference system, for --method paper")
@click.option("--purge-every", type=click.IntRange(1), metavar="DAYS", help="Days between purges [as --purge-days]")
@click.option(
    "--clock",
    type=click.Choice(["atime", "mtime"]),
    default="atime",
    show_default=True,
    help="Age that purges go by, where the store holds a scan",
)
@click.option(
    "--what-if",
    "what_if",
    multiple=True,
    metavar="NAME=LIST",
    help="Cases for ssi, purge-days, purge-fraction or daily-growth; repeatable",
)
@analysis_options
def COMMAND(
    asked: Asked,
    ssi: str,
    purge_days: str,
    purge_fraction: str,
    daily_growth: str | None,
    method: str,
    cutoff: datetime | None,
    capacity: int | None,
    purge_every: int | None,
    clock: str,
    what_if: tuple[str, ...],
) -> None:
    """Capacity of the next system: SSI · (purge days ÷ purge fraction) · daily growth.

    A LIST makes one case for each of its members; a member such as 3..4 is a range, with a low and a high answer. With
    --daily-growth no store is opened unless --store or --filesystem names one. Where the store holds a scan with the
    ages of files, the answer says which bytes each purge policy would leave.
    """
    texts = {"ssi": ssi, "purge_days": purge_days, "purge_fraction": purge_fraction}
    if daily_growth is not None:
        texts["daily_growth_bytes"] = daily_growth
    context = click.get_current_context()
    inputs = {name: inputs_of(name, text, _origin(context, name)) for name, text in texts.items()} | what_ifs(what_if)
    with ReferenceSystem.of(asked, capacity=capacity) as reference:
        result = capacity_plan(
            inputs, reference, method=method, cutoff=cutoff, purge_every_days=purge_every, clock=clock
        )
    asked.show(result)


def capacity_plan(
    inputs: Mapping[str, list[Input]],
    reference: ReferenceSystem,
    *,
    method: str,
    cutoff: datetime | None,
    purge_every_days: int | None,
    clock: str,
) -> CapacityPlan:
    """The plan, with growth and ages from the store where growth is not given or a store is named."""
    from iolens.plans.capacity import plan_capacity

    growth: Growth | None = None
    ages: list[Ages] = []
    if "daily_growth_bytes" not in inputs or reference.is_named:
        growth = reference.growth(method, cutoff)
        ages = reference.ages(clock)
    return plan_capacity(inputs, growth=growth, ages=ages, purge_every_days=purge_every_days, usage=reference.usage())


def inputs_of(name: str, text: str, origin: str) -> list[Input]:
    """One input for each member of a list."""
    from iolens.plans.inputs import parse_input

    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise UsageError(f"{name}: nothing is given")
    return [parse_input(name, word, PARSERS[name], origin) for word in words]


def _origin(context: click.Context, name: str) -> str:
    option = next(option for option, known in OPTIONS.items() if known == name)
    given = context.get_parameter_source(option.replace("-", "_")) is not click.core.ParameterSource.DEFAULT
    return f"option --{option}" if given else "default"


def what_ifs(texts: tuple[str, ...]) -> dict[str, list[Input]]:
    """Inputs by name from `NAME=LIST`."""
    found = {}
    for text in texts:
        option, equals, values = text.partition("=")
        if not equals or option.strip() not in OPTIONS:
            raise UsageError(f"--what-if {text!r}: write NAME=LIST, with NAME one of {', '.join(OPTIONS)}")
        found[OPTIONS[option.strip()]] = inputs_of(
            OPTIONS[option.strip()], values, f"option --what-if {option.strip()}"
        )
    return found
