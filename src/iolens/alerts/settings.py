"""The section `[alerts]` of the configuration: its keys, rules and receivers, all checked before anything is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iolens.alerts.built_in import built_in_rules
from iolens.alerts.receivers import Receiver, receiver_of
from iolens.alerts.rule import AlertRule
from iolens.alerts.rule_section import duration_of, rule_of
from iolens.config import SECTIONS, TEXT, Config, checked_section
from iolens.errors import InputError
from iolens.units import DAY_S

NO_FILE: Final = Path("configuration")


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """All of it; `every_s` is how often a server checks, `link` the address of the dashboard."""

    rules: tuple[AlertRule, ...]
    receivers: Mapping[str, Receiver] = field(default_factory=dict)
    every_s: float = 300.0
    give_up_s: float = float(DAY_S)
    link: str | None = None
    is_built_in: bool = False

    def receivers_of(self, rule: AlertRule) -> list[str]:
        """Names of those that hear of it."""
        return list(self.receivers if rule.receivers is None else rule.receivers)


def alert_settings(config: Config) -> AlertSettings:
    """What the configuration says, or the built-in rules where it has none; InputError names the key that is wrong."""
    path = config.path or NO_FILE
    keys = {"every": TEXT, "link": TEXT, "give_up_after": TEXT, "rules": SECTIONS, "receivers": SECTIONS}
    values = checked_section(path, "alerts", config.alerts, keys)
    receivers = [receiver_of(path, section) for section in values.get("receivers", ())]
    names = [receiver.name for receiver in receivers]
    rules = [rule_of(path, section, names) for section in values.get("rules", ())]
    _check_names(path, "receivers", names)
    _check_names(path, "rules", [rule.name for rule in rules])
    durations = {"every_s": "every", "give_up_s": "give_up_after"}
    given = {name: duration_of(path, f"alerts.{key}", values[key]) for name, key in durations.items() if key in values}
    link = _link(path, values["link"]) if "link" in values else None
    by_name = dict(zip(names, receivers, strict=True))
    return AlertSettings(tuple(rules or built_in_rules()), by_name, **given, link=link, is_built_in=not rules)


def _check_names(path: Path, section: str, names: Sequence[str]) -> None:
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(str(path), f"two [[alerts.{section}]] have the name {repeated[0]!r}", "a name for each")


def _link(path: Path, text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise InputError(str(path), f"alerts.link = {text!r} is no address", 'such as "https://iolens.example.org"')
    return text.rstrip("/")
