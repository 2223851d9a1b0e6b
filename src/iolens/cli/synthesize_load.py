"""Workloads as load for a new system: fio jobs, IOR scripts, acceptance suites, and running one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import format_option, output_option, present, progress, table_options
from iolens.cli.synthesize import AskedModel, fio_options, load_options, model_options
from iolens.cli.value_types import DURATION
from iolens.messages import say

if TYPE_CHECKING:
    from iolens.benchmarks.synthetic_fio import TrafficBounds


# Write fio job files that make the load of a model --------------------------------------------------------------------


@verb(
    "synthesize fio",
    "Write fio job files that make the load of a model",
    epilog="""\b
Examples:
  iolens synthesize fio --model spider --scale 0.1 --max-size 64GiB --max-time 10min --jobs 16 -o jobs
  DIR=/new/test fio jobs/layout.fio && DIR=/new/test fio jobs/workload.fio
""",
)
@fio_options
@model_options
@load_options
def synthesize_fio(asked: AskedModel, output: Path, bounds: TrafficBounds) -> list[Path]:
    """Write job files: one that lays the files out, one that runs the model's rates, mix, sizes and silences."""
    from iolens.benchmarks.synthetic_fio import write_fio

    return write_fio(asked.origin().model, output, bounds)


# Write a script of IOR runs that make the mix of a model --------------------------------------------------------------


@verb(
    "synthesize ior",
    "Write a script of IOR runs that make the mix of a model",
    epilog="""\b
Examples:
  iolens synthesize ior --model spider --jobs 16 -o ior
  DIR=/new/test LAUNCH='srun -n 16' sh ior/workload.sh > ior.txt
""",
)
@model_options
@load_options
def synthesize_ior(asked: AskedModel, output: Path, bounds: TrafficBounds) -> list[Path]:
    """Write a script with a run of writes and one of reads for every size, as many transfers as its share asks for."""
    from iolens.benchmarks.synthetic_ior import write_ior

    return write_ior(asked.origin().model, output, bounds)


# Write an acceptance suite: load of a model, with limits --------------------------------------------------------------


@verb(
    "synthesize acceptance",
    "Write an acceptance suite: load of a model, with limits",
    epilog="""\b
Examples:
  iolens synthesize acceptance --model spider --ssi 3 --scale 0.1 -o suite
  iolens acceptance suite /new/test                                           runs it
""",
)
@click.option("--percentile", type=float, default=95.0, show_default=True, help="Of demand, for the limits")
@click.option("--latency-limit", type=DURATION, metavar="TIME", help="99th percentile allowed [from the rate]")
@fio_options
@model_options
@load_options
def synthesize_acceptance(
    asked: AskedModel, output: Path, bounds: TrafficBounds, percentile: float, latency_limit: float | None
) -> list[Path]:
    """Write a suite that `iolens acceptance` runs and judges: fio jobs, an IOR script, limits to edit."""
    from iolens.benchmarks.acceptance import write_acceptance

    return write_acceptance(asked.origin().model, output, bounds, percentile, latency_limit)


# Run an acceptance suite on a storage system, judge and score ---------------------------------------------------------


@verb(
    "acceptance",
    "Run an acceptance suite on a storage system, judge and score",
    epilog="""\b
Examples:
  iolens acceptance suite /new-system/test
  iolens acceptance suite /new-system/test --format json -o outcome.json
  iolens synthesize acceptance --model spider --ssi 3 --scale 0.1 -o suite     makes such a suite
""",
)
@click.argument("suite", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.argument("place", type=click.Path(path_type=Path, file_okay=False, exists=True), metavar="DIR")
@click.option(
    "--results", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
    help="Directory for the output of the tools [results-TIME, in the suite]",
)  # fmt: skip
@format_option()
@output_option()
@table_options
def acceptance(suite: Path, place: Path, results: Path | None, format_: str, output: Path | None) -> int:
    """Run SUITE on DIR with fio, and with IOR where it is on PATH.

    Works in a new directory inside DIR, which is removed in any case. The exit code is 1 if a limit is exceeded or
    could not be measured.
    """
    import signal
    import time

    from iolens.benchmarks.acceptance import read_suite
    from iolens.benchmarks.acceptance_run import run_acceptance

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)  # a batch system's way to end us: clean up as for Ctrl-C
    try:
        with progress(len(read_suite(suite).steps) + 1, "testing") as step:
            said = step if sys.stderr.isatty() else say
            acceptance = run_acceptance(
                suite, place, results or suite / time.strftime("results-%Y%m%dT%H%M%SZ", time.gmtime()), said
            )
    finally:
        signal.signal(signal.SIGTERM, before)
    present(acceptance, format_, output, ())
    return 0 if acceptance.passed else 1
