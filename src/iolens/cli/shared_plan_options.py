"""Options of plans with the defaults that the plans declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from iolens.api.plans.defaults import DEFAULTS

smaller_option = click.option("--smaller", is_flag=True, help="A system smaller than what is used today is meant")


def option_of(plan: str) -> Callable[..., Callable[..., Any]]:
    """`click.option` with the default of the plan, shown in the help where there is one."""

    def option(name: str, **settings: Any) -> Callable[..., Any]:
        default = DEFAULTS[plan][name.removeprefix("--").replace("-", "_")]
        return click.option(name, default=default, show_default=bool(default), **settings)

    return option
