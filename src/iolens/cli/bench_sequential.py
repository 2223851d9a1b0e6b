"""One process writes and reads a file, by block and stripe size."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_bench_options import COUNTS, SIZES, StudyAsked, study_options
from iolens.cli.value_types import BYTES


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
