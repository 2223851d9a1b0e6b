"""Fit a workload model to a store and write it as a file."""

from __future__ import annotations

from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import output_option
from iolens.cli.shared_synthesis_options import AskedModel, model_options
from iolens.messages import say


@verb(
    "synthesize model",
    "Fit a workload model to a store and write it as a file",
    epilog="""\b
Examples:
  iolens synthesize model --store centre -f scratch --from 2026-10-01 --to 2026-11-01 -o scratch-model.toml
  iolens synthesize model --model spider --targets 96
""",
)
@output_option()
@model_options
def synthesize_model(asked: AskedModel, output: Path | None) -> None:
    """Fit a model to a store's telemetry, or take one of a file and change it; write it as TOML."""
    from iolens.views.render import atomic

    text = asked.origin().text()
    if output is None:
        click.echo(text, nl=False)
    else:
        atomic.write(output, text)
        say(f"written: {output}")
