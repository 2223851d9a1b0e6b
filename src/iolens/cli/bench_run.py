"""Run a plan, or go on with a study."""

from __future__ import annotations

from pathlib import Path

import click

from iolens.cli.options import store_options
from iolens.cli.shared_bench_options import StudyAsked, result_options


@click.command(
    "run",
    epilog="""\b
Examples:
  iolens bench run sequential-20261118T093000-1a2b3c
  iolens bench sequential /scratch/test --dry-run > blocks.toml; iolens bench run blocks.toml --folder blocks
""",
)
@click.argument("place", metavar="FOLDER|PLAN", type=click.Path(path_type=Path))
@click.option("--folder", type=click.Path(path_type=Path), metavar="DIR", help="Folder of a new study [./NAME]")
@store_options
@result_options
def COMMAND(
    place: Path,
    folder: Path | None,
    store: str | None,
    config: str | None,
    format_: str,
    output: Path | None,
    figures: tuple[str, ...],
) -> int:
    """Run the plan of a file, or the points of a study's folder that are not on record yet.

    The folder may come from another machine. What a killed run left behind is removed first.
    """
    from iolens.api.studies import begin_study, study_folder
    from iolens.benchmarks.studies.kind import parameters_of
    from iolens.benchmarks.studies.plan import read_plan

    existing = None if place.is_file() and folder is not None else study_folder(str(place))
    if existing is None:
        existing = begin_study(read_plan(place, parameters_of), folder)
    asked = StudyAsked((), 1, 0, 0.0, 0.0, False, existing.path, store, config, format_, output, figures)
    return asked.run_folder(existing)
