"""Size the next system from what a reference system shows."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import LazyVerbs


@click.group("plan", cls=LazyVerbs, under="plan")
def COMMAND() -> None:
    """Size the next storage system from the telemetry of a reference system.

    Every input comes from the store or from an option; every answer says where its inputs come from and how sure it is.
    """
