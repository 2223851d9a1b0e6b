"""Write fio job files that make the load of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_synthesis_options import AskedModel, fio_options, load_options, model_options

if TYPE_CHECKING:
    from iolens.benchmarks.synthetic_fio import TrafficBounds


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
