"""How much capacity: growth, purge policy, the new system's speed."""

from __future__ import annotations

from typing import Any

import click

from iolens.api.plans.defaults import CLOCKS, GROWTH_METHODS
from iolens.cli.options import CAPACITY, Asked, analysis_options
from iolens.cli.shared_plan_options import option_of, smaller_option
from iolens.cli.shared_time_options import DAY

usual = option_of("capacity")


@click.command(
    "capacity",
    epilog="""\b
Examples:
  iolens plan capacity --ssi 3,4 --daily-growth 133TB
  iolens plan capacity --store centre --ssi 3..4 --method paper --cutoff 2017-04-02
  iolens plan capacity -f scratch --ssi 3 --what-if purge-days=14,28,56 --figure growth.png
""",
)
@usual("--ssi", metavar="LIST", help="Speed of the new system over the old")
@usual("--purge-days", metavar="LIST", help="Days after which files may go")
@usual("--purge-fraction", metavar="LIST", help="Share of capacity a purge reclaims")
@click.option("--daily-growth", metavar="SIZE", help="Bytes gained per day, such as 133TB; default: from the store")
@usual("--method", type=click.Choice(GROWTH_METHODS), help="How growth is found in the store")
@click.option("--cutoff", type=DAY, metavar="DATE", help="Leave out growth before this day")
@click.option("--capacity", type=CAPACITY, metavar="SIZE", help="Capacity of the reference system, for --method paper")
@click.option("--purge-every", type=click.IntRange(1), metavar="DAYS", help="Days between purges [as --purge-days]")
@usual("--clock", type=click.Choice(CLOCKS), help="Age that purges go by, where the store holds a scan")
@click.option(
    "--what-if",
    "what_if",
    multiple=True,
    metavar="NAME=LIST",
    help="Cases for ssi, purge-days, purge-fraction or daily-growth; repeatable",
)
@smaller_option
@analysis_options
def COMMAND(asked: Asked, **options: Any) -> None:
    """Capacity of the next system: SSI · (purge days ÷ purge fraction) · daily growth.

    A LIST makes one case for each of its members; a member such as 3..4 is a range, with a low and a high answer. With
    --daily-growth no store is opened unless --store or --filesystem names one. Where the store holds a scan with the
    ages of files, the answer says which bytes each purge policy would leave.
    """
    asked.show(asked.plan("capacity", options))
