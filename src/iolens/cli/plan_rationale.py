"""The whole design on a few pages, each number with its origin."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from iolens.api.plans.defaults import CLOCKS, GROWTH_METHODS
from iolens.cli.options import BYTES, CAPACITY, WORDS, Selected, selection_options
from iolens.cli.shared_plan_options import option_of, smaller_option
from iolens.cli.shared_time_options import DAY
from iolens.messages import say

PARTLY_DONE: Final = 3
usual = option_of("rationale")


@click.command(
    "rationale",
    epilog="""\b
Examples:
  iolens plan rationale --store centre -f scratch --ssi 3,4 -o plan.pdf --author "Storage group"
  iolens plan rationale -f scratch --case ssi=3,data=10,parity=2,waf=2.68 --file-sizes sizes.csv -o plan.html
  iolens plan rationale --daily-growth 133TB --ssi 3 --parts capacity
""",
)
@click.option("--title", metavar="TEXT", help="Title of the document")
@click.option("--author", metavar="TEXT", help="Who answers for it")
@usual("--parts", type=WORDS, metavar="LIST", help="Plans that belong to the design")
@click.option("--ssi", metavar="LIST", help="Speed of the new system over the old [those of --case, else 1]")
@usual("--method", type=click.Choice(GROWTH_METHODS), help="Growth and bands of sizes our way, or as published")
@click.option("--capacity", metavar="SIZE", help="Capacity of the new system [the largest that growth asks for]")
@click.option("--reference-capacity", type=CAPACITY, metavar="SIZE", help="Of the reference system [from the store]")
@usual("--purge-days", metavar="LIST", help="Days after which files may go")
@usual("--purge-fraction", metavar="LIST", help="Share of capacity a purge reclaims")
@click.option("--daily-growth", metavar="SIZE", help="Bytes gained per day, such as 133TB [from the store]")
@click.option("--cutoff", type=DAY, metavar="DATE", help="Leave out growth before this day")
@click.option("--purge-every", type=click.IntRange(1), metavar="DAYS", help="Days between purges [as --purge-days]")
@usual("--clock", type=click.Choice(CLOCKS), help="Age that purges go by, where the store holds a scan")
@click.option("--what-if", multiple=True, metavar="NAME=LIST",
              help="Grid over ssi, purge-days, purge-fraction or daily-growth; repeatable [half and twice the purge "
              "days]")  # fmt: skip
@click.option("--case", "cases", multiple=True, metavar="KEY=VALUE,...",
              help="One case of endurance: ssi, data, parity, waf, fswpd, rmw; repeatable")  # fmt: skip
@usual("--layout", metavar="LIST", help="Data and parity blocks of a stripe")
@click.option("--waf", metavar="VALUE", help="Number, range, or median, p95, max, mean, fleet of the drives [median]")
@click.option("--fswpd", metavar="VALUE", help="Number, range, or mean, median, p95, max of the days [mean]")
@click.option("--rmw", metavar="VALUE", help="Read-modify-write factor, where it is known")
@click.option("--raid-block", type=BYTES, metavar="SIZE", help="Estimate it from the store's write sizes")
@usual("--min-coverage", type=click.FloatRange(0, 100), metavar="PCT", help="Leave out days with less of them reported")
@click.option("--drives-of", metavar="NAME", help="File system whose drives tell the WAF [the same, or the only one]")
@usual("--classes", type=WORDS, metavar="LIST", help="DWPD on offer")
@usual("--warranty", type=click.FloatRange(0, min_open=True), metavar="YEARS")
@click.option("--reference-drive", type=CAPACITY, metavar="SIZE", help="Drive that the cases speak of [from the store]")
@usual("--drive-sizes", type=WORDS, metavar="SIZES", help="Other drives, at equal number of drives")
@usual("--usable", type=WORDS, metavar="DWPD=SIZE,...", help="What one drive offers at each rating")
@click.option("--file-sizes", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Histogram of sizes, or a listing of files [the newest scan in the store]")  # fmt: skip
@usual("--dom", type=WORDS, metavar="SIZES", help="DOM thresholds")
@usual("--inode-size", type=BYTES, metavar="SIZE", help="Space for an inode")
@click.option("--largest-file", type=BYTES, metavar="SIZE", help="Largest file, where the last bin has no upper end")
@usual("--layout-mdt", metavar="D+P", help="Data and parity blocks of MDTs")
@click.option("--cost-mdt", type=click.FloatRange(0), metavar="MONEY", help="Cost of a raw TB on MDTs")
@click.option("--cost-ost", type=click.FloatRange(0), metavar="MONEY", help="Cost of a raw TB on OSTs")
@usual("--percentile", type=WORDS, metavar="LIST", help="50, 95, 99, 100 of ticks")
@click.option("--demand", "demands", multiple=True, metavar="MEASURE=VALUE", help="Demand as known elsewhere, such as "
              "bytes_per_s=35GB/s or ops_per_s=2e6; repeatable")  # fmt: skip
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write here, by the suffix as .md, .html, .pdf or .json [Markdown to standard output]")  # fmt: skip
@smaller_option
@selection_options
def COMMAND(asked: Selected, output: Path | None, **options: Any) -> int:
    """Write the design of the next system down: what to buy, and why.

    What to buy comes first, in three sentences and a table, then capacity, endurance, metadata and performance, each
    with its equation and the values put in, its inputs with their origins, its range and interval, figures and
    what-ifs; then the data behind it, the assumptions, and the command that makes it again. Inputs come from the store
    or from options, as `iolens plan capacity|endurance|metadata|performance` read them. A part whose inputs are not
    known is named as missing, and the exit code is 3. SOURCE_DATE_EPOCH sets the date.
    """
    from iolens.api.plans.rationale_files import check_suffix, rationale_markdown, write_rationale

    if output is not None:
        check_suffix(output)
    result = asked.plan("rationale", options)
    if output is None:
        click.echo(rationale_markdown(result).encode(), nl=False)  # UTF-8, whatever the terminal's locale
    else:
        for path in write_rationale(result, output):
            say(f"written: {path}")
    for missing in result.missing:
        click.echo(f"iolens: {missing.part} is not answered: {missing.reason}", err=True)
    return PARTLY_DONE if result.missing else 0
