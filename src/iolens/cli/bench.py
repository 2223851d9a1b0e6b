"""`iolens bench`: run and look at studies; the options that all kinds of them share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iolens.cli.lazy_verbs import verb, verb_group
from iolens.cli.output_options import figure_option, format_option, output_option, present, progress, table_options
from iolens.cli.shared_store_options import store_options
from iolens.cli.value_types import BYTES, DURATION, KindType, sizes_type
from iolens.messages import say
from iolens.question import quantity
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.benchmarks.studies.plan import StudyFolder, StudyPlan
    from iolens.benchmarks.studies.run import StudyOutcome
    from iolens.config import Config
    from iolens.store.store import Store


# Measure storage: bandwidth, latency, cache, stripes, metadata --------------------------------------------------------


@verb_group("bench", "Measure storage: bandwidth, latency, cache, stripes, metadata")
def bench() -> None:
    """Measure storage by studies: planned, interrupted, resumed, moved, compared."""


# Options that all studies share ---------------------------------------------------------------------------------------
# Places, repeats, limits, `--dry-run`, where results go; and the run itself.

INTERRUPTED = 130
STOPPED = 3


def _counts(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isascii() and word.isdigit() and 0 < int(word) < 10**9 for word in words):
        raise ValueError(f"{text!r}: whole numbers such as 1,4,16")
    return tuple(dict.fromkeys(int(word) for word in words))


SIZES = sizes_type()
COUNTS = KindType(quantity("counts", _counts))


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderAsked:
    """Where the result of a study's folder goes."""

    store: str | None
    config: str | None
    format_: str
    output: Path | None
    figures: tuple[str, ...]

    def run_folder(self, folder: StudyFolder, result_of: Callable[[StudyFolder], Any] | None = None) -> int:
        """Run or resume, store where a store is named, and show what there is."""
        outcome = _run(folder)
        if self.store is not None and folder.journal().rows:
            from iolens.api.studies import store_study
            from iolens.config import load_config

            say(f"stored in {store_study(folder, load_config(self.config).store_url(self.store))}")
        if folder.journal().rows:
            self._show(folder, outcome, result_of or _result)
        return {None: 0, "interrupted": INTERRUPTED}.get(outcome.stopped, STOPPED)

    def _show(self, folder: StudyFolder, outcome: StudyOutcome, result_of: Callable[[StudyFolder], Any]) -> None:
        """The result; of a study that was stopped, where it is enough for one."""
        from iolens.errors import UsageError

        try:
            result = result_of(folder)
        except UsageError as error:
            if outcome.stopped is None:
                raise
            say(f"no result yet: {error}")
            return
        present(result, self.format_, self.output, self.figures)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyAsked(FolderAsked):
    """What the shared options say."""

    places: tuple[str, ...]
    repeats: int
    max_bytes: int
    max_seconds: float
    max_fullness: float
    dry_run: bool
    folder: Path | None

    def run(self, kind: str, parameters: Any, result_of: Callable[[StudyFolder], Any] | None = None) -> int:
        """Print the plan with `--dry-run`; else run the study and show its result, or what `result_of` makes of it."""
        plan = self.plan(kind, parameters)
        if self.dry_run:
            _show_plan(plan)
            return 0
        from iolens.api.studies import begin_study

        return self.run_folder(begin_study(plan, self.folder), result_of)

    def plan(self, kind: str, parameters: Any) -> StudyPlan:
        """The plan of the options."""
        from iolens.api.studies import study_places
        from iolens.benchmarks.studies.plan import StudyLimits, StudyPlan, new_study_name
        from iolens.config import load_config

        config = load_config(self.config)
        places = study_places(self.places, config, self._filesystems(config) if self.store is not None else ())
        limits = StudyLimits(self.max_bytes, self.max_seconds, self.max_fullness)
        return StudyPlan(new_study_name(kind), kind, places, parameters, self.repeats, limits)

    def _filesystems(self, config: Config) -> list[str]:
        """Those that the store knows."""
        from iolens.store.store import Store

        return sorted(Store(config.store_url(self.store)).targets_by_filesystem())


def _result(folder: StudyFolder) -> Any:
    from iolens.api.studies import folder_rows, study_result

    return study_result(folder_rows(folder))


def _show_plan(plan: StudyPlan) -> None:
    """The plan, and as comments what it would do."""
    from iolens.api.studies import work_of
    from iolens.benchmarks.studies.plan import ASSUMED_BYTES_PER_S, plan_text
    from iolens.units import format_bytes
    from iolens.views.render.tables import show_seconds

    work = work_of(plan)
    click.echo(plan_text(plan), nl=False)
    click.echo(
        f"\n# {counted(work.points, 'point')}: {format_bytes(work.bytes_written)} written,"
        f" {format_bytes(work.bytes_read)} read, {counted(work.files, 'file')}, at most"
        f" {format_bytes(work.bytes_at_once)} at once\n# about {show_seconds(work.seconds)} at an assumed"
        f" {format_bytes(ASSUMED_BYTES_PER_S)}/s; nothing was written"
    )


def _run(folder: StudyFolder) -> StudyOutcome:
    from iolens.api.studies import work_of
    from iolens.benchmarks.studies.run import run_study

    plan, journal = folder.plan(), folder.journal()
    work = work_of(plan, journal)
    say(f"{plan.name}: {counted(work.points - work.points_done, 'point')} to measure, in {folder.path}")
    with progress(work.points - work.points_done, plan.kind) as step:
        outcome = run_study(folder, step if sys.stderr.isatty() else say)
    for note in outcome.notes:
        say(f"note: {note}")
    for path in outcome.left:
        say(f"not ours, left where it is: {path}")
    if outcome.stopped is not None:
        why = "interrupted" if outcome.stopped == "interrupted" else f"stopped after {plan.limits.max_seconds:g} s"
        say(
            f"{why}: {outcome.points_done} of {outcome.points} points are on record, files are removed; go on with:"
            f" iolens bench run {folder.path}"
        )
    return outcome


def result_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--format`, `--output`, `--figure`, `--table`, `--wide`."""
    for option in (
        format_option(),
        output_option("Write the result here"),
        figure_option(),
    ):  # fmt: skip
        function = option(function)
    return table_options(function)


def study_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Everything that studies share, as `asked`."""
    places = click.argument("places", nargs=-1, required=True, metavar="[NAME=]DIR...")
    decorated: Callable[..., Any] = places(run_options(function))
    return decorated


def run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a verb that has an option for `places`."""

    @wraps(function)
    def ask(**given: Any) -> Any:
        shared = {field.name: given.pop(field.name) for field in fields(StudyAsked)}
        return function(asked=StudyAsked(**shared), **given)

    decorated: Callable[..., Any] = ask
    for option in reversed(
        (
            click.option("--repeats", type=click.IntRange(1), default=5, show_default=True, help="Runs of each case"),
            click.option("--max-bytes", type=BYTES, default="100GiB", show_default=True, help="Most bytes to write"),
            click.option(
                "--max-seconds", type=DURATION, default="1h", show_default=True, metavar="TIME",
                help="Stop after this time; `bench run` goes on",
            ),
            click.option(
                "--max-fullness", type=click.FloatRange(0, 100), default=90.0, show_default=True, metavar="PCT",
                help="Never make a file system fuller than this",
            ),
            click.option("--dry-run", is_flag=True, help="Print the plan with bytes, files and time; write nothing"),
            click.option(
                "--folder", type=click.Path(path_type=Path), metavar="DIR", help="Folder of the study [./NAME]"
            ),
        )
    ):  # fmt: skip
        decorated = option(decorated)
    return store_options(result_options(decorated))


# Run a plan, or go on with a study ------------------------------------------------------------------------------------


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


# The result of a study in a folder or a store -------------------------------------------------------------------------


@verb(
    "bench show",
    "The result of a study in a folder or a store",
    epilog="Example: iolens bench show sequential-20261118T093000-1a2b3c --figure blocks=blocks.png",
)
@click.argument("study", metavar="FOLDER|STUDY")
@store_options
@result_options
def bench_show(
    study: str, store: str | None, config: str | None, format_: str, output: Path | None, figures: tuple[str, ...]
) -> None:
    """The result of a study: a folder, or a name in the store (`bench list` names them)."""
    from iolens.api.studies import named_rows, study_result
    from iolens.cli.store import opened_store

    def opened() -> Store:
        return opened_store(store, config)

    present(study_result(named_rows(study, opened)), format_, output, figures)


# Studies in the store -------------------------------------------------------------------------------------------------


@verb("bench list", "Studies in the store", epilog="Example: iolens bench list --store centre")
@store_options
@result_options
def bench_list(
    store: str | None, config: str | None, format_: str, output: Path | None, figures: tuple[str, ...]
) -> None:
    """Studies in the store, the newest first: kind, places, machines, runs."""
    from iolens.analyses.bench_list import StudyList
    from iolens.api.studies import stored_studies
    from iolens.cli.store import opened_store

    present(StudyList(stored_studies(opened_store(store, config))), format_, output, figures)


# Two studies side by side ---------------------------------------------------------------------------------------------


@verb(
    "bench compare",
    "Two studies side by side",
    epilog="""\b
Examples:
  iolens bench compare before/ after/
  iolens bench compare sequential-20251118T093000-1a2b3c sequential-20261118T093000-4d5e6f --store centre
""",
)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@store_options
@result_options
def bench_compare(
    before: str,
    after: str,
    store: str | None,
    config: str | None,
    format_: str,
    output: Path | None,
    figures: tuple[str, ...],
) -> None:
    """Two studies side by side, folders or names in the store: what changed from A to B, and whether beyond noise."""
    from iolens.analyses.bench_compare import study_comparison
    from iolens.api.studies import named_rows
    from iolens.cli.store import opened_store

    def opened() -> Store:
        return opened_store(store, config)

    first, second = (named_rows(name, opened) for name in (before, after))
    present(study_comparison(before, first, after, second), format_, output, figures)


# Remove what a killed study left --------------------------------------------------------------------------------------


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
