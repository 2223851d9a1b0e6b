"""One run over time: which ranks did I/O when, and how much."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_run_options import AskedOfRun, run_options


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
