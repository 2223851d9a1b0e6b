"""`iolens bench KIND`: each kind of study with its own options."""

from __future__ import annotations

import click

from iolens.cli.bench import COUNTS, SIZES, StudyAsked, run_options, study_options
from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import present
from iolens.cli.value_types import BYTES, KindType
from iolens.question import quantity
from iolens.units import parse_bytes

# One process writes and reads a file, by block and stripe size --------------------------------------------------------


@verb(
    "bench sequential",
    "One process writes and reads a file, by block and stripe size",
    epilog="""\b
Examples:
  iolens bench sequential /scratch/test --size 8GiB --blocks 4KiB,64KiB,1MiB
  iolens bench sequential nfs=/home/me lustre=/scratch/me --dry-run
  iolens bench sequential /scratch/test --stripe-count 1,16 --stripe-size 1MiB,32MiB --store centre
""",
)
@click.option("--size", "file_bytes", type=BYTES, default="1GiB", show_default=True, help="Size of the file")
@click.option("--blocks", type=SIZES, metavar="LIST", help="Bytes of each call [4KiB to 16MiB by powers of two]")
@click.option("--stripe-count", "stripe_counts", type=COUNTS, metavar="LIST", help="Stripe counts (Lustre)")
@click.option("--stripe-size", "stripe_bytes", type=SIZES, metavar="LIST", help="Stripe sizes (Lustre)")
@click.option("--direct", is_flag=True, help="Bypass the page cache (O_DIRECT)")
@click.option("--fsync/--no-fsync", default=True, help="Count the fsync at the end of a write [--fsync]")
@study_options
def bench_sequential(
    asked: StudyAsked,
    file_bytes: int,
    blocks: tuple[int, ...] | None,
    stripe_counts: tuple[int, ...] | None,
    stripe_bytes: tuple[int, ...] | None,
    direct: bool,
    fsync: bool,
) -> int:
    """One process writes and reads a file from beginning to end, over block sizes, stripe sizes and stripe counts.

    Before it is read the file is dropped from the page cache. Several places are measured in turn and compared with
    the first.
    """
    from iolens.benchmarks.studies.sequential_study import BLOCKS, SequentialParameters

    parameters = SequentialParameters(file_bytes, blocks or BLOCKS, stripe_counts, stripe_bytes, direct, fsync)
    return asked.run("sequential", parameters)


# File per process against one shared file, with IOR -------------------------------------------------------------------


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


# System calls behind 8-byte writes and reads, with strace -------------------------------------------------------------


@verb(
    "bench latency",
    "System calls behind 8-byte writes and reads, with strace",
    epilog="""\b
Examples:
  iolens bench latency nfs=/home/me lustre=/scratch/me
  iolens bench latency /scratch/me --files 1000 --tracer loop
""",
)
@click.option("--bytes", "transfer_bytes", type=BYTES, default="8", show_default=True, help="Written and read at once")
@click.option(
    "--files", "operations", type=click.IntRange(1), default=200, show_default=True, help="Small files of each pass"
)
@click.option(
    "--tracer", type=click.Choice(["auto", "strace", "loop"]), default="auto", show_default=True,
    help="What times the calls: strace, or a loop of our own where it cannot",
)  # fmt: skip
@click.option("--drop-cache/--keep-cache", default=True, help="Drop each file from the page cache before it is read")
@study_options
def bench_latency(asked: StudyAsked, transfer_bytes: int, operations: int, tracer: str, drop_cache: bool) -> int:
    """Mean, median and 99th percentile of every system call behind a small write and a small read.

    Several places are compared with the first, call by call.
    """
    from iolens.benchmarks.studies.latency_study import LatencyParameters

    return asked.run("latency", LatencyParameters(transfer_bytes, operations, tracer, drop_cache))


# A file that fits into memory and one that does not -------------------------------------------------------------------

NO_LIMIT = 0
MEMORY = KindType(quantity("bytes", lambda text: NO_LIMIT if text == "none" else parse_bytes(text)))


@verb(
    "bench cache",
    "A file that fits into memory and one that does not",
    epilog="""\b
Examples:
  iolens bench cache /scratch/test
  iolens bench cache nfs=/home/me lustre=/scratch/me --memory 2GiB
  iolens bench cache /scratch/test --memory none --small 8GiB --large 56GiB
""",
)
@click.option(
    "--memory", type=MEMORY, default="512MiB", show_default=True, metavar="SIZE",
    help="Limit memory by a control group; none: that of the machine counts",
)  # fmt: skip
@click.option("--small", "small_bytes", type=BYTES, metavar="SIZE", help="The file that fits [a quarter of memory]")
@click.option("--large", "large_bytes", type=BYTES, metavar="SIZE", help="The file that does not [three times memory]")
@click.option("--block", "block_bytes", type=BYTES, default="1MiB", show_default=True, help="Bytes of each call")
@study_options
def bench_cache(
    asked: StudyAsked, memory: int, small_bytes: int | None, large_bytes: int | None, block_bytes: int
) -> int:
    """Bandwidth of a file that fits into memory and one that does not, and what that says of reads and writes.

    Each is written, synced, read twice, dropped from the page cache and read again.
    """
    from iolens.benchmarks.studies.cache_study import CacheParameters

    return asked.run("cache", CacheParameters(memory or None, small_bytes, large_bytes, block_bytes))


# Which stripe count, stripe size and block size to use ----------------------------------------------------------------


@verb(
    "bench stripe",
    "Which stripe count, stripe size and block size to use",
    epilog="""\b
Examples:
  iolens bench stripe /scratch/test --size 8GiB
  iolens bench stripe /scratch/test --stripe-count 1,4,16 --stripe-size 1MiB,32MiB --blocks 1MiB --dry-run
""",
)
@click.option("--size", "file_bytes", type=BYTES, default="1GiB", show_default=True, help="Size of the file")
@click.option(
    "--stripe-count",
    "stripe_counts",
    type=COUNTS,
    default="1,2,4,8,16",
    show_default=True,
    metavar="LIST",
    help="Stripe counts",
)
@click.option(
    "--stripe-size",
    "stripe_bytes",
    type=SIZES,
    default="1MiB,4MiB,16MiB",
    show_default=True,
    metavar="LIST",
    help="Stripe sizes",
)
@click.option(
    "--blocks",
    type=SIZES,
    default="64KiB,1MiB,4MiB,16MiB",
    show_default=True,
    metavar="LIST",
    help="Bytes of each call",
)
@click.option("--direct", is_flag=True, help="Bypass the page cache (O_DIRECT)")
@click.option("--fsync/--no-fsync", default=True, help="Count the fsync at the end of a write [--fsync]")
@study_options
def bench_stripe(
    asked: StudyAsked,
    file_bytes: int,
    stripe_counts: tuple[int, ...],
    stripe_bytes: tuple[int, ...],
    blocks: tuple[int, ...],
    direct: bool,
    fsync: bool,
) -> int:
    """Recommend stripe count, stripe size and block size from a measured grid, and say how flat it is.

    Where there is no Lustre only blocks are varied.
    """
    from iolens.benchmarks.studies.stripe_study import StripeStudyParameters

    return asked.run("stripe", StripeStudyParameters(file_bytes, stripe_counts, stripe_bytes, blocks, direct, fsync))


# Rates of metadata operations, with mdtest ----------------------------------------------------------------------------


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


# The IOR runs that imitate a job --------------------------------------------------------------------------------------

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
