"""Runs before and after a change, every key number side by side."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_run_options import AskedOfRun, run_options
from iolens.cli.value_types import WORDS


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
