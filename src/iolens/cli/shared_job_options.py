"""Options that `job begin`, `end` and `run` share. Imports stay light: these verbs run on compute nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from iolens.messages import warn


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
