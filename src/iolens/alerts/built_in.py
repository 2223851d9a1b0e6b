"""The rules that are in force where the configuration has none: one of each kind, with its defaults."""

from __future__ import annotations

from typing import Final

from iolens.alerts.kinds import get_kind
from iolens.alerts.rule import AlertRule, default_rule

KINDS: Final = (
    "silent-agent", "dead-target", "slow-target", "plateau", "fullness", "full-date", "drive-wear", "imbalance",
    "job-share", "fsu", "put-aside",
)  # fmt: skip
NEVER_OPTIONAL: Final = ("silent-agent",)  # a store that is no longer fed must not look fine


def built_in_rules() -> list[AlertRule]:
    """Optional ones are passed over where a store has no such data."""
    return [default_rule(name, get_kind(name), optional=name not in NEVER_OPTIONAL) for name in KINDS]
