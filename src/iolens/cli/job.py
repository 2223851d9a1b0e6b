"""What jobs did to the file systems, sampled at begin and end."""

from __future__ import annotations

from iolens.cli.lazy_verbs import verb_group


@verb_group(
    "job",
    "What jobs did to the file systems, sampled at begin and end",
    epilog="""\b
Example, in a batch script:
  iolens job begin --via srun
  srun ./simulation
  iolens job end --via srun
""",
)
def job() -> None:
    """What jobs did to the file systems.

    `begin` and `end` sample the Lustre clients of the nodes; `end` and `report` print what was moved in between.
    """
