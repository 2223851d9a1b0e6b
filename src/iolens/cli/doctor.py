"""Say what can be read on this machine and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.options import store_options
from iolens.cli.shared_hub_options import hub_options, known_hub

if TYPE_CHECKING:
    from iolens.agent.doctor import Diagnosis

SHOWN_TARGETS = 40
SHOWN_LEFT_OUT = 8
DEFAULT_ROOT, DEFAULT_SPOOL = "/", "/var/spool/iolens"


@click.command(
    "doctor",
    epilog="""\b
Examples:
  iolens doctor                                  this machine
  iolens doctor --hub https://iolens.example.org:8470 --hub-token-file /etc/iolens/token
  iolens doctor --root /copy/of/a/server --format json
""",
)
@click.option("--root", type=click.Path(path_type=Path), show_default="/", help="Where /proc and /sys are")
@click.option(
    "--spool", type=click.Path(path_type=Path, file_okay=False), show_default="/var/spool/iolens",
    help="The spool of `iolens collect`",
)  # fmt: skip
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
@hub_options
@store_options
def COMMAND(
    root: Path | None,
    spool: Path | None,
    format_: str,
    hub: str | None,
    hub_token_file: Path | None,
    hub_ca: Path | None,
    store: str | None,
    config: str | None,
) -> int:
    """Look at everything `iolens collect` needs and say what is missing and what to do.

    Exit code: 0 all good, 3 something is missing, 1 nothing to sample here.
    """
    from iolens.agent.doctor import diagnose
    from iolens.config import load_config

    known = load_config(config)
    diagnosis = diagnose(
        root or Path(known.agent.root or DEFAULT_ROOT),
        (None if store else known_hub(known.agent, hub, hub_token_file, hub_ca)) or known.store_url(store),
        spool or Path(known.agent.spool or DEFAULT_SPOOL),
        known.devices,
        known.agent.devices,
    )
    if format_ == "json":
        import json
        from dataclasses import asdict

        click.echo(json.dumps({**asdict(diagnosis), "exit_code": diagnosis.exit_code}, indent=2))
    else:
        _show(diagnosis)
    return diagnosis.exit_code


def _show(diagnosis: Diagnosis) -> None:
    click.echo(f"{diagnosis.root} as {diagnosis.user}, Lustre {diagnosis.lustre_version or 'not found'}")
    offered = [*diagnosis.targets, *diagnosis.mounts]
    for target in offered[:SHOWN_TARGETS]:
        click.echo(f"  {target.target} ({target.kind}): {', '.join(target.readable) or 'nothing'} readable")
        for name, state in target.files.items():
            if name not in target.readable:
                click.echo(f"    missing {name}: {state}")
    if len(offered) > SHOWN_TARGETS:
        click.echo(f"  … and {len(offered) - SHOWN_TARGETS} more targets: --format json lists all")
    _show_devices(diagnosis)
    for finding in diagnosis.findings:
        click.echo(f"  {finding.status:8}{finding.subject}: {finding.detail}")


def _show_devices(diagnosis: Diagnosis) -> None:
    kept = [device for device in diagnosis.devices if device.left_out is None]
    left_out = [f"{device.device} ({device.left_out})" for device in diagnosis.devices if device.left_out is not None]
    if kept:
        click.echo(f"  block devices: {', '.join(finding.target for finding in kept[:SHOWN_TARGETS])}")
    if left_out:
        more = f" and {len(left_out) - SHOWN_LEFT_OUT} more" if len(left_out) > SHOWN_LEFT_OUT else ""
        click.echo(f"  left out by rule: {', '.join(left_out[:SHOWN_LEFT_OUT])}{more}")
