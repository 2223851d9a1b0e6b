"""Say what can be read on this machine, as which user, and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.options import store_options

if TYPE_CHECKING:
    from iolens.agent.doctor import Diagnosis

SHOWN_TARGETS = 40


@click.command(
    "doctor",
    epilog="""\b
Examples:
  iolens doctor                                  this machine
  iolens doctor --root /copy/of/a/server --format json
""",
)
@click.option(
    "--root", type=click.Path(path_type=Path), default=Path("/"), show_default=True, help="Where /proc and /sys are"
)
@click.option(
    "--spool", type=click.Path(path_type=Path, file_okay=False), default=Path("/var/spool/iolens"), show_default=True,
    help="The spool of `iolens collect`",
)  # fmt: skip
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
@store_options
def COMMAND(root: Path, spool: Path, format_: str, store: str | None, config: str | None) -> int:
    """Look at everything `iolens collect` needs and say what is missing and what to do.

    Exit code: 0 all good, 3 something is missing, 1 nothing to sample here.
    """
    from iolens.agent.doctor import diagnose
    from iolens.config import load_config

    found = diagnose(root, load_config(config).store_url(store), spool)
    if format_ == "json":
        import json
        from dataclasses import asdict

        click.echo(json.dumps({**asdict(found), "exit_code": found.exit_code}, indent=2))
    else:
        _show(found)
    return found.exit_code


def _show(found: Diagnosis) -> None:
    click.echo(f"{found.root} as {found.user}, Lustre {found.lustre_version or 'not found'}")
    for target in found.targets[:SHOWN_TARGETS]:
        click.echo(f"  {target.target} ({target.kind}): {', '.join(target.readable) or 'nothing'} readable")
        for name, state in target.files.items():
            if name not in target.readable:
                click.echo(f"    missing {name}: {state}")
    if len(found.targets) > SHOWN_TARGETS:
        click.echo(f"  … and {len(found.targets) - SHOWN_TARGETS} more targets: --format json lists all")
    for one in found.findings:
        click.echo(f"  {one.status:8}{one.subject}: {one.detail}")
