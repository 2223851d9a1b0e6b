"""File per process against one shared file, with IOR."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_bench_options import COUNTS, SIZES, StudyAsked, study_options


@verb(
    "bench ior",
    "File per process against one shared file, with IOR",
    epilog="""\b
Examples:
  iolens bench ior /scratch/test --tasks 8 --sizes 128MiB,1GiB,16GiB --transfers 16MiB
  iolens bench ior /scratch/test --tasks 1,4,16 --files shared --api MPIIO --collective
  iolens bench ior /scratch/test --launcher "srun -n {tasks}" --dry-run
""",
)
@click.option("--tasks", type=COUNTS, default="2", show_default=True, metavar="LIST", help="Numbers of MPI tasks")
@click.option(
    "--sizes", type=SIZES, default="1GiB", show_default=True, metavar="LIST", help="Bytes of all tasks together"
)
@click.option("--transfers", type=SIZES, default="1MiB", show_default=True, metavar="LIST", help="Bytes of each call")
@click.option(
    "--files", type=click.Choice(["both", "per-process", "shared"]), default="both", show_default=True,
    help="A file for each task, or one for all",
)  # fmt: skip
@click.option("--stripe-count", "stripe_counts", type=COUNTS, metavar="LIST", help="Stripe counts (Lustre)")
@click.option("--stripe-size", "stripe_bytes", type=SIZES, metavar="LIST", help="Stripe sizes (Lustre)")
@click.option("--api", type=click.Choice(["POSIX", "MPIIO", "HDF5", "NCMPI"]), default="POSIX", show_default=True)
@click.option("--collective", is_flag=True, help="Collective I/O (MPIIO)")
@click.option("--direct", is_flag=True, help="Bypass the page cache (O_DIRECT)")
@click.option("--fsync/--no-fsync", default=True, help="Count the fsync at the end of a write [--fsync]")
@click.option("--launcher", metavar="COMMAND", help="MPI launcher, such as 'srun -n {tasks}' [mpirun, mpiexec, srun]")
@study_options
def bench_ior(
    asked: StudyAsked,
    tasks: tuple[int, ...],
    sizes: tuple[int, ...],
    transfers: tuple[int, ...],
    files: str,
    stripe_counts: tuple[int, ...] | None,
    stripe_bytes: tuple[int, ...] | None,
    api: str,
    collective: bool,
    direct: bool,
    fsync: bool,
    launcher: str | None,
) -> int:
    """File per process against one shared file with IOR, over sizes, tasks and stripes; best of the repeats.

    On several nodes each task reads what one of another node wrote. On one node reads may come from memory: use files
    larger than it, or --direct.
    """
    from iolens.benchmarks.studies.ior_study import FILES, IorStudyParameters

    parameters = IorStudyParameters(
        tasks, sizes, transfers, FILES if files == "both" else (files,), stripe_counts, stripe_bytes, api, collective,
        direct, fsync, launcher,
    )  # fmt: skip
    return asked.run("ior", parameters)
