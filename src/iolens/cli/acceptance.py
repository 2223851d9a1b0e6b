"""Run an acceptance suite on a storage system, judge and score."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import format_option, output_option
from iolens.cli.terminal_output import present, progress, table_options
from iolens.messages import say


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
