"""`iolens alerts`: list and check them, silence them, send a test notification."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb, verb_group
from iolens.cli.options import timezone_option
from iolens.cli.output_options import format_option, present, table_options
from iolens.cli.serve import state_directory, state_options
from iolens.cli.shared_store_options import PATH
from iolens.cli.value_types import DURATION, TIME
from iolens.errors import OptionError

# Alerts: check rules, list and silence alerts, try the receivers ------------------------------------------------------


@verb_group("alerts", "Alerts: check rules, list and silence alerts, try the receivers")
def alerts() -> None:
    """Alerts from rules in the configuration: check them, list them, silence them, try the receivers."""


# Alerts now and over the last day, silences, and what was not delivered -----------------------------------------------


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


# Evaluate all rules once and send what is due -------------------------------------------------------------------------


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


# Do not send alerts of a rule for a while -----------------------------------------------------------------------------


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


# End a silence now ----------------------------------------------------------------------------------------------------


@verb("alerts unsilence", "End a silence now", epilog="Example: iolens alerts unsilence 3")
@click.argument("number", type=click.IntRange(1))
@state_options
def alerts_unsilence(number: int, state: Path | None, store: str | None, config: str | None) -> None:
    """End the silence NUMBER, as `iolens alerts list` shows it. What still fires is sent by the next check."""
    from iolens.api.alerts import remove_silence

    silence = remove_silence(state_directory(state, store, config), number)
    click.echo(f"silence {silence.id} of {silence.author} is over")


# Send a test notification to every receiver ---------------------------------------------------------------------------


@verb(
    "alerts test",
    "Send a test notification to every receiver",
    epilog="Example: iolens alerts test --config /etc/iolens.toml",
)
@click.option(
    "--config", metavar="FILE", type=PATH, help="Configuration file [$IOLENS_CONFIG, ./iolens.toml, /etc/iolens.toml]"
)
@format_option("table", "json")
@table_options
def alerts_test(config: str | None, format_: str) -> int:
    """Send a test notification to every receiver of the configuration; exit code 3 if one does not take it."""
    from iolens.api.alerts import try_receivers
    from iolens.config import load_config

    result = try_receivers(load_config(config))
    present(result, format_, None, ())
    return 3 if any(attempt.outcome != "delivered" for attempt in result.deliveries) else 0
