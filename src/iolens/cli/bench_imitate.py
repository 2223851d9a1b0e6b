"""The IOR runs that imitate a job."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_bench_options import StudyAsked, run_options
from iolens.cli.terminal_output import present
from iolens.cli.value_types import KindType
from iolens.question import quantity

DEFAULT_SHARE = 0.01


def _share(text: str) -> float:
    number, percent, rest = text.partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = 0.0
    if rest or not 0 < share <= 1:
        raise ValueError(f"{text!r}: a share such as 1% or 0.01, at most 100%")
    return share


@verb(
    "bench imitate",
    "The IOR runs that imitate a job",
    epilog="""\b
Examples:
  iolens bench imitate my.darshan                               parameters, evidence, commands
  iolens bench imitate 4711 --store centre --format json
  iolens bench imitate my.darshan --place scratch=/scratch/test --share 5%
  iolens bench imitate 4711 --place /scratch/test --launcher 'srun -n {tasks}' --tasks 64 --dry-run
""",
)
@click.argument("job", metavar="LOG|RUN|JOBID")
@click.option("--place", "places", multiple=True, metavar="[NAME=]DIR", help="Run IOR in this directory; repeatable")
@click.option(
    "--share", type=KindType(quantity("share", _share)), metavar="PCT",
    help="Share of the job's bytes that is moved [1% with --place, else 100%]",
)  # fmt: skip
@click.option("--tasks", type=click.IntRange(1), metavar="N", help="Most tasks [processors with --place, else all]")
@click.option("--launcher", metavar="COMMAND", help="MPI launcher, such as 'srun -n {tasks}' [mpirun, mpiexec, srun]")
@run_options
def bench_imitate(asked: StudyAsked, job: str, share: float | None, tasks: int | None, launcher: str | None) -> int:
    """The IOR runs that do what a job did, with the evidence; run where --place says, and how near they came.

    From a Darshan log, a run or a job of the store. A job without a log is imitated from the counters of its nodes:
    coarsely. A path that exists is a log and needs no store.
    """
    from iolens.api.runs import RunAccess
    from iolens.api.studies import imitate_parameters, imitation_of, planned_result, study_result_of
    from iolens.sources.darshan.isolated import stay_alone

    stay_alone()
    imitation = imitation_of(job, RunAccess(asked.store, asked.config))
    if not asked.places:
        present(
            planned_result(job, imitation, share or 1.0, tasks, launcher), asked.format_, asked.output, asked.figures
        )
        return 0
    parameters = imitate_parameters(job, imitation, share or DEFAULT_SHARE, tasks, launcher)
    return asked.run("imitate", parameters, lambda folder: study_result_of(job, imitation, folder))
