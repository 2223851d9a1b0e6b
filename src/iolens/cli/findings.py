"""`iolens findings`: what the rules look for, and what each means."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb, verb_group
from iolens.cli.output_options import format_option

# What iolens can notice: rules, thresholds, what to do ----------------------------------------------------------------


@verb_group("findings", "What iolens can notice: rules, thresholds, what to do")
def findings() -> None:
    """What iolens can notice: the rules, their thresholds, and what to do."""


# All rules, one line each ---------------------------------------------------------------------------------------------


@verb("findings list", "All rules, one line each", epilog="Example: iolens findings list")
@format_option("table", "json")
@click.option("--config", metavar="FILE", help="Configuration file [$IOLENS_CONFIG, ./iolens.toml, /etc/iolens.toml]")
def findings_list(format_: str, config: str | None) -> None:
    """All rules, with the thresholds in force."""
    import json

    from iolens.config import load_config
    from iolens.findings import checked_thresholds, get_rule, rule_codes

    known = load_config(config)
    configured = checked_thresholds(known.findings, str(known.path))
    rules = [
        {
            "code": code,
            "severity": (rule := get_rule(code)).severity,
            "condition": rule.stated_condition(configured.get(code, {})),
            "inputs": list(rule.inputs),
            "thresholds": {**rule.thresholds, **configured.get(code, {})},
        }
        for code in rule_codes()
    ]
    if format_ == "json":
        click.echo(json.dumps(rules, indent=2))
        return
    for rule_line in rules:
        click.echo(f"{rule_line['code']:18}{rule_line['severity']:6}{rule_line['condition']}")


# One rule: when it speaks, what it needs, what to do ------------------------------------------------------------------


@verb(
    "findings explain",
    "One rule: when it speaks, what it needs, what to do",
    epilog="Example: iolens findings explain small-rpcs",
)
@click.argument("code")
@click.option("--config", metavar="FILE", help="Configuration file [$IOLENS_CONFIG, ./iolens.toml, /etc/iolens.toml]")
def findings_explain(code: str, config: str | None) -> None:
    """When the rule CODE speaks, what it needs, its thresholds, and what to do."""
    from iolens.config import load_config
    from iolens.findings import checked_thresholds, get_rule
    from iolens.findings.rule import INPUTS

    known = load_config(config)
    configured = checked_thresholds(known.findings, str(known.path)).get(code, {})
    rule = get_rule(code)
    click.echo(f"{rule.code} ({rule.severity}): {rule.title}")
    click.echo(f"\nWhen: {rule.stated_condition(configured)}.")
    click.echo(f"\nWhat to do: {rule.general_remedy}")
    click.echo(f"\nReference: {rule.reference}")
    click.echo("\nNeeds:")
    for name in rule.inputs:
        click.echo(f"  {name:20}{INPUTS.get(name, '')}")
    click.echo(f"\nThresholds, in [findings.{rule.code}] of the configuration:")
    for name, default in rule.thresholds.items():
        given = f" (default {default:g})" if name in configured else ""
        click.echo(f"  {name} = {configured.get(name, default):g}{given}")
