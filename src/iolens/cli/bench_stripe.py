"""Which stripe count, stripe size and block size to use."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_bench_options import COUNTS, SIZES, StudyAsked, study_options
from iolens.cli.value_types import BYTES


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
