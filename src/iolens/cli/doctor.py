"""Say what can be read on this machine and what is missing."""

from __future__ import annotations

from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.options import hub_options, known_hub
from iolens.cli.output_options import format_option
from iolens.cli.shared_store_options import store_options

DEFAULT_ROOT, DEFAULT_SPOOL = "/", "/var/spool/iolens"


@verb(
    "doctor",
    "Say what can be read on this machine and what is missing",
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
@format_option("table", "json")
@hub_options
@store_options
def doctor(
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
        click.echo("\n".join(diagnosis.lines()))
    return diagnosis.exit_code
