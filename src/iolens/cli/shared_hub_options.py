"""Options of verbs that push to a hub: its address, the file of the token, and the certificates to trust."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from iolens.agent.sampling.hub_client import HubAddress
    from iolens.config import AgentConfig


def hub_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --hub, --hub-token-file and --hub-ca."""
    options = (
        click.option(
            "--hub", metavar="URL", show_default="[agent] hub of the configuration",
            help="Push segments to this `iolens serve` instead of the store",
        ),
        click.option(
            "--hub-token-file", type=click.Path(path_type=Path), metavar="FILE", show_default="$IOLENS_HUB_TOKEN",
            help="Holds the token for the hub; readable by its owner only",
        ),
        click.option(
            "--hub-ca", type=click.Path(path_type=Path), metavar="FILE", show_default="the system's",
            help="Certificates (PEM) to trust for the hub",
        ),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def known_hub(config: AgentConfig, url: str | None, token_file: Path | None, ca_file: Path | None) -> HubAddress | None:
    """The hub as the options say, else the configuration; None where neither names one."""
    from iolens.agent.sampling.hub_client import HubAddress

    if (chosen := url or config.hub) is None:
        return None
    return HubAddress.of(chosen, token_file or config.hub_token_file, ca_file or config.hub_ca)
