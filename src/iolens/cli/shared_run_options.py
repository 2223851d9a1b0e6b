"""Options of the verbs that look at one run: where it is, and how the answer is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from iolens.cli.output_options import output_options
from iolens.cli.shared_store_options import store_options
from iolens.cli.terminal_output import present

if TYPE_CHECKING:
    from iolens.api.runs import RunAccess


@dataclass(frozen=True, slots=True)
class AskedOfRun:
    """What these verbs are asked with."""

    store: str | None
    config: str | None
    nodes: int | None
    format_: str
    output: Path | None
    figures: tuple[str, ...]

    @property
    def access(self) -> RunAccess:
        """Where the run is, and what is known beside its log."""
        from iolens.api.runs import RunAccess

        return RunAccess(self.store, self.config, self.nodes)

    def show(self, result: object) -> None:
        """Print or write a result and draw the figures that were asked for."""
        present(result, self.format_, self.output, self.figures)

    def print(self, text: str) -> None:
        """To standard output, or into the file that was named."""
        if self.output is None:
            click.echo(text, nl=False)
        else:
            from iolens.views.render import atomic

            atomic.write(self.output, text)


def run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function takes them as its first argument, `AskedOfRun`."""
    names = ("store", "config", "nodes", "format_", "output", "figures")

    @wraps(function)
    def ask(*args: Any, **values: Any) -> Any:
        asked = AskedOfRun(**{name: values.pop(name) for name in names})
        _check(asked, function.__module__.rpartition(".")[2])
        return function(asked, *args, **values)

    nodes = click.option("--nodes", type=click.IntRange(1), metavar="N", help="Number of nodes, if the log lacks it")
    return store_options(nodes(output_options(ask)))


def _check(asked: AskedOfRun, view: str) -> None:
    """Nothing is read for a slip of the pen. The view is called as the verb's module."""
    if asked.output is not None or asked.format_ != "table" or asked.figures:
        from iolens.views.render.formats import check_figures, check_output

        check_output(cast("Any", asked.format_), asked.output)
        if asked.figures:
            check_figures(view, asked.figures)
