"""How an answer is shown: progress, `--format`, `--output`, `--figure`, `--table` and `--wide`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, cast

import click

from iolens.messages import NOTICE, is_shown, say, warn
from iolens.visible_text import visible

# What verbs show: progress on a terminal, results and figures ---------------------------------------------------------

_SHOWN: Final = "iolens.cli.output_options.shown"  # in the context of the verb


@contextmanager
def progress(total: int | None, what: str) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal; silence otherwise and with `--quiet`, so that scripts see only results."""
    if not sys.stderr.isatty() or not is_shown(NOTICE):
        yield lambda label: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.__stderr__), transient=True) as bar:
        task = bar.add_task(what, total=total)

        def step(label: str) -> None:
            bar.update(task, advance=1, description=escape(f"{what} {visible(label)}"[:60]))

        yield step


@dataclass(frozen=True, slots=True)
class ShownTables:
    """Which tables of an answer are printed: the one of a name, or all, and whether with all of their columns."""

    table: str | None = None
    wide: bool = False


def table_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--table` and `--wide`, for what `present` shows while the function runs."""

    @wraps(function)
    def ask(*args: Any, table: str | None, wide: bool, **values: Any) -> Any:
        if table is not None and values.get("format_") == "json":
            raise click.UsageError("JSON is the whole answer: leave out --table, or take another --format")
        click.get_current_context().meta[_SHOWN] = ShownTables(table, wide)
        return function(*args, **values)

    name = click.option("--table", metavar="NAME", help="Only this table of the answer; `--table list` names them")
    wide = click.option("--wide", is_flag=True, help="All columns of tables, also where the terminal is narrow")
    decorated: Callable[..., Any] = name(wide(ask))
    return decorated


def shown_tables() -> ShownTables:
    """What `--table` and `--wide` of the verb that runs say."""
    context = click.get_current_context(silent=True)
    asked: ShownTables = ShownTables() if context is None else context.meta.get(_SHOWN, ShownTables())
    return asked


def present(result: object, format_: str, output: Path | None, figures: tuple[str, ...]) -> None:
    """Print or write a result and draw the figures that were asked for."""
    from iolens.views.render.doubts import warnings
    from iolens.views.render.formats import LIST, draw_figures, figures_of, render, tables_of

    shown = shown_tables()
    if shown.table == LIST:
        click.echo("\n".join(table.name for table in tables_of(result)))
        return
    if LIST in figures:
        click.echo("\n".join(figures_of(result)))
        return
    if format_ in ("csv", "parquet"):  # one table of numbers has no place for what does not fit
        for warning in warnings(result):
            warn(visible(f"warning: {warning}"))
    render(result, cast("Any", format_), output, table=shown.table, wide=shown.wide)
    for path in draw_figures(result, figures) if figures else ():
        say(f"drawn: {path}")


# How an answer is shown -----------------------------------------------------------------------------------------------
# `--format`, `--output`, `--figure`, `--table` and `--wide`, for every verb that answers.

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
