"""`iolens store export` and `anonymize`: a store's rows for others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.options import window_options
from iolens.cli.output_options import output_option, progress
from iolens.cli.shared_store_options import PATH, store_options
from iolens.cli.store import opened_store
from iolens.messages import say
from iolens.visible_text import counted, visible

if TYPE_CHECKING:
    from iolens.api.anonymize.copying import AnonymizedCopy


# Write a table, or a window of it, to one Parquet or CSV file ---------------------------------------------------------


@verb(
    "store export",
    "Write a table, or a window of it, to one Parquet or CSV file",
    epilog="Example: iolens store export target_io --filesystem scratch -o out.parquet",
)
@click.argument("table")
@click.option("--filesystem", "-f", metavar="NAME", help="File system; not needed if the store has only one")
@window_options
@click.option("--resolution", type=click.Choice(["raw", "60s", "1h"]), default="raw", show_default=True)
@output_option("FILE.parquet or FILE.csv", required=True)
@store_options
def store_export(
    table: str,
    filesystem: str | None,
    since: datetime | None,
    until: datetime | None,
    timezone: str | None,
    resolution: str,
    output: Path,
    store: str | None,
    config: str | None,
) -> None:
    """Write a table, or a window of it, to one Parquet or CSV file."""
    from iolens.store.maintenance import export_table

    rows = export_table(opened_store(store, config), table, output, filesystem, since, until, resolution)
    click.echo(f"{counted(rows, 'row')} of {table} written to {output}")


# Copy a store under pseudonyms, so that it can be published -----------------------------------------------------------

MOST_LISTED: Final = 10
STILL_TELLS: Final = (
    "times, sizes, counts, rates, numbers of nodes and processes, indices of targets and nodes, array indices of jobs,"
    " models of drives and versions"
)


@verb(
    "store anonymize",
    "Copy a store under pseudonyms, so that it can be published",
    epilog="Example: iolens store anonymize centre published --key-file ~/pseudonyms.key",
)
@click.argument("source", metavar="SRC", type=PATH)
@click.argument("destination", metavar="DST", type=PATH)
@click.option(
    "--key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Key of the pseudonyms, at least 16 bytes: with the same key names get the same pseudonyms again. "
    "Without it the key is random and not kept: nobody can tell which name became which",
)
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Search every file of the copy for every name that was replaced; a name that is there is an error",
)
@click.option(
    "--config", metavar="FILE", type=PATH, help="Configuration, for `jobid_name` of file systems [$IOLENS_CONFIG, …]"
)
def store_anonymize(source: str, destination: str, key_file: Path | None, verify: bool, config: str | None) -> int:
    """Copy the store SRC to the new directory DST under pseudonyms.

    Users, projects, jobs, programs, hosts, file systems, paths, serial numbers and identities get keyed pseudonyms,
    equal ones for equal names, so that analyses give the same numbers. Free text is left out.
    """
    from iolens.api.anonymize.copying import anonymize_store
    from iolens.api.anonymize.pseudonyms import key_of
    from iolens.config import load_config
    from iolens.store.store import Store

    known = load_config(config)
    forms = {name: settings.jobid_name for name, settings in known.filesystems.items() if settings.jobid_name}
    key = key_of(key_file)
    with progress(None, "copying") as step:
        done = anonymize_store(Store(source), destination, key, jobid_names=forms, search=verify, step=step)
    if done.leaks:
        for leak in done.leaks:
            click.echo(f"{leak.place}: has the replaced name {visible(leak.name)!r}", err=True)
        click.echo("names would have been published: the copy was removed", err=True)
        return 1
    for line in _notes(done, key_file):
        say(line)
    rows = sum(done.rows.values())
    click.echo(
        f"{counted(rows, 'row')} of {counted(len(done.rows), 'table')} copied to {destination} under pseudonyms of "
        f"{counted(done.names, 'name')}"
    )
    return 0


def _notes(done: AnonymizedCopy, key_file: Path | None) -> Iterator[str]:
    """What the reader must know before the copy is published."""
    yield from (f"  left out: {line}" for line in done.left_out)
    if not done.searched:
        yield "  not searched for names that were replaced (--no-verify)"
    if done.ordinary:
        yield f"  also words of iolens, so not searched for: {_listed(done.ordinary)}"
    if done.remaining:
        shown = [f"{leak.name} ({leak.place})" for leak in done.remaining]
        yield f"  programs or directories called by words that kept columns have: {_listed(shown)}"
    if key_file is None:
        yield "  the key was random and is gone: nobody can repeat or undo the pseudonyms"
    else:
        yield f"  whoever has {key_file} can find out who is who by trying names: keep it secret"
    yield f"  the copy still tells {STILL_TELLS}; who knows a job by them knows it in the copy"
    yield "  to tell less, copy a store with fewer days or rollups alone; iolens does not round or shift anything"


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_LISTED
    shown = ", ".join(visible(name) for name in names[:MOST_LISTED])
    return f"{shown} and {more} more" if more > 0 else shown
