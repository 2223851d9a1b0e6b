"""What `job begin`, `end` and `run` share: options, and sampling this node or all of them. Imports stay light."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from iolens.agent.jobs.context import JobContext

FOLDER_VARIABLE = "IOLENS_JOBS"
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Sampling:
    """Which job is sampled, where, and into which folder."""

    folder: Path | None
    job_id: str | None
    root: Path
    node: str | None
    via: str | None

    @property
    def place(self) -> Path:
        """The folder of all jobs."""
        return default_folder() if self.folder is None else self.folder

    def job(self) -> JobContext:
        """The job, as the environment and --job-id say."""
        from iolens.agent.jobs.context import JobContext

        return JobContext.of_environment(os.environ, self.job_id)

    def sample(self, point: str, job: JobContext) -> None:
        """Take the sample, here or on every node; a node without one is named, and the job goes on."""
        from iolens.agent.jobs.sampling import take_sample

        if self.via is None:
            take_sample(point, job, self.place, self.root, self.node)
            return
        if not job.nodes:
            raise click.UsageError(f"--via {self.via}: the environment does not name the nodes of the job")
        self._sample_everywhere(point, job)

    def _sample_everywhere(self, point: str, job: JobContext) -> None:
        from iolens.agent.jobs.nodes import run_on_nodes, without_sample
        from iolens.visible_text import some_names

        assert self.via is not None
        complaints = run_on_nodes(self.via, job.nodes, self._words(point, job), TIMEOUT_S)
        silent = without_sample(self.place, job.job_id, job.nodes, point)
        if silent:
            for complaint in complaints:
                say(complaint)
            say(f"no sample of {some_names(silent, 4)}")

    def _words(self, point: str, job: JobContext) -> Sequence[str]:
        """The command for one node. All nodes see the folder."""
        words = [*this_program(), "job", point, "--folder", str(self.place.absolute()), "--job-id", job.job_id]
        words += [] if self.root == Path("/") else ["--root", str(self.root)]
        return [*words, *(["--no-report"] if point == "end" else [])]


def this_program() -> list[str]:
    """How this very iolens is called: from a package, or as one file."""
    program = Path(sys.argv[0]).absolute()
    return [sys.executable, str(program)] if program.suffix == ".pyz" else [sys.executable, "-m", "iolens"]


def default_folder() -> Path:
    """Where jobs are sampled to when no option says."""
    if given := os.environ.get(FOLDER_VARIABLE):
        return Path(given)
    try:
        return Path.home() / ".iolens" / "jobs"
    except RuntimeError:
        raise click.UsageError(f"no home directory: name a folder with --folder or ${FOLDER_VARIABLE}") from None


def folder_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--folder`."""
    return click.option(
        "--folder", type=click.Path(path_type=Path, file_okay=False),
        show_default=f"${FOLDER_VARIABLE}, ~/.iolens/jobs", help="Folder of all jobs, which every node sees",
    )(function)  # fmt: skip


def sampling_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is sampled; the function takes it as its first argument, `Sampling`."""
    names = [field.name for field in fields(Sampling)]

    @wraps(function)
    def ask(**values: Any) -> Any:
        return function(Sampling(**{name: values.pop(name) for name in names}), **values)

    options = [
        click.option("--job-id", metavar="ID", show_default="$SLURM_JOB_ID, $PBS_JOBID", help="Which job this is"),
        click.option(
            "--root", type=click.Path(path_type=Path), default=Path("/"), show_default=True,
            help="Where /proc and /sys are",
        ),
        click.option("--node", metavar="NAME", show_default="this host", help="Name of the node"),
        click.option(
            "--via", type=click.Choice(["srun", "pdsh", "clush", "ssh"]),
            help="Sample all nodes of the job through this",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        ask = option(ask)
    return folder_option(ask)


def say(line: str) -> None:
    """A line for the person who looks at the job's output."""
    click.echo(f"iolens: {line}", err=True)
