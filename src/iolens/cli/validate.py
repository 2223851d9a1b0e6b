"""Published studies recomputed (not about your data)."""

from __future__ import annotations

import os
from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import format_option, output_option, present, progress, table_options
from iolens.cli.value_types import WORDS


@verb(
    "validate",
    "Published studies recomputed (not about your data)",
    epilog="""\b
Examples:
  iolens validate --data public-data
  iolens validate --study U
  iolens validate --study P --format markdown -o validation.md
""",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Directory of public data sets [$IOLENS_SHARED/data, ../shared/data]",
)
@click.option("--study", "studies", type=WORDS, default="", metavar="LIST", help="Only these studies, such as P,U")
@format_option()
@output_option()
@table_options
def validate(data: Path | None, studies: tuple[str, ...], format_: str, output: Path | None) -> int:
    """Recompute every number that published studies print; this is not about your data.

    Their public data are loaded into a temporary store and evaluated with the analyses and plans of iolens. The exit
    code is 1 if a number differs without an explanation.
    """
    from iolens.validation import chosen_studies, validate

    total = sum(len(study.checks) for study in chosen_studies(studies))
    with progress(total, "validating") as step:
        result = validate(data or _default_folder(), studies, step)
    present(result, format_, output, ())
    return 0 if result.passed else 1


def _default_folder() -> Path | None:
    """Where the data usually lie; None where they do not."""
    folder = Path(os.environ.get("IOLENS_SHARED") or "../shared") / "data"
    return folder if folder.is_dir() else None
