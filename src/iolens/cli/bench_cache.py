"""A file that fits into memory and one that does not."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_bench_options import StudyAsked, study_options
from iolens.cli.value_types import BYTES, KindType
from iolens.question import quantity
from iolens.units import parse_bytes

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
