"""The section `[alerts]` of the configuration: its keys, rules and receivers, all checked before anything is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args

from iolens.alerts.built_in import built_in_rules
from iolens.alerts.kinds import get_kind, kind_names
from iolens.alerts.quantities import EXAMPLES, parse_quantity
from iolens.alerts.receivers import Receiver, receiver_of
from iolens.alerts.results import Severity
from iolens.alerts.rule import AlertRule, KindOption, Option, RuleKind
from iolens.config import SECTIONS, TEXT, TEXTS, TRUTH, Config, checked_section, parsed_value
from iolens.errors import InputError
from iolens.units import DAY_S, parse_duration, parse_rate

NO_FILE: Final = Path("configuration")
SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
RULE_KEYS: Final = {
    "name": TEXT, "kind": TEXT, "filesystem": TEXT, "subject": TEXT, "above": TEXT, "below": TEXT, "clear": TEXT,
    "window": TEXT, "for": TEXT, "clear_for": TEXT, "severity": TEXT, "receivers": TEXTS, "repeat": TEXT,
    "optional": TRUTH,
}  # fmt: skip


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
    _check_names(path, "receivers", [receiver.name for receiver in receivers])
    rules = [_rule(path, section, {receiver.name for receiver in receivers}) for section in values.get("rules", ())]
    _check_names(path, "rules", [rule.name for rule in rules])
    durations = {"every_s": "every", "give_up_s": "give_up_after"}
    given = {name: _duration(path, f"alerts.{key}", values[key]) for name, key in durations.items() if key in values}
    link = _link(path, values["link"]) if "link" in values else None
    by_name = {receiver.name: receiver for receiver in receivers}
    return AlertSettings(tuple(rules or built_in_rules()), by_name, **given, link=link, is_built_in=not rules)


def _check_names(path: Path, section: str, names: Sequence[str]) -> None:
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(str(path), f"two [[alerts.{section}]] have the name {repeated[0]!r}", "a name for each")


def _rule(path: Path, section: Mapping[str, Any], receivers: set[str]) -> AlertRule:
    where = "alerts.rules"
    name, kind = (_needed(path, where, section, key) for key in ("name", "kind"))
    if kind not in kind_names():
        raise InputError(str(path), f"{where}: {kind!r} is no kind of rule", f"one of {', '.join(kind_names())}")
    where, chosen = f"alerts.rules {name!r}", get_kind(kind)
    own = {key: TEXTS if option.unit == "words" else TEXT for key, option in chosen.options.items()}
    values = checked_section(path, where, section, RULE_KEYS | own)
    threshold, clear = _thresholds(path, where, values, chosen)
    chosen_receivers = values.get("receivers")
    if lost := [name for name in chosen_receivers or () if name not in receivers]:
        raise InputError(
            str(path), f"{where}: no receiver is called {lost[0]!r}", "the name of an [[alerts.receivers]]"
        )
    durations = {"window": chosen.window_s, "for": chosen.for_s, "clear_for": chosen.clear_for_s, "repeat": None}
    lengths = {
        f"{key}_s": _duration(path, f"{where}.{key}", values[key], least=key in ("window", "repeat"))
        if key in values
        else default
        for key, default in durations.items()
    }
    return AlertRule(
        name=name,
        kind=chosen,
        threshold=threshold,
        clear=clear,
        severity=_severity(path, where, values.get("severity", chosen.severity)),
        filesystem=values.get("filesystem", "*"),
        subject=values.get("subject", "*"),
        receivers=None if chosen_receivers is None else tuple(chosen_receivers),
        optional=values.get("optional", False),
        options={key: _option(path, f"{where}.{key}", values, key, form) for key, form in chosen.options.items()},
        **lengths,  # type: ignore[arg-type]
    )


def _needed(path: Path, where: str, section: Mapping[str, Any], key: str) -> str:
    value = section.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(str(path), f"[[{where}]] lacks {key}", "a text in quotes")
    return value


def _thresholds(path: Path, where: str, values: Mapping[str, Any], kind: RuleKind) -> tuple[float, float]:
    """The threshold and the level at which an alert ends: without one, as far away as that of the kind."""
    right, wrong = ("below", "above") if kind.is_below else ("above", "below")
    if wrong in values:
        raise InputError(str(path), f"{where}: {kind.name} has no {wrong}", f'{right} = "{EXAMPLES[kind.unit]}"')
    if right not in values and "clear" not in values:
        return kind.threshold, kind.clear
    read = {
        key: parsed_value(path, f"{where}.{key}", values[key], lambda text: parse_quantity(text, kind.unit))
        for key in (right, "clear")
        if key in values
    }
    threshold = read.get(right, kind.threshold)
    clear = read.get("clear", threshold * kind.clear / kind.threshold)
    if threshold <= 0 or (clear < threshold if kind.is_below else clear > threshold):
        expected = f"clear at {'or above' if kind.is_below else 'or below'} {right}, both above zero"
        raise InputError(
            str(path), f"{where}: {right} = {threshold:g} and clear = {clear:g} leave no way back", expected
        )
    return threshold, clear


def _severity(path: Path, where: str, text: str) -> Severity:
    for severity in SEVERITIES:
        if severity == text:
            return severity
    raise InputError(str(path), f"{where}: severity = {text!r}", f"one of {', '.join(SEVERITIES)}")


def _option(path: Path, where: str, values: Mapping[str, Any], key: str, form: KindOption) -> Option:
    if key not in values:
        return form.default
    if form.unit == "words":
        if not values[key] or (unknown := [word for word in values[key] if word not in form.words]):
            problem = f"{where} = {values[key] and unknown[0]!r}"
            raise InputError(str(path), problem, f"some of {', '.join(form.words)}")
        return tuple(values[key])
    unit = form.unit
    if unit == "rate":
        return parsed_value(path, where, values[key], parse_rate)
    return parsed_value(path, where, values[key], lambda text: parse_quantity(text, unit))


def _duration(path: Path, where: str, text: str, least: bool = True) -> float:
    seconds = parsed_value(path, where, text, parse_duration)
    if seconds < (1 if least else 0):
        raise InputError(str(path), f"{where} = {text!r} is too short", "a duration of a second or more, such as 5min")
    return seconds


def _link(path: Path, text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise InputError(str(path), f"alerts.link = {text!r} is no address", 'such as "https://iolens.example.org"')
    return text.rstrip("/")
