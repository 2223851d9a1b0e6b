"""Size the next system from what a reference system shows."""

from __future__ import annotations

from iolens.cli.lazy_verbs import verb_group


@verb_group("plan", "Size the next system from what a reference system shows")
def plan() -> None:
    """Size the next storage system from the telemetry of a reference system.

    Every input comes from the store or from an option; every answer says where its inputs come from and how sure it is.
    """
