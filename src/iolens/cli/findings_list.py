"""All rules, one line each."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import format_option


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
