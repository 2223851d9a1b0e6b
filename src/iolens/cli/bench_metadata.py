"""Rates of metadata operations, with mdtest."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_bench_options import COUNTS, StudyAsked, study_options
from iolens.cli.value_types import BYTES


@verb(
    "bench metadata",
    "Rates of metadata operations, with mdtest",
    epilog="""\b
Examples:
  iolens bench metadata /scratch/test --tasks 1,4,16 --items 5000
  iolens bench metadata /scratch/test --file-size 4KiB --shared-directory
""",
)
@click.option("--tasks", type=COUNTS, default="1,2", show_default=True, metavar="LIST", help="Numbers of MPI tasks")
@click.option(
    "--items", type=click.IntRange(1), default=1000, show_default=True, help="Files and directories of a task"
)
@click.option("--file-size", "file_bytes", type=BYTES, default="0", show_default=True, help="Written to each file")
@click.option("--shared-directory", is_flag=True, help="All tasks in one directory")
@click.option("--launcher", metavar="COMMAND", help="MPI launcher, such as 'srun -n {tasks}' [mpirun, mpiexec, srun]")
@study_options
def bench_metadata(
    asked: StudyAsked,
    tasks: tuple[int, ...],
    items: int,
    file_bytes: int,
    shared_directory: bool,
    launcher: str | None,
) -> int:
    """Rates at which files and directories are made, looked at, read and removed, with mdtest, by number of tasks."""
    from iolens.benchmarks.studies.metadata_study import MetadataParameters

    return asked.run("metadata", MetadataParameters(tasks, items, file_bytes, shared_directory, launcher))
