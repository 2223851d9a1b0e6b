"""Run a command and print what it did to the file systems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import format_option, output_option
from iolens.cli.shared_job_options import sampling_options

if TYPE_CHECKING:
    from iolens.agent.jobs.requests import SamplingRequest


@verb(
    "job run",
    "Run a command and print what it did to the file systems",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="""\b
Examples:
  iolens job run -- ./simulation input.nml
  iolens job run --output io.txt -- mpirun -np 64 ./simulation
""",
)
@sampling_options
@output_option("Write the report here [stderr]")
@format_option("table", "json")
@click.option("--config", metavar="FILE", help="Configuration file [$IOLENS_CONFIG, ./iolens.toml, /etc/iolens.toml]")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def job_run(
    request: SamplingRequest, output: Path | None, format_: str, config: str | None, command: Sequence[str]
) -> int:
    """Run COMMAND and report what it did to the file systems of this node. Needs no administrator.

    The counters are those of the node: I/O of other programs on it at the same time is included. The report is
    written to standard error; the exit code is that of the command.
    """
    from iolens.api.job_report import configured_thresholds, written_report
    from iolens.api.job_sampling import run_job

    thresholds = configured_thresholds(config)  # a wrong configuration is said before the command runs
    code, report = run_job(request, command, thresholds)
    text = written_report(report, format_)
    if output is None:
        click.echo(text, nl=False, err=True)
    else:
        output.write_text(text, "utf-8")
    return code
