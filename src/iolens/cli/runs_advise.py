"""What to change first: findings by the core-hours they touch."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_run_options import AskedOfRun, run_options
from iolens.cli.shared_time_options import window_options
from iolens.cli.terminal_output import ShownTables, shown_tables
from iolens.cli.value_types import WORDS


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
