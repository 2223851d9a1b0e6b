"""Run a plan, or go on with a study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_bench_options import FolderAsked, result_options
from iolens.cli.shared_store_options import store_options


@verb(
    "bench run",
    "Run a plan, or go on with a study",
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
def bench_run(
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
    from iolens.benchmarks.studies.plan import new_study_name, parameters_of, read_plan

    existing = None if place.is_file() and folder is not None else study_folder(str(place))
    if existing is None:
        plan = read_plan(place, parameters_of)
        existing = begin_study(replace(plan, name=new_study_name(plan.kind)), folder)  # another study each time
    asked = FolderAsked(store=store, config=config, format_=format_, output=output, figures=figures)
    return asked.run_folder(existing)
