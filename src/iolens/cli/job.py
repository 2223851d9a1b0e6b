"""`iolens job begin`, `end` and `run`: sample the nodes of a job and report what it did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iolens.cli.lazy_verbs import verb, verb_group
from iolens.cli.options import hub_options, known_hub
from iolens.cli.output_options import format_option, output_option
from iolens.errors import OptionError
from iolens.messages import say, warn

if TYPE_CHECKING:
    from iolens.agent.jobs.requests import SamplingRequest


# What jobs did to the file systems, sampled at begin and end ----------------------------------------------------------


@verb_group(
    "job",
    "What jobs did to the file systems, sampled at begin and end",
    epilog="""\b
Example, in a batch script:
  iolens job begin --via srun
  srun ./simulation
  iolens job end --via srun
""",
)
def job() -> None:
    """What jobs did to the file systems.

    `begin` and `end` sample the Lustre clients of the nodes; `end` and `report` print what was moved in between.
    """


# Options that `job begin`, `end` and `run` share. Imports stay light --------------------------------------------------
# These verbs run on compute nodes.


def folder_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--folder`."""
    return click.option(
        "--folder", type=click.Path(path_type=Path, file_okay=False), show_default="$IOLENS_JOBS, ~/.iolens/jobs",
        help="Directory of all jobs, shared by all nodes",
    )(function)  # fmt: skip


def sampling_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is sampled; the function takes it as its first argument, a `SamplingRequest`."""

    @wraps(function)
    def ask(
        folder: Path | None, spool: Path | None, job_id: str | None, root: Path, node: str | None, via: str | None,
        **more: Any,
    ) -> Any:  # fmt: skip
        from iolens.agent.jobs.requests import SamplingRequest

        return function(SamplingRequest.of(folder, spool, job_id, root, node, via, warn), **more)

    options = [
        click.option(
            "--spool", type=click.Path(path_type=Path, file_okay=False), show_default="$IOLENS_SPOOL",
            help="Spool of this node's agent, such as /var/spool/iolens, instead of a directory",
        ),
        click.option("--job-id", metavar="ID", show_default="$SLURM_JOB_ID, $PBS_JOBID", help="Id of the job"),
        click.option(
            "--root", type=click.Path(path_type=Path), default=Path("/"), show_default=True,
            help="Where /proc and /sys are",
        ),
        click.option("--node", metavar="NAME", show_default="this host", help="Name of the node"),
        click.option(
            "--via", type=click.Choice(["srun", "pdsh", "clush", "ssh"]),
            help="Command that starts the sampling on all nodes of the job",
        ),
    ]  # fmt: skip
    decorated: Callable[..., Any] = ask
    for option in reversed(options):
        decorated = option(decorated)
    return folder_option(decorated)


# Sample this node, or all nodes, at the begin of a job ----------------------------------------------------------------


@verb(
    "job begin",
    "Sample this node, or all nodes, at the begin of a job",
    epilog="""\b
Examples:
  iolens job begin                     in a prolog, which runs on every node
  iolens job begin --via srun          in a batch script, for all nodes of the job
  iolens job begin --job-id 17 --folder /shared/jobs
  iolens job begin --spool /var/spool/iolens     nodes share no folder: the agent ships it
""",
)
@sampling_options
def job_begin(request: SamplingRequest) -> None:
    """Sample the Lustre clients of this node for the job that begins.

    The job is taken from the environment (Slurm, PBS). Its samples are written to FOLDER/JOB/NODE.job, or with
    --spool into the spool of the agent on this node, which ships them to the store when the job has ended.
    """
    request.begin(request.job())


# Sample this node, or all nodes, at the end of a job; report it -------------------------------------------------------


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


# Run a command and print what it did to the file systems --------------------------------------------------------------


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


# Push finished jobs of a folder of samples to a hub -------------------------------------------------------------------

SHOWN_REFUSALS = 20


@verb(
    "job push",
    "Push finished jobs of a folder of samples to a hub",
    epilog="""\b
Examples:
  iolens job push --hub https://iolens.example.org:8470 --hub-token-file /etc/iolens/token
  iolens job push /shared/iolens/jobs        in cron: hub and token as [agent] of the configuration says
""",
)
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@hub_options
@click.option("--config", metavar="FILE", help="Configuration file [$IOLENS_CONFIG, ./iolens.toml, /etc/iolens.toml]")
def job_push(
    folder: Path | None, hub: str | None, hub_token_file: Path | None, hub_ca: Path | None, config: str | None
) -> int:
    """Push what `iolens job begin` and `end` sampled into FOLDER to the hub of `iolens serve`.

    FOLDER is that of all jobs [$IOLENS_JOBS, ~/.iolens/jobs]. Jobs that have ended are pushed, once for each node; the
    samples stay. It may run at any time and in several places: nothing is stored twice. Exit code: 0 done, 3 some could
    not be pushed, 1 the hub cannot be reached or takes no more for now.
    """
    from iolens.agent.jobs.requests import jobs_folder
    from iolens.agent.jobs.spooled import push_jobs
    from iolens.config import load_config

    address = known_hub(load_config(config).agent, hub, hub_token_file, hub_ca)
    if address is None:
        raise click.UsageError("no hub: name it with --hub or in [agent] of the configuration")
    done = push_jobs(jobs_folder(folder), address)
    click.echo(f"{done.pushed} pushed, {done.before} pushed before, {done.unfinished} have not ended (jobs by node)")
    for reason in done.refused[:SHOWN_REFUSALS]:
        warn(reason)
    if done.error:
        warn(f"{done.error}; the rest waits for the next run")
        return 1
    return 3 if done.refused else 0
