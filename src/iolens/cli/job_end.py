"""Sample this node, or all nodes, at the end of a job; report it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_job_options import sampling_options
from iolens.errors import OptionError
from iolens.messages import say

if TYPE_CHECKING:
    from iolens.agent.jobs.requests import SamplingRequest


def _seconds(context: click.Context, parameter: click.Parameter, text: str) -> float:
    from iolens.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@verb(
    "job end",
    "Sample this node, or all nodes, at the end of a job; report it",
    epilog="""\b
Examples:
  iolens job end --no-report           in an epilog, on every node
  iolens job end --via srun            last line of a batch script: the report ends the job's output
  iolens job end --wait 20s --append-to slurm-17.out --as-user alice
""",
)
@sampling_options
@click.option("--report/--no-report", default=True, show_default=True, help="Print the report of the job")
@click.option(
    "--wait", "wait_s", callback=_seconds, default="0s", show_default=True, metavar="TIME",
    help="Longest time to wait for the samples of the other nodes",
)  # fmt: skip
@click.option(
    "--append-to", type=click.Path(path_type=Path), help="Append the report to this file, such as the job's output"
)
@click.option("--as-user", metavar="NAME", help="Append as this user (root only)")
@click.option("--config", metavar="FILE", help="Configuration file [$IOLENS_CONFIG, ./iolens.toml, /etc/iolens.toml]")
def job_end(
    request: SamplingRequest,
    report: bool,
    wait_s: float,
    append_to: Path | None,
    as_user: str | None,
    config: str | None,
) -> int:
    """Sample the Lustre clients of this node for the job that ends, and report what moved since it began.

    A node that did not answer is named in the report. The exit code is 3 if the numbers are not complete. With
    --spool nothing is printed: use `iolens job report ID` when the samples of the nodes are in the store.
    """
    if request.spool is not None and append_to is not None:
        raise OptionError("--append-to does not go with --spool: the report of a job is in the store then")
    if not report or request.spool is not None:
        job = request.job()
        request.end(job)
        request.hand_over(job)
        return 0
    from iolens.api.job_report import configured_thresholds, written_report
    from iolens.api.job_sampling import end_job

    result = end_job(request, wait_s, configured_thresholds(config))
    text = written_report(result, "table")
    if append_to is None:
        click.echo(text, nl=False)
    else:
        from iolens.agent.jobs.nodes import append_as_user

        append_as_user(append_to, f"\n{text}", as_user)
        say(f"iolens: report of job {result.jobid} appended to {append_to}")
    return 3 if result.missing_nodes else 0
