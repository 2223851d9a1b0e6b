"""How much capacity: growth of the reference system, purge policy and the new system's speed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from iolens.cli.options import BYTES, TIME, analysis_options, in_zone, present
from iolens.errors import UsageError
from iolens.units import parse_bytes

if TYPE_CHECKING:
    from iolens.analyses.ages import Ages
    from iolens.analyses.growth import Growth
    from iolens.notebook import OpenStore
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
    "daily_growth_bytes": parse_bytes,
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
@click.option("--capacity", type=BYTES, metavar="SIZE", help="Capacity of the reference system, for --method paper")
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
    """Capacity of the next system: SSI · (purge days ÷ purge fraction) · daily growth.

    A LIST makes one case for each of its members; a member such as 3..4 is a range, with a low and a high answer. With
    --daily-growth no store is opened unless --store or --filesystem names one. Where the store holds a scan with the
    ages of files, the answer says which bytes each purge policy would leave.
    """
    from iolens.plans.capacity import plan_capacity

    context = click.get_current_context()
    texts = {"ssi": ssi, "purge_days": purge_days, "purge_fraction": purge_fraction}
    if daily_growth is not None:
        texts["daily_growth_bytes"] = daily_growth
    inputs = {name: _inputs(name, text, _origin(context, name)) for name, text in texts.items()}
    inputs |= _what_ifs(what_if)
    growth: Growth | None = None
    found: list[Ages] = []
    if "daily_growth_bytes" not in inputs or store is not None or filesystem is not None:
        from iolens.notebook import OpenStore

        with OpenStore(store, engine=engine, config=config) as opened:
            window = {"since": in_zone(since, timezone), "until": in_zone(until, timezone)}
            where = {"targets": target, "source": source}
            growth = _growth(opened, filesystem, timezone, method, capacity, cutoff, **window, **where)
            found = _ages(opened, growth.filesystem, clock, window["until"])
    result = plan_capacity(inputs, growth=growth, ages=found, purge_every_days=purge_every)
    present(result, format_, output, figures)


def _inputs(name: str, text: str, origin: str) -> list[Input]:
    from iolens.plans.inputs import parse_input

    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise UsageError(f"{name}: nothing is given")
    return [parse_input(name, word, PARSERS[name], origin) for word in words]


def _origin(context: click.Context, name: str) -> str:
    option = next(option for option, known in OPTIONS.items() if known == name)
    given = context.get_parameter_source(option.replace("-", "_")) is not click.core.ParameterSource.DEFAULT
    return f"option --{option}" if given else "default"


def _what_ifs(texts: tuple[str, ...]) -> dict[str, list[Input]]:
    found = {}
    for text in texts:
        option, equals, values = text.partition("=")
        if not equals or option.strip() not in OPTIONS:
            raise UsageError(f"--what-if {text!r}: write NAME=LIST, with NAME one of {', '.join(OPTIONS)}")
        found[OPTIONS[option.strip()]] = _inputs(OPTIONS[option.strip()], values, f"option --what-if {option.strip()}")
    return found


def _growth(
    opened: OpenStore,
    filesystem: str | None,
    timezone: str | None,
    method: str,
    capacity: int | None,
    cutoff: datetime | None,
    **where: Any,
) -> Growth:
    chosen = opened.store.select(filesystem).filesystem
    zone = timezone or opened.config.filesystem(chosen).timezone
    growth: Growth = opened.analyse(
        "growth",
        chosen,
        method=method,
        capacity_bytes=capacity,
        cutoff=cutoff.date() if cutoff is not None else None,
        timezone=zone,
        **where,
    )
    return growth


def _ages(opened: OpenStore, filesystem: str, clock: str, until: datetime | None) -> list[Ages]:
    """By the clock asked for first, then by the other."""
    from iolens.analyses.ages import CLOCKS, ages

    selection = opened.store.select(filesystem, until=until)
    ordered = sorted(CLOCKS, key=lambda one: one != clock)
    return [one for one in (ages(selection, name) for name in ordered) if one is not None]
