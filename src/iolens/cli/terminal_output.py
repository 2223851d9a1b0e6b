"""What verbs show: progress on a terminal, results and figures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import click

from iolens.messages import NOTICE, is_shown, say, warn
from iolens.visible_text import visible


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


def present(result: object, format_: str, output: Path | None, figures: tuple[str, ...]) -> None:
    """Print or write a result and draw the figures that were asked for."""
    from iolens.views.render.formats import LIST, draw_figures, figures_of, render

    if LIST in figures:
        click.echo("\n".join(figures_of(result)))
        return
    if format_ in ("csv", "parquet"):  # one table of numbers has no place for what does not fit
        for warning in getattr(result, "warnings", ()):
            warn(visible(f"warning: {warning}"))
    render(result, cast("Any", format_), output)
    for path in draw_figures(result, figures) if figures else ():
        say(f"drawn: {path}")
