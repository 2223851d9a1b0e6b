"""Load captured telemetry into the store."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.options import timezone_option
from iolens.cli.output_options import progress
from iolens.cli.shared_store_options import store_options
from iolens.cli.value_types import DURATION, TIME
from iolens.messages import say
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.api.ingest import Places
    from iolens.records import Problem
    from iolens.store.ingest import Tally

SHOWN_PROBLEMS = 20
SHOWN_PATHS = 20


@verb(
    "ingest",
    "Load captured telemetry into the store",
    epilog="""\b
Examples:
  iolens ingest capture.txt snapshots/             recognise each file, and say what it was taken for
  iolens ingest lustre-lctl snap-*.txt             one snapshot per file, in any order
  iolens ingest lustre-proc /root1 --at 2026-01-05T12:00:00Z
  iolens ingest lmt-db mysql://reader@lmt/filesystem_scratch --timezone Europe/Berlin
""",
)
@click.argument("arguments", nargs=-1, required=True, metavar="[SOURCE] PATH|URL...")
@click.option("--filesystem", "-f", metavar="NAME", help="File system, if the format lacks it")
@click.option("--target", metavar="NAME", help="Target, if the format lacks it")
@timezone_option("Time zone, if the format lacks it")
@click.option(
    "--interval",
    type=DURATION,
    metavar="TIME",
    help="Nominal sampling interval, such as 5s, instead of the detected one",
)
@click.option("--at", type=TIME, metavar="TIME", help="Time of the snapshot, if the files lack it")
@click.option("--from", "since", type=TIME, metavar="TIME", help="Read a database only from this time on")
@click.option("--to", "until", type=TIME, metavar="TIME", help="Read a database only up to this time")
@click.option("--rebuild", is_flag=True, help="Insert samples that are older than what is stored")
@click.option(
    "--workers", type=click.IntRange(1), metavar="N", help="Processes that parse many files at once [one per core]"
)
@store_options
def ingest(
    arguments: tuple[str, ...],
    filesystem: str | None,
    target: str | None,
    timezone: str | None,
    interval: float | None,
    at: datetime | None,
    since: datetime | None,
    until: datetime | None,
    rebuild: bool,
    workers: int | None,
    store: str | None,
    config: str | None,
) -> int:
    """Load files, directories or databases into the store. Loading the same file twice adds nothing.

    The first argument may name the source format; otherwise each file's format is recognised. A directory stands for
    the files below it. From a day of telemetry on, what disk I/Os cost is estimated where nobody calibrated them.
    """
    from iolens.api.ingest import ingest_and_estimate
    from iolens.api.open_store import OpenStore
    from iolens.sources import ReadOptions, source_names

    named = arguments[0] if arguments[0] in source_names() else None
    places = arguments[1:] if named else arguments
    if not places:
        raise click.UsageError(f"name at least one file, directory or database after {named}")
    options = ReadOptions(filesystem, target, timezone, interval, at, since, until)
    with OpenStore(store, config=config) as opened:
        total = ingest_and_estimate(
            opened,
            places,
            options,
            source=named,
            rebuild=rebuild,
            workers=workers,
            recognised=_say_what_each_was_taken_for,
            watcher=progress,
        )
        return _report(total, opened.store.url)


def _say_what_each_was_taken_for(groups: dict[str, Places]) -> None:
    for name, places in groups.items():
        if len(places.paths) > SHOWN_PATHS:
            say(f"{len(places.paths):,} files taken for {name}")
            continue
        for path in places.paths:
            say(f"{path}: taken for {name}")


def _report(total: Tally, url: str) -> int:
    """One line of what happened, then what was refused; 3 when part of the input was, 1 when nothing was good."""
    rows = ", ".join(f"{count:,} {name}" for name, count in sorted(total.rows.items())) or "no rows"
    click.echo(f"{url}: {counted(total.captures, 'capture')}, {counted(total.samples, 'sample')}: {rows}")
    for line in (*total.outcomes(), *total.estimated):
        click.echo(f"  {line}")
    notes = _each_once(total.notes)
    noted = total.noted - len(total.notes) + len(notes)
    _list(noted, notes, f"{noted:,} left out by rule")
    _list(total.refused, total.problems, f"{counted(total.refused, 'place')} not understood or not possible, refused")
    if not total.refused and not total.older and not total.unplaced:
        return 0
    return 3 if total.samples or total.already_present or total.rows else 1


def _each_once(notes: list[Problem]) -> list[Problem]:
    """The first note of each reason: a hundred captures of one server leave out the same."""
    return list({note.reason: note for note in reversed(notes)}.values())[::-1]


def _list(count: int, places: list[Problem], what: str) -> None:
    if not count:
        return
    click.echo(f"  {what}:", err=True)
    for place in places[:SHOWN_PROBLEMS]:
        click.echo(f"    {place}", err=True)
    if count > SHOWN_PROBLEMS:
        click.echo(f"    … and {count - SHOWN_PROBLEMS:,} more, listed in the table `batches`", err=True)
