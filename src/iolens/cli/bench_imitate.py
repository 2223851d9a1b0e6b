"""The IOR runs that imitate a job."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.options import BYTES, DURATION, FORMAT, QuantityType, store_options
from iolens.cli.terminal_output import present, progress, table_options
from iolens.messages import say

if TYPE_CHECKING:
    from iolens.benchmarks.studies.folder import StudyFolder
    from iolens.benchmarks.studies.run import StudyOutcome

INTERRUPTED = 130
STOPPED = 3
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


@click.command(
    "imitate",
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
    "--share", type=QuantityType("share", _share), metavar="PCT",
    help="Share of the job's bytes that is moved [1% with --place, else 100%]",
)  # fmt: skip
@click.option("--tasks", type=click.IntRange(1), metavar="N", help="Most tasks [processors with --place, else all]")
@click.option("--launcher", metavar="COMMAND", help="MPI launcher, such as 'srun -n {tasks}' [mpirun, mpiexec, srun]")
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True, help="How often IOR is run")
@click.option("--max-bytes", type=BYTES, default="100GiB", show_default=True, help="Most bytes to write")
@click.option(
    "--max-seconds", type=DURATION, default="1h", show_default=True, metavar="TIME", help="Stop after this time"
)
@click.option(
    "--max-fullness", type=click.FloatRange(0, 100), default=90.0, show_default=True, metavar="PCT",
    help="Never make a file system fuller than this",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print the plan of the runs; write nothing")
@click.option("--folder", type=click.Path(path_type=Path), metavar="DIR", help="Folder of the study [./NAME]")
@store_options
@click.option("--format", "format_", type=FORMAT, default="table", show_default=True, help="Form of the result")
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write the result here")
@table_options
def COMMAND(
    job: str,
    places: tuple[str, ...],
    share: float | None,
    tasks: int | None,
    launcher: str | None,
    repeats: int,
    max_bytes: int,
    max_seconds: float,
    max_fullness: float,
    dry_run: bool,
    folder: Path | None,
    store: str | None,
    config: str | None,
    format_: str,
    output: Path | None,
) -> int:
    """The IOR runs that do what a job did, with the evidence; run where --place says, and how near they came.

    From a Darshan log, a run or a job of the store. A job without a log is imitated from the counters of its nodes:
    coarsely. A path that exists is a log and needs no store.
    """
    from iolens.api.bench_imitate import ImitationRun, imitate_plan, imitation_of, planned_result, study_result_of
    from iolens.api.runs import RunAccess
    from iolens.sources.darshan.forked import stay_alone

    stay_alone()
    imitation = imitation_of(job, RunAccess(store, config))
    if not places:
        present(planned_result(job, imitation, share or 1.0, tasks, launcher), format_, output, ())
        return 0
    from iolens.benchmarks.studies.folder import StudyJournal, new_folder
    from iolens.benchmarks.studies.plan import StudyLimits, plan_text
    from iolens.benchmarks.studies.run import check_study

    limits = StudyLimits(max_bytes, max_seconds, max_fullness)
    asked = ImitationRun(share or DEFAULT_SHARE, tasks, launcher, repeats, limits)
    plan = imitate_plan(job, imitation, places, asked)
    check_study(plan, StudyJournal())
    if dry_run:
        click.echo(plan_text(plan), nl=False)
        return 0
    made = new_folder(folder or Path(plan.name), plan)
    outcome = _run(made)
    present(study_result_of(job, imitation, made), format_, output, ())
    return {None: 0, "interrupted": INTERRUPTED}.get(outcome.stopped, STOPPED)


def _run(folder: StudyFolder) -> StudyOutcome:
    """The study, with its progress."""
    from iolens.benchmarks.studies.run import expected_work, run_study

    plan = folder.plan()
    work = expected_work(plan, folder.journal())
    say(f"{plan.name}: {work.points} runs of IOR, in {folder.path}")
    with progress(work.points, plan.kind) as step:
        outcome = run_study(folder, step if sys.stderr.isatty() else say)
    for note in outcome.notes:
        say(f"note: {note}")
    for path in outcome.left:
        say(f"not ours, left where it is: {path}")
    if outcome.stopped is not None:
        say(f"{outcome.stopped}: {outcome.points_done} of {outcome.points} runs are on record in {folder.path}")
    return outcome
