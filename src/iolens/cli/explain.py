"""Was it me or the system: why one run was slow."""

from __future__ import annotations

import click

from iolens.cli.options import Asked, analysis_options


@click.command(
    "explain",
    epilog="""\b
Examples:
  iolens explain 4400017 --store centre
  iolens explain 3fa9c1 --format json
  iolens explain 4400017 --figure timeline=load.png --figure factors=history.html
""",
)
@click.argument("run", metavar="JOB|RUN")
@click.option("--calibration", metavar="NAME", help="Stored, configured or shipped calibration (shipped: grace-2012)")
@analysis_options
def COMMAND(asked: Asked, run: str, calibration: str | None) -> None:
    """One run against like runs, and against the state of the file system in its time and in theirs.

    JOB|RUN is a job id, a run id or its first four digits or more, or the name of a log. The verdict is own, system,
    both, unexplained, not slow, or too little history. --from and --to limit the history; --target names the OSTs of
    the run's files if its log does not.
    """
    from iolens.api.explain import explanation

    with asked.opened() as opened:
        result = explanation(opened, run, asked.scope, load=bool(asked.figures), calibration=calibration)
    asked.show(result)
