"""Options that the verbs of `iolens alerts` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

FORMAT = click.Choice(["table", "json"])


def format_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--format`."""
    option = click.option("--format", "format_", type=FORMAT, default="table", show_default=True)
    decorated: Callable[..., Any] = option(function)
    return decorated
