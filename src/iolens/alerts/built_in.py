"""The rules that are in force where the configuration has none: one of each kind, with its defaults."""

from __future__ import annotations

from typing import Final

from iolens.alerts.kinds import get_kind
from iolens.alerts.rule import AlertRule

KINDS: Final = (
    "silent-agent", "dead-target", "slow-target", "plateau", "fullness", "full-date", "drive-wear", "imbalance",
    "job-share", "fsu",
)  # fmt: skip
NEVER_OPTIONAL: Final = ("silent-agent",)  # a store that is no longer fed must not look fine


def built_in_rules() -> list[AlertRule]:
    """Optional ones are passed over where a store has no such data."""
    rules = []
    for name in KINDS:
        kind = get_kind(name)
        rules.append(
            AlertRule(
                name=name,
                kind=kind,
                threshold=kind.threshold,
                clear=kind.clear,
                window_s=kind.window_s,
                for_s=kind.for_s,
                clear_for_s=kind.clear_for_s,
                severity=kind.severity,
                optional=name not in NEVER_OPTIONAL,
                options={key: option.default for key, option in kind.options.items()},
            )
        )
    return rules
