"""What the agent does: as options say, else the configuration, else the defaults."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from iolens.agent.sampling.collector import AgentSettings
from iolens.agent.sampling.hub_address import HubAddress
from iolens.config import AgentConfig, Config
from iolens.errors import OptionError
from iolens.sources.lustre import lustre_client_proc

SHORTEST_INTERVAL_S: Final = 0.05
DEFAULT_ROOT: Final = Path("/")
DEFAULT_SPOOL: Final = Path("/var/spool/iolens")


def agent_settings(
    config: Config, given: AgentConfig, url: str | None, hub: HubAddress | None, duration_s: float | None
) -> AgentSettings:
    """The settings; `url` is where segments go, `hub` says how where that is a hub."""
    stated = {**_known(config.agent), **_known(given)}
    settings = AgentSettings(
        Path(stated.pop("root", DEFAULT_ROOT)),
        Path(stated.pop("spool", DEFAULT_SPOOL)),
        url,
        duration_s=duration_s,
        device_rule=config.devices,
        client=config.sources.get(lustre_client_proc.NAME, {}),
        hub=hub,
        **stated,
    )
    others = (settings.slow_interval_s, settings.ship_every_s, settings.device_interval_s)
    if settings.interval_s < SHORTEST_INTERVAL_S or any(other is not None and other <= 0 for other in others):
        raise OptionError(f"intervals are above zero, --interval at least {SHORTEST_INTERVAL_S} s")
    return replace(settings, slow_interval_s=max(settings.slow_interval_s, settings.interval_s))


def _known(part: AgentConfig) -> dict[str, Any]:
    names = (field.name for field in fields(part) if not field.name.startswith("hub"))
    return {name: value for name in names if (value := getattr(part, name)) is not None}
