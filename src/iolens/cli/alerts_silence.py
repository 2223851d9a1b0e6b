"""Do not send alerts of a rule for a while."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_state_options import state_options
from iolens.cli.shared_time_options import timezone_option
from iolens.cli.value_types import DURATION, TIME
from iolens.errors import OptionError


@verb(
    "alerts silence",
    "Do not send alerts of a rule for a while",
    epilog="""\b
Examples:
  iolens alerts silence dead-target --subject 'scratch-OST000[0-3]' --for 2h --comment "OSS 1 gets a new board"
  iolens alerts silence '*' --filesystem scratch2 --until 2026-02-01 --comment "being decommissioned"
""",
)
@click.argument("rule")
@click.option("--filesystem", "-f", default="*", metavar="PATTERN", help="Only alerts of these file systems")
@click.option("--subject", default="*", metavar="PATTERN", help="Only these targets, agents, drives or jobs")
@click.option("--for", "length", type=DURATION, metavar="TIME", help="How long, such as 2h")
@click.option("--until", type=TIME, metavar="TIME", help="Or until when")
@click.option("--comment", required=True, help="Why; `iolens alerts list` shows it")
@click.option("--author", help="Who [the user who runs this]")
@timezone_option("Zone of times shown and of those given without one, such as Europe/Berlin [UTC]")
@state_options
def alerts_silence(
    rule: str,
    filesystem: str,
    subject: str,
    length: float | None,
    until: datetime | None,
    comment: str,
    author: str | None,
    timezone: str | None,
    state: Path | None,
    store: str | None,
    config: str | None,
) -> None:
    """Do not send alerts of RULE (a name or a pattern such as 'scratch*') for a while.

    Their states still change. Those that fire when the silence ends are sent then.
    """
    from iolens.api.alerts import add_silence
    from iolens.config import load_config
    from iolens.times import present
    from iolens.units import iso

    if (length is None) == (until is None):
        raise OptionError("a silence needs an end: give --for or --until")
    known = load_config(config)
    end = until if until is not None else present() + timedelta(seconds=length or 0.0)
    silence = add_silence(
        known, known.state_path(state, store), rule, until=end, comment=comment, author=author,
        filesystem=filesystem, subject=subject,
    )  # fmt: skip
    click.echo(f"silence {silence.id} until {iso(silence.until)}")
