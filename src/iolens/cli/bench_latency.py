"""System calls behind 8-byte writes and reads, with strace."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_bench_options import StudyAsked, study_options
from iolens.cli.value_types import BYTES


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
