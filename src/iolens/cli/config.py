"""Show the configuration in force."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb, verb_group


@verb_group("config", "Show the configuration in force")
def config() -> None:
    """Look at the configuration."""


@verb(
    "config show",
    "Print where the configuration was found and every value in force",
    epilog="Example: iolens config show --config /etc/iolens.toml",
)
@click.option("--config", metavar="FILE", help="Configuration file [$IOLENS_CONFIG, ./iolens.toml, /etc/iolens.toml]")
def config_show(config: str | None) -> None:
    """Print where the configuration was found and every value in force."""
    from dataclasses import asdict

    from iolens.config import load_config

    result = load_config(config)
    click.echo(f"# {result.path or 'no configuration file: defaults'}")
    click.echo(f"store = {result.store_url()}")
    click.echo(f"state = {result.state_path()}")
    click.echo(f"engine = {result.engine}")
    for section in ("filesystems", "calibrations"):
        for name, part in getattr(result, section).items():
            click.echo(f"[{section}.{name}]")
            for key, value in asdict(part).items():
                click.echo(f"{key} = {value}")
    for section in ("thresholds", "agent", "devices"):
        click.echo(f"[{section}]")
        for key, value in asdict(getattr(result, section)).items():
            click.echo(f"{key} = {value}")
    sections = {f"sources.{name}": settings for name, settings in result.sources.items()}
    sections |= {f"findings.{code}": values for code, values in result.findings.items()}
    sections |= {name: getattr(result, name) for name in ("serve", "hub", "alerts") if getattr(result, name)}
    for section, settings in sections.items():
        click.echo(f"[{section}]")
        for key, value in settings.items():
            click.echo(f"{key} = {value}")
