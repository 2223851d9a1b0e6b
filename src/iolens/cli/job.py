"""What jobs did to the file systems, sampled at begin and end."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import LazyVerbs


@click.group(
    "job",
    cls=LazyVerbs,
    under="job",
    epilog="""\b
Example, in a batch script:
  iolens job begin --via srun
  srun ./simulation
  iolens job end --via srun
""",
)
def COMMAND() -> None:
    """What jobs did to the file systems.

    `begin` and `end` sample the Lustre clients of the nodes; `end` and `report` print what was moved in between.
    """
