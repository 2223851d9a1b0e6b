"""What applications did, by their Darshan logs."""

from __future__ import annotations

from iolens.cli.lazy_verbs import verb_group


@verb_group(
    "runs",
    "What applications did, by their Darshan logs",
    epilog="""\b
Examples:
  iolens ingest darshan /darshan-logs/2026/11/15
  iolens runs projects --from 2026-11-01
  iolens runs summary my.darshan
""",
)
def runs() -> None:
    """What applications did, by their Darshan logs.

    Load logs with `iolens ingest darshan` and the scheduler's records with `iolens ingest slurm`. Verbs that take a LOG
    need no store.
    """
