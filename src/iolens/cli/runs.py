"""`iolens runs`, and the summary of one run, which imports no more than it needs: most of its time is for imports."""

from __future__ import annotations

from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb, verb_group
from iolens.cli.output_options import format_option, output_option
from iolens.cli.shared_store_options import store_options


@verb_group(
    "runs",
    "What applications did, by their Darshan logs",
    epilog="""\b
Examples:
  iolens ingest darshan /darshan-logs/2026/11/15
  iolens runs projects --from 2026-11-01
  iolens runs summary my.darshan
""",
)
def runs() -> None:
    """What applications did, by their Darshan logs.

    Load logs with `iolens ingest darshan` and the scheduler's records with `iolens ingest slurm`. Verbs that take a LOG
    need no store.
    """


@verb(
    "runs summary",
    "One run on one page: rates, patterns, sizes, findings",
    epilog="""\b
Examples:
  iolens runs summary my.darshan
  iolens runs summary my.darshan --nodes 128 --html my.html
  iolens runs summary 4711 --store centre --format json
""",
)
@click.argument("run", metavar="LOG|RUN|JOBID")
@click.option("--nodes", type=click.IntRange(1), metavar="N", help="Number of nodes, if the log lacks it")
@click.option("--all", "every", is_flag=True, help="All runs of a job, one after the other")
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a page of HTML too"
)
@store_options
@format_option("table", "json")
@output_option()
def runs_summary(
    run: str,
    nodes: int | None,
    every: bool,
    html: Path | None,
    store: str | None,
    config: str | None,
    format_: str,
    output: Path | None,
) -> int:
    """What one run did, how fast, and what to change.

    A path that exists is a log and needs no store; with --store, better runs of the same user, program and number of
    processes show what can be gained. The first digits of a run id are sufficient. The exit code is 3 if the log is
    not complete.
    """
    from iolens.api.runs import RunAccess, pages, write_page, written
    from iolens.sources.darshan.isolated import stay_alone

    stay_alone()
    made = pages(run, RunAccess(store, config, nodes), every)
    text = written([page.summary for page in made], format_)
    if output is None:
        click.echo(text, nl=False)
    else:
        from iolens.views.render import atomic

        atomic.write(output, text)
    if html is not None:
        if len(made) > 1:
            raise click.UsageError("--html takes one run: name it by its run id")
        write_page(made[0], html)
    return 3 if any(page.summary.partial or page.summary.incomplete_modules for page in made) else 0
