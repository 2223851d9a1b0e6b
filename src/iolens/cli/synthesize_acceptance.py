"""Write an acceptance suite: load of a model, with limits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_synthesis_options import AskedModel, fio_options, load_options, model_options
from iolens.cli.value_types import DURATION

if TYPE_CHECKING:
    from iolens.benchmarks.synthetic_fio import TrafficBounds


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
