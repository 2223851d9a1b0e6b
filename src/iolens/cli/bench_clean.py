"""Remove what a killed study left."""

from __future__ import annotations

from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb
from iolens.messages import say


@verb(
    "bench clean",
    "Remove what a killed study left",
    epilog="Example: iolens bench clean sequential-20261118T093000-1a2b3c",
)
@click.argument("folder", type=click.Path(path_type=Path))
def bench_clean(folder: Path) -> int:
    """Remove directories that a killed study left in its places; results stay.

    Only files that the study made are removed; others in its directories are named and stay.
    """
    from iolens.api.studies import study_folder
    from iolens.benchmarks.studies.run import clean_study
    from iolens.errors import UsageError

    study = study_folder(str(folder))
    if study is None:
        raise UsageError(f"{folder}: no study")
    gone, left = clean_study(study)
    for path in gone:
        click.echo(f"removed: {path}")
    for path in left:
        say(f"not ours, left where it is: {path}")
    if not gone and not left:
        click.echo("nothing was left behind")
    return 1 if left else 0
