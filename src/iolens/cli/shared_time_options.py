"""`--from`, `--to`, `--during` and `--timezone`, and how times are read on the command line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

import click

from iolens.cli.value_types import TIME, ZONE, KindType
from iolens.question import Kind
from iolens.times import FORMS, utc_period

PERIOD = KindType(Kind("period", utc_period))

FROM_HELP = f"Start of the window: {FORMS}; of a period its start"
DURING_HELP = "A whole day, week or month as the window: yesterday, 2026-W03, last month"


def timezone_option(
    text: str = "Zone of days, of times shown and of those given without one, such as Europe/Berlin [UTC]",
) -> Callable[..., Any]:
    """`--timezone`, read before all times; until the verb ends, times are shown in that zone."""
    return click.option("--timezone", type=ZONE, is_eager=True, metavar="ZONE", callback=_show_in, help=text)


def _show_in(ctx: click.Context, _: click.Parameter, zone: str | None) -> str | None:
    if zone is not None:
        from iolens.views.render.shown_times import shown_in

        ctx.with_resource(shown_in(zone))
    return zone


def window_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What the function takes as `since` and `until`, in UTC, and `--timezone`."""

    @wraps(function)
    def ask(*args: Any, during: tuple[datetime, datetime] | None, **values: Any) -> Any:
        if during is not None:
            if values["since"] is not None or values["until"] is not None:
                raise click.UsageError("--during is a whole window: leave out --from and --to")
            values["since"], values["until"] = during
        return function(*args, **values)

    since = click.option("--from", "since", type=TIME, metavar="TIME", help=FROM_HELP)
    until = click.option("--to", "until", type=TIME, metavar="TIME", help="End of the window, not included")
    during = click.option("--during", type=PERIOD, metavar="PERIOD", help=DURING_HELP)
    asked: Callable[..., Any] = since(until(during(timezone_option()(ask))))
    return asked
