"""The sections `[alerts]` and `[[alerts.rules]]` of the configuration, and the rules in force without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, get_args

from iolens.alerts.kinds import get_kind, kind_names
from iolens.alerts.receivers import Receiver, receiver_of
from iolens.alerts.results import EXAMPLES, Severity, parse_quantity
from iolens.alerts.rule import AlertRule, Option, RuleKind, default_rule
from iolens.config import SECTIONS, TEXT, TEXTS, TRUTH, Config, checked_section, parsed_value
from iolens.errors import InputError
from iolens.units import DAY_S, parse_duration, parse_rate

# A section `[[alerts.rules]]` of the configuration --------------------------------------------------------------------
# The defaults of its kind, and what it says in place of them.

SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
RULE_KEYS: Final = {
    "name": TEXT, "kind": TEXT, "filesystem": TEXT, "subject": TEXT, "above": TEXT, "below": TEXT, "clear": TEXT,
    "window": TEXT, "for": TEXT, "clear_for": TEXT, "severity": TEXT, "receivers": TEXTS, "repeat": TEXT,
    "optional": TRUTH,
}  # fmt: skip


def rule_of(path: Path, section: Mapping[str, Any], receivers: Collection[str]) -> AlertRule:
    """The rule of a section; InputError names the key that is wrong. `receivers` are the names that there are."""
    name, kind = (_needed(path, section, key) for key in ("name", "kind"))
    where = f"alerts.rules {name!r}"
    if kind not in kind_names():
        raise InputError(str(path), f"{where}: {kind!r} is no kind of rule", f"one of {', '.join(kind_names())}")
    chosen = get_kind(kind)
    own = {key: TEXTS if option.unit == "words" else TEXT for key, option in chosen.options.items()}
    return _RuleSection(path, where, chosen, checked_section(path, where, section, RULE_KEYS | own)).rule(receivers)


def duration_of(path: Path, where: str, text: str, least_s: float = 1.0) -> float:
    """Seconds of a duration that may not be shorter than that."""
    seconds = parsed_value(path, where, text, parse_duration)
    if seconds < least_s:
        raise InputError(str(path), f"{where} = {text!r} is too short", "a duration of a second or more, such as 5min")
    return seconds


def _needed(path: Path, section: Mapping[str, Any], key: str) -> str:
    value = section.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(str(path), f"[[alerts.rules]] lacks {key}", "a text in quotes")
    return value


@dataclass(frozen=True, slots=True)
class _RuleSection:
    """A section whose keys are known."""

    path: Path
    where: str
    kind: RuleKind
    values: Mapping[str, Any]

    def rule(self, receivers: Collection[str]) -> AlertRule:
        """With everything that the section says."""
        given: dict[str, Any] = {
            key: self.values[key] for key in ("filesystem", "subject", "optional") if key in self.values
        }
        durations = {"window": 1.0, "for": 0.0, "clear_for": 0.0, "repeat": 1.0}  # with the shortest that makes sense
        given |= {
            f"{key}_s": duration_of(self.path, f"{self.where}.{key}", self.values[key], least)
            for key, least in durations.items()
            if key in self.values
        }
        threshold, clear = self._thresholds()
        return replace(
            default_rule(self.values["name"], self.kind),
            threshold=threshold,
            clear=clear,
            severity=self._severity(),
            receivers=self._receivers(receivers),
            options={key: self._option(key) for key in self.kind.options},
            **given,
        )

    def _refuse(self, problem: str, expected: str) -> InputError:
        return InputError(str(self.path), f"{self.where}{problem}", expected)

    def _thresholds(self) -> tuple[float, float]:
        """The threshold and the level at which an alert ends: without one, in proportion to that of the kind."""
        kind, (right, wrong) = self.kind, ("below", "above") if self.kind.is_below else ("above", "below")
        if wrong in self.values:
            raise self._refuse(f": {kind.name} has no {wrong}", f'{right} = "{EXAMPLES[kind.unit]}"')
        threshold = self._quantity(right, kind.threshold)
        clear = self._quantity("clear", threshold * kind.clear / kind.threshold)
        if threshold <= 0 or (clear < threshold if kind.is_below else clear > threshold):
            expected = f"clear at {'or above' if kind.is_below else 'or below'} {right}, both above zero"
            raise self._refuse(f": {right} = {threshold:g} and clear = {clear:g} leave no way back", expected)
        return threshold, clear

    def _quantity(self, key: str, default: float) -> float:
        if key not in self.values:
            return default
        unit = self.kind.unit
        return parsed_value(self.path, f"{self.where}.{key}", self.values[key], lambda text: parse_quantity(text, unit))

    def _severity(self) -> Severity:
        wanted = self.values.get("severity", self.kind.severity)
        for severity in SEVERITIES:
            if severity == wanted:
                return severity
        raise self._refuse(f": severity = {wanted!r}", f"one of {', '.join(SEVERITIES)}")

    def _receivers(self, known: Collection[str]) -> tuple[str, ...] | None:
        names = self.values.get("receivers")
        if lost := [name for name in names or () if name not in known]:
            raise self._refuse(f": no receiver is called {lost[0]!r}", "the name of an [[alerts.receivers]]")
        return None if names is None else tuple(names)

    def _option(self, key: str) -> Option:
        """A key of the kind's own."""
        form, where = self.kind.options[key], f"{self.where}.{key}"
        if key not in self.values:
            return form.default
        value, unit = self.values[key], form.unit
        if unit == "words":
            if not value or (lost := [word for word in value if word not in form.words]):
                raise self._refuse(f".{key} = {value and lost[0]!r}", f"some of {', '.join(form.words)}")
            return tuple(value)
        if unit == "rate":
            return parsed_value(self.path, where, value, parse_rate)
        return parsed_value(self.path, where, value, lambda text: parse_quantity(text, unit))


# The rules that are in force where the configuration has none ---------------------------------------------------------
# One of each kind, with its defaults.

KINDS: Final = (
    "silent-agent", "dead-target", "slow-target", "plateau", "fullness", "full-date", "drive-wear", "imbalance",
    "job-share", "fsu", "put-aside",
)  # fmt: skip
NEVER_OPTIONAL: Final = ("silent-agent",)  # a store that is no longer fed must not look fine


def built_in_rules() -> list[AlertRule]:
    """Optional ones are passed over where a store has no such data."""
    return [default_rule(name, get_kind(name), optional=name not in NEVER_OPTIONAL) for name in KINDS]


# The section `[alerts]` of the configuration --------------------------------------------------------------------------
# Its keys, rules and receivers, all checked before anything is asked.

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
