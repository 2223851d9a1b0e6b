"""`iolens runs timeline`, `compare` and `advise`: single runs, by their Darshan logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.options import window_options
from iolens.cli.output_options import ShownTables, output_options, present, shown_tables
from iolens.cli.shared_store_options import store_options
from iolens.cli.value_types import WORDS

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
        _check(asked, function.__name__)
        return function(asked, *args, **values)

    nodes = click.option("--nodes", type=click.IntRange(1), metavar="N", help="Number of nodes, if the log lacks it")
    return store_options(nodes(output_options(ask)))


def _check(asked: AskedOfRun, view: str) -> None:
    """Nothing is read for a slip of the pen. The view is called as the verb's function."""
    if asked.output is not None or asked.format_ != "table" or asked.figures:
        from iolens.views.render.formats import check_figures, check_output

        check_output(cast("Any", asked.format_), asked.output)
        if asked.figures:
            check_figures(view, asked.figures)


# One run over time: which ranks did I/O when, and how much ------------------------------------------------------------


@verb(
    "runs timeline",
    "One run over time: which ranks did I/O when, and how much",
    epilog="""\b
Examples:
  iolens runs timeline my.darshan --figure ranks.png
  iolens runs timeline my.darshan --dxt --figure reads=reads.html
""",
)
@click.argument("run", metavar="LOG|RUN")
@click.option("--dxt", is_flag=True, help="From the trace of single accesses (DXT) of the log")
@run_options
def runs_timeline(asked: AskedOfRun, run: str, dxt: bool) -> None:
    """Activity by rank over time, and the phases of I/O.

    Activity comes from Darshan's heat map; in a log without one, bytes are spread evenly between the first and last
    access to each file.
    """
    from iolens.api.runs import timeline

    asked.show(timeline(run, asked.access, dxt))


# Runs before and after a change, every key number side by side --------------------------------------------------------


@verb(
    "runs compare",
    "Runs before and after a change, every key number side by side",
    epilog="""\b
Examples:
  iolens runs compare before.darshan after.darshan --figure rates.png
  iolens runs compare 4711,4712,4713 4802,4803 --store centre
""",
)
@click.argument("before", type=WORDS, metavar="A")
@click.argument("after", type=WORDS, metavar="B")
@run_options
def runs_compare(asked: AskedOfRun, before: tuple[str, ...], after: tuple[str, ...]) -> None:
    """Compare run B with run A: logs, runs or jobs; several of a side are joined by commas."""
    from iolens.api.runs import comparison

    if not before or not after:
        raise click.UsageError("name a log, run or job for each side")
    asked.show(comparison(before, after, asked.access))


# What to change first: findings by the core-hours they touch ----------------------------------------------------------


@verb(
    "runs advise",
    "What to change first: findings by the core-hours they touch",
    epilog="""\b
Examples:
  iolens runs advise my.darshan
  iolens runs advise --user alice --store centre
  iolens runs advise --project climate --from 2026-11-01 --format csv
""",
)
@click.argument("runs", nargs=-1, metavar="[LOG|RUN|JOBID]...")
@click.option("--user", type=WORDS, default="", metavar="NAMES", help="Runs of these users; * and ? stand for any")
@click.option("--executable", type=WORDS, default="", metavar="NAMES", help="Runs of these programs; likewise")
@click.option("--project", type=WORDS, default="", metavar="NAMES", help="Runs of these projects")
@click.option("--filesystem", "-f", metavar="NAME", help="Runs on this file system")
@window_options
@click.option(
    "--rank", "order", type=click.Choice(["core-hours", "severity"]), default="core-hours", show_default=True,
    help="Order of the findings",
)  # fmt: skip
@click.option(
    "--most",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Number of runs to examine, longest I/O time first",
)
@run_options
def runs_advise(
    asked: AskedOfRun,
    runs: tuple[str, ...],
    user: tuple[str, ...],
    executable: tuple[str, ...],
    project: tuple[str, ...],
    filesystem: str | None,
    since: datetime | None,
    until: datetime | None,
    timezone: str | None,
    order: Any,
    most: int,
) -> None:
    """Findings with evidence, remedy and estimated gain: of logs and runs, or of runs of a store by who made them.

    Findings of the same user and program are one line, with the core-hours that these runs spent in the I/O
    concerned.
    """
    from iolens.api.run_advice import advice_on, advice_on_stored

    narrowed = bool(user or executable or project or filesystem or since or until)
    if bool(runs) == narrowed:
        raise click.UsageError("name logs or runs, or choose stored ones by --user, --executable, --project, --from")
    if runs:
        result = advice_on(runs, asked.access, order)
    else:
        from iolens.api.stored_runs import WantedRuns

        window = since, until
        wanted = WantedRuns(user, executable, project, *window, filesystem)
        result = advice_on_stored(wanted, asked.access, order, most)
    if asked.format_ != "table" or asked.figures or shown_tables() != ShownTables():
        asked.show(result)
    else:
        from iolens.views.runs_advise import run_advice_text

        asked.print(run_advice_text(result))
