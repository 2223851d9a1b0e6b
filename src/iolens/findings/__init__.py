"""Rules that say what is wrong and what to do: code, thresholds, evidence, message, remedy and reference.

A module below this package that defines `RULE` is a rule, and so is what another package registers under
`iolens.findings`. A rule reads named inputs, whatever analysis measured them; `evaluate` asks every rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from iolens.errors import InputError, UsageError
from iolens.findings.importance import SEVERITIES as SEVERITIES
from iolens.findings.importance import in_order, is_worth_a_word
from iolens.findings.rule import Evaluation, Finding, FindingRule, Inputs, NotEvaluated
from iolens.registry import RegisteredObject, load, registered

Thresholds = Mapping[str, Mapping[str, float]]  # by rule, those that the configuration sets


def rule_codes() -> list[str]:
    """Codes of all rules."""
    return list(_registered())


def get_rule(code: str) -> FindingRule:
    """The rule of that code."""
    if code not in _registered():
        raise UsageError(f"no finding is called {code!r}; there are: {', '.join(rule_codes())}")
    rule: FindingRule = load(_registered()[code])
    return rule


def checked_thresholds(configured: Thresholds, place: str) -> Thresholds:
    """Thresholds of the configuration, or an error that names the rule or the threshold that there is not."""
    for code, values in configured.items():
        if code not in _registered():
            raise InputError(place, f"unknown section findings.{code}", f"one of {', '.join(rule_codes())}")
        known = get_rule(code).thresholds
        for name in values:
            if name not in known:
                raise InputError(place, f"unknown key findings.{code}.{name}", f"one of {', '.join(known)}")
    return configured


def evaluate(inputs: Inputs, thresholds: Thresholds | None = None, codes: Iterable[str] | None = None) -> Evaluation:
    """Ask every rule (or those of `codes`): what was noticed, in order of importance, and what was not judged and why.

    What is about too small a part of the run is left out.
    """
    noticed: list[Finding] = []
    not_evaluated: list[NotEvaluated] = []
    for code in rule_codes() if codes is None else codes:
        rule = get_rule(code)
        missing = [name for name in rule.inputs if inputs.get(name) is None]
        if missing:
            not_evaluated.append(NotEvaluated(code, tuple(missing), rule.missing_reason(missing)))
        elif rule.not_judged is not None and (reason := rule.not_judged(inputs)):
            not_evaluated.append(NotEvaluated(code, (), reason))
        else:
            all_noticed = rule.noticed(inputs, (thresholds or {}).get(code, {}))
            noticed += [finding for finding, part in all_noticed if is_worth_a_word(part, inputs)]
    return Evaluation(tuple(in_order(noticed, inputs)), tuple(not_evaluated))


def _registered() -> dict[str, RegisteredObject]:
    return registered("iolens.findings", "RULE", "iolens.findings")
