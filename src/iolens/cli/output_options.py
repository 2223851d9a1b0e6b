"""How an answer is shown: `--format`, `--output`, `--figure`, `--table` and `--wide`, for every verb that answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from iolens.cli.terminal_output import table_options

FORMATS: Final = ("table", "json", "csv", "parquet", "markdown")
FILE: Final = click.Path(path_type=Path, dir_okay=False)

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]


def output_options(function: Function, *, figures: bool = True) -> Function:
    """What the function takes as `format_`, `output` and `figures`; `--table` and `--wide` are for what is shown."""
    options = [format_option(), output_option(), *([figure_option()] if figures else [])]
    decorated = table_options(function)
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def format_option(*formats: str, words: str | None = None) -> Decorator:
    """`--format`, as `format_`: one of all formats, or of these."""
    kind = click.Choice(formats or FORMATS)
    return click.option("--format", "format_", type=kind, default="table", show_default=True, help=words)


def output_option(words: str = "Write here instead of standard output", **settings: Any) -> Decorator:
    """`--output`, as `output`."""
    return click.option("--output", "-o", type=FILE, help=words, **settings)


def figure_option() -> Decorator:
    """`--figure`, as `figures`."""
    return click.option(
        "--figure", "figures", multiple=True, metavar="[NAME=]FILE",
        help="Draw a figure (.svg .png .pdf .html); repeatable; `--figure list` names them",
    )  # fmt: skip
