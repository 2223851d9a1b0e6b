"""One rule: when it speaks, what it needs, what to do."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb


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
