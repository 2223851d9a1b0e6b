"""Send a test notification to every receiver."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import format_option
from iolens.cli.shared_store_options import PATH
from iolens.cli.terminal_output import present, table_options


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
