"""Write a script of IOR runs that make the mix of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_synthesis_options import AskedModel, load_options, model_options

if TYPE_CHECKING:
    from iolens.benchmarks.synthetic_fio import TrafficBounds


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
