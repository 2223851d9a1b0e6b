"""How much endurance drives need, and which class suffices."""

from __future__ import annotations

from typing import Any

import click

from iolens.cli.options import BYTES, CAPACITY, WORDS, Asked, analysis_options
from iolens.cli.shared_plan_options import option_of, smaller_option

usual = option_of("endurance")


@click.command(
    "endurance",
    epilog="""\b
Examples:
  iolens plan endurance --case ssi=3,data=10,parity=2,waf=2.68,fswpd=0.024
  iolens plan endurance -f scratch --case ssi=3,data=10,parity=2 --case ssi=4,data=8,parity=2,waf=p95
  iolens plan endurance -f scratch --ssi 3..4 --layout 8+2,10+2 --drives-of burst --figure writes.png
""",
)
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="KEY=VALUE,...",
    help="One case: ssi, data, parity, waf, fswpd, rmw; what it leaves out comes from the options and the store",
)
@usual("--ssi", metavar="LIST", help="Speed of the new system over the old")
@usual("--layout", metavar="LIST", help="Data and parity blocks of a stripe")
@click.option("--waf", metavar="VALUE", help="Number, range, or median, p95, max, mean, fleet of the drives [median]")
@click.option("--fswpd", metavar="VALUE", help="Number, range, or mean, median, p95, max of the days [mean]")
@click.option("--rmw", metavar="VALUE", help="Read-modify-write factor, where it is known")
@click.option(
    "--raid-block", type=BYTES, metavar="SIZE", help="Estimate it from the store's write sizes and this block"
)
@click.option("--capacity", type=CAPACITY, metavar="SIZE", help="Capacity of the reference system [from the store]")
@click.option("--new-capacity", type=CAPACITY, metavar="SIZE", help="Capacity of the new system [as the old]")
@usual("--min-coverage", type=click.FloatRange(0, 100), metavar="PCT", help="Leave out days with less of them reported")
@click.option("--drives-of", metavar="NAME", help="File system whose drives tell the WAF [the same, or the only one]")
@usual("--classes", type=WORDS, metavar="LIST", help="DWPD on offer")
@usual("--warranty", type=click.FloatRange(0, min_open=True), metavar="YEARS")
@click.option("--reference-drive", type=CAPACITY, metavar="SIZE", help="Drive that the cases speak of [from the store]")
@usual("--drive-sizes", type=WORDS, metavar="SIZES", help="Other drives, at equal number of drives")
@usual("--usable", type=WORDS, metavar="DWPD=SIZE,...", help="What one drive offers at each rating")
@smaller_option
@analysis_options
def COMMAND(asked: Asked, **options: Any) -> None:
    """Drive writes per day of the next system: SSI · FSWPD · (D + P)/D · WAF, and the stricter ways to count.

    Without --case there is one for each member of --ssi and --layout. FSWPD, file-system writes per day, comes from the
    bytes written on each day and the capacity in the store; WAF from its drives. A number such as 2.5..3.2 is a range.
    No store is opened when every case says all it needs.
    """
    asked.show(asked.plan("endurance", options))
