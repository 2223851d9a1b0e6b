"""Run a command and print what it did to the file systems."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from iolens.cli.shared_job_options import Sampling, sampling_options, say


@click.command(
    "run",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="""\b
Examples:
  iolens job run -- ./simulation input.nml
  iolens job run --output io.txt -- mpirun -np 64 ./simulation
""",
)
@sampling_options
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write the report here [stderr]")
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--config", metavar="FILE", help="Configuration file [$IOLENS_CONFIG, ./iolens.toml, /etc/iolens.toml]")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def COMMAND(sampling: Sampling, output: Path | None, format_: str, config: str | None, command: Sequence[str]) -> int:
    """Run COMMAND and report what it did to the file systems of this node. Needs no administrator.

    The counters are the node's: other programs that run on it at the same time are in the numbers. The report goes to
    standard error; the exit code is the command's.
    """
    from iolens.agent.jobs.context import JobContext
    from iolens.agent.jobs.sampling import job_folder
    from iolens.api.job_report import configured_thresholds, report_of_folder, written_report
    from iolens.sources.job_files import BEGIN, END

    thresholds = configured_thresholds(config)  # a wrong configuration is said before the command runs
    job = JobContext.of_command(os.environ, command, sampling.job_id)
    if sampling.via is None:
        job = replace(job, nodes=())  # this node alone is sampled, and none is missed
    sampling.sample(BEGIN, job)
    code = _run(command)
    sampling.sample(END, job)
    text = written_report(report_of_folder(job_folder(sampling.place, job.job_id), thresholds), format_)
    if output is None:
        click.echo(text, nl=False, err=True)
    else:
        output.write_text(text, "utf-8")
    return code


def _run(command: Sequence[str]) -> int:
    """The command's exit code, as a shell gives it. Signals are for the command; we stay for the report."""
    try:
        process = subprocess.Popen(command)
    except OSError as error:
        say(f"{command[0]}: {error.strerror or error}")
        return 127
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the command too
    signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    code = process.wait()
    return 128 - code if code < 0 else code
