"""What `job begin`, `end` and `run` are asked to sample: which job, this node or all of them, into folder or spool."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolens.agent.jobs.sampling import JobContext, job_folder, sample_file, take_sample
from iolens.errors import OptionError
from iolens.sources.job_samples import BEGIN, END
from iolens.visible_text import some_names

FOLDER_VARIABLE: Final = "IOLENS_JOBS"
SPOOL_VARIABLE: Final = "IOLENS_SPOOL"
TIMEOUT_S: Final = 60.0  # of a launcher
NAMED: Final = 4

Say = Callable[[str], None]


@dataclass(frozen=True)
class SamplingRequest:
    """Which job is sampled, where, and into which folder; `say` takes what the user should know.

    With a `spool` the folder is the one in it, of this node alone.
    """

    folder: Path
    job_id: str | None
    root: Path
    node: str | None
    via: str | None
    say: Say
    spool: Path | None = None

    @classmethod
    def of(
        cls, folder: Path | None, spool: Path | None, job_id: str | None, root: Path, node: str | None,
        via: str | None, say: Say,
    ) -> SamplingRequest:  # fmt: skip
        """As options say; what they do not name the environment may."""
        if folder is not None and spool is not None:
            raise OptionError("--folder and --spool do not go together: samples go to one of them")
        if folder is None and spool is None and (stated := os.environ.get(SPOOL_VARIABLE)):
            spool = Path(stated)
        if spool is None:
            return cls(jobs_folder(folder), job_id, root, node, via, say)
        from iolens.agent.jobs.spooled import waiting_folder

        return cls(waiting_folder(spool), job_id, root, node, via, say, spool)

    def job(self) -> JobContext:
        """The job, as the environment and the option say."""
        return JobContext.of_environment(os.environ, self.job_id)

    def place(self, job: JobContext) -> Path:
        """The job's own folder."""
        return job_folder(self.folder, job.job_id)

    def begin(self, job: JobContext) -> None:
        """Sample at the begin."""
        if self.spool is not None and self.via is None:
            from iolens.agent.jobs.spooled import spool_leftovers

            for complaint in spool_leftovers(self.spool, self.root):
                self.say(complaint)
        self._sample(BEGIN, job)

    def end(self, job: JobContext, wait_s: float = 0.0) -> None:
        """Sample at the end, then wait for the nodes that are sampled by their own epilog."""
        self._sample(END, job)
        if wait_s > 0:
            from iolens.agent.jobs.nodes import wait_for_samples

            wait_for_samples(self.folder, job.job_id, job.nodes, END, wait_s)

    def hand_over(self, job: JobContext) -> None:
        """With a spool, what the job did on this node becomes a segment of it. Its samples are then no longer there."""
        if self.spool is not None and self.via is None:
            from iolens.agent.jobs.spooled import spool_job

            spool_job(self.spool, sample_file(self.folder, job, self.root, self.node))

    def _sample(self, point: str, job: JobContext) -> None:
        """Here or on every node; a node without a sample is named, and the job goes on."""
        if self.via is None:
            take_sample(point, job, self.folder, self.root, self.node)
            return
        if not job.nodes:
            raise OptionError(f"--via {self.via}: the environment does not name the nodes of the job")
        from iolens.agent.jobs.nodes import run_on_nodes, without_sample

        complaints = run_on_nodes(self.via, job.nodes, self._words(point, job), TIMEOUT_S)
        if self.spool is not None:  # which other nodes do not show
            for complaint in complaints:
                self.say(complaint)
            return
        if silent := without_sample(self.folder, job.job_id, job.nodes, point):
            for complaint in complaints:
                self.say(complaint)
            self.say(f"no sample of {some_names(silent, NAMED)}")

    def _words(self, point: str, job: JobContext) -> Sequence[str]:
        """The command for one node. All nodes see the folder."""
        option, place = ("--folder", self.folder) if self.spool is None else ("--spool", self.spool)
        words = [*this_program(), "job", point, option, str(place.absolute()), "--job-id", job.job_id]
        words += [] if self.root == Path("/") else ["--root", str(self.root)]
        return [*words, *(["--no-report"] if point == END else [])]


def this_program() -> list[str]:
    """How this very iolens is called: from a package, or as one file."""
    program = Path(sys.argv[0]).absolute()
    return [sys.executable, str(program)] if program.suffix == ".pyz" else [sys.executable, "-m", "iolens.cli.main"]


def jobs_folder(given: Path | None) -> Path:
    """The folder of all jobs: as given, else as the environment says, else below the home directory."""
    if given is not None:
        return given
    if stated := os.environ.get(FOLDER_VARIABLE):
        return Path(stated)
    try:
        return Path.home() / ".iolens" / "jobs"
    except RuntimeError:
        raise OptionError(f"no home directory: name a folder with --folder or ${FOLDER_VARIABLE}") from None
