"""Evaluate all rules once and send what is due."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import format_option
from iolens.cli.shared_state_options import state_options
from iolens.cli.shared_time_options import timezone_option
from iolens.cli.terminal_output import present, table_options
from iolens.cli.value_types import TIME


@verb(
    "alerts check",
    "Evaluate all rules once and send what is due",
    epilog="""\b
Examples:
  iolens alerts check --store centre
  iolens alerts check --store centre --dry-run --now 2026-01-05T15:00

\b
Exit codes:
  0  no alert fires
  1  the configuration or the store is wrong
  2  wrong usage
  3  no alert fires, but a rule could not be evaluated or a notification not delivered
  4  at least one alert fires
""",
)
@state_options
@click.option("--now", type=TIME, metavar="TIME", help="Check as of this time, for tests and replay [the clock's time]")
@click.option("--dry-run", is_flag=True, help="Only evaluate: change no state, send nothing")
@timezone_option("Zone of times shown and of those given without one, such as Europe/Berlin [UTC]")
@format_option("table", "json")
@table_options
def alerts_check(
    state: Path | None,
    store: str | None,
    config: str | None,
    now: datetime | None,
    dry_run: bool,
    timezone: str | None,
    format_: str,
) -> int:
    """Evaluate all rules, change the states of alerts, and send notifications; for cron or a timer.

    Two checks never run at once: the second waits for the first. What a receiver does not take is sent again by later
    checks.
    """
    from iolens.api import OpenStore
    from iolens.api.alerts import check_alerts

    with OpenStore(store, config=config) as opened:
        opened.store.check_that_it_exists()
        result = check_alerts(opened, opened.config.state_path(state, store), now, dry_run=dry_run)
    present(result, format_, None, ())
    return result.exit_code
