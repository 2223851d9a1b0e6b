"""Alerts now and over the last day, silences, and what was not delivered."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import format_option
from iolens.cli.shared_state_options import state_options
from iolens.cli.shared_time_options import timezone_option
from iolens.cli.terminal_output import present, table_options
from iolens.cli.value_types import DURATION, TIME


@verb(
    "alerts list",
    "Alerts now and over the last day, silences, and what was not delivered",
    epilog="""\b
Examples:
  iolens alerts list
  iolens alerts list --rules
  iolens alerts list --last 7d --format json
""",
)
@state_options
@click.option("--rules", is_flag=True, help="The rules in force instead, with all their settings")
@click.option(
    "--last", type=DURATION, metavar="TIME", default="1d", show_default=True, help="Resolved alerts since then"
)
@click.option("--filesystem", "-f", metavar="NAME", help="Only alerts of this file system")
@click.option("--now", type=TIME, metavar="TIME", help="List as of this time [the clock's time]")
@timezone_option("Zone of times shown and of those given without one, such as Europe/Berlin [UTC]")
@format_option("table", "json")
@table_options
def alerts_list(
    state: Path | None,
    store: str | None,
    config: str | None,
    rules: bool,
    last: float,
    filesystem: str | None,
    now: datetime | None,
    timezone: str | None,
    format_: str,
) -> None:
    """Pending and firing alerts, those resolved lately, silences, and notifications that were not delivered.

    Nothing is evaluated: this is the state that the last check left.
    """
    from iolens.api.alerts import alert_list, rule_list
    from iolens.config import load_config

    known = load_config(config)
    place = known.state_path(state, store)
    result = rule_list(known) if rules else alert_list(known, place, now, last, filesystem)
    present(result, format_, None, ())
