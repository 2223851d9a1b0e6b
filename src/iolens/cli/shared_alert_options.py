"""Options that the verbs of `iolens alerts` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from iolens.cli.shared_store_options import PATH

FORMAT = click.Choice(["table", "json"])


def state_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--state` and `--config`."""
    state = click.option("--state", metavar="DIR", type=PATH, help="State directory [$IOLENS_STATE, ./iolens-state]")
    config = click.option(
        "--config",
        metavar="FILE",
        type=PATH,
        help="Configuration file [$IOLENS_CONFIG, ./iolens.toml, /etc/iolens.toml]",
    )
    decorated: Callable[..., Any] = state(config(function))
    return decorated


def format_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--format`."""
    option = click.option("--format", "format_", type=FORMAT, default="table", show_default=True)
    decorated: Callable[..., Any] = option(function)
    return decorated
