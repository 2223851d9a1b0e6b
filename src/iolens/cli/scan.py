"""How far a scan is: a bar with rate and estimate on a terminal, otherwise a line now and then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import format_option, output_option, present, table_options
from iolens.cli.shared_store_options import store_options
from iolens.cli.value_types import TIME, KindType
from iolens.messages import NOTICE, is_shown, say
from iolens.question import quantity

if TYPE_CHECKING:
    from iolens.analyses.scan_summary import ScanSummary
    from iolens.scan.workers import Advance
    from iolens.store.store import Store


LINE_EVERY_S: Final = 30.0  # without a terminal, a line of progress this often


@contextmanager
def scan_progress(expected: int | None) -> Iterator[Callable[[Advance], None]]:
    """A bar with rate and estimate on a terminal; otherwise a line now and then, with `--quiet` none."""
    if not sys.stderr.isatty() or not is_shown(NOTICE):
        yield ProgressLines(expected, say).tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("scanning"), BarColumn(), TextColumn("{task.description}"))
    # No thread of its own: the processes of the scan are forked while this is shown.
    with Progress(*columns, console=Console(file=sys.__stderr__), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=expected)

        def tell(advance: Advance) -> None:
            bar.update(task, completed=min(advance.entries, expected or advance.entries), refresh=True)
            bar.update(task, description=progress_text(advance, expected), refresh=True)

        yield tell


class ProgressLines:
    """Progress in lines, one every half minute."""

    def __init__(self, expected: int | None, say: Callable[[str], object]) -> None:
        self.expected, self.say = expected, say
        self.due_s = LINE_EVERY_S

    def tell(self, advance: Advance) -> None:
        """A line, if it is time for one."""
        if advance.passed_s >= self.due_s:
            self.due_s = advance.passed_s + LINE_EVERY_S
            self.say(f"scanning: {progress_text(advance, self.expected)}")


def progress_text(advance: Advance, expected: int | None) -> str:
    """`1,200,000 of at most 5,000,000 inodes, 310,000/s, at most 12 min left`."""
    rate = (advance.entries - advance.entries_before) / advance.passed_s if advance.passed_s > 0 else 0.0
    if expected is None or expected < advance.entries:
        return f"{advance.entries:,} inodes, {rate:,.0f}/s"
    begin = f"{advance.entries:,} of at most {expected:,} inodes, {rate:,.0f}/s"
    return f"{begin}, at most {_duration((expected - advance.entries) / rate)} left" if rate else begin


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


# Scan a directory tree: files by size, age, type, owner, project ------------------------------------------------------

PARTLY_DONE, INTERRUPTED = 3, 130


def _part(text: str) -> tuple[int, int]:
    from iolens.api.scan import parse_part

    return parse_part(text)


PART = KindType(quantity("part", _part))


@verb(
    "scan",
    "Scan a directory tree: files by size, age, type, owner, project",
    epilog="""\b
Examples:
  iolens scan /scratch --store centre --project-rule '/scratch/{project}'
  iolens scan /scratch --max-rate 20000 --workers 4      spare the metadata server
  iolens scan /scratch --resume                          go on after an interruption
  iolens scan /scratch --part 1/2 --at 2026-01-05T00:00Z --save one.json.gz
  iolens scan --merge one.json.gz two.json.gz --store centre
""",
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH", type=click.Path(path_type=Path))
@click.option("--filesystem", "-f", metavar="NAME", help="Name of the file system [from its mount]")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Processes that walk the tree [one per core]")
@click.option(
    "--lookups", type=click.IntRange(1), metavar="N",
    help="Most lookups in flight per process [adapted, up to 32, 128 in all]",
)  # fmt: skip
@click.option(
    "--project-rule", "rules", multiple=True, metavar="PATH",
    help="Directory of projects, such as /scratch/{project}; repeatable; tried before those of [projects]",
)  # fmt: skip
@click.option("--project-ids", is_flag=True, help="Use the project id of directories that have one")
@click.option(
    "--exclude", multiple=True, metavar="PATTERN",
    help="Leave out names (.snapshot, *.tmp) or paths (/home/*/cache); repeatable",
)  # fmt: skip
@click.option("--cross-filesystems", is_flag=True, help="Also scan file systems mounted inside")
@click.option("--max-rate", type=click.FloatRange(0, min_open=True), metavar="N", help="Most entries per second")
@click.option(
    "--at",
    type=TIME,
    metavar="TIME",
    help="Time from which ages are counted [start of the scan]; the same for all parts",
)
@click.option(
    "--part", type=PART, metavar="I/N", help="Scan only this part, one on each of N nodes; needs --save and --at"
)
@click.option("--part-depth", type=click.IntRange(1), default=2, show_default=True, metavar="N",
    help="Depth down to which directories are distributed over the parts",
)  # fmt: skip
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the result to a file for --merge (.json, .json.gz) instead of the store",
)
@click.option("--merge", is_flag=True, help="PATHs are saved parts: combine and store them")
@click.option(
    "--keep-entries",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write every entry with its path (.parquet)",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Directory for the progress of the scan [~/.local/state/iolens]",
)
@click.option("--resume", is_flag=True, help="Continue an interrupted scan of this path, if there is one")
@click.option("--restart", is_flag=True, help="Discard an interrupted scan and start again")
@click.option("--no-store", is_flag=True, help="Only show the summary")
@click.option(
    "--top", type=click.IntRange(1), default=10, show_default=True, help="Number of owners and projects shown"
)
@format_option("table", "json", "markdown")
@output_option()
@store_options
@table_options
def scan(
    paths: tuple[Path, ...],
    merge: bool,
    no_store: bool,
    top: int,
    at: datetime | None,
    format_: str,
    output: Path | None,
    store: str | None,
    config: str | None,
    **options: Any,
) -> int:
    """Count what lies below PATH, and store the histograms: sizes, ages, types, owners, projects; no path.

    Symbolic links are not followed, and other file systems are not entered. Hard links count once. What cannot be
    read is named, and the exit code is then 3. Use --resume to continue an interrupted scan.
    """
    from iolens.api.listener import Listener
    from iolens.api.scan import ScanInterruptedError, ScanRequest, merged_parts, scanned
    from iolens.config import load_config

    loaded = load_config(config)
    url = loaded.store_url(store)
    opened = None if no_store or options["save"] is not None else lambda: _opened(url)
    if merge:
        if options["save"] is not None or options["keep_entries"] is not None:
            raise click.UsageError("--merge stores what was saved; --save and --keep-entries belong to a scan")
        return _show(merged_parts(paths, opened, options["filesystem"], top), format_, output)
    if len(paths) > 1:
        raise click.UsageError("one PATH at a time; saved parts are put together with --merge")
    request = ScanRequest(root=paths[0], at=at, top=top, **options)
    listener = Listener(say)
    try:
        with scanned(request, loaded, opened, listener=listener, watcher=scan_progress) as summary:
            return _show(summary, format_, output)
    except ScanInterruptedError as error:
        click.echo(f"iolens: {error}", err=True)
        return INTERRUPTED


def _opened(url: str) -> Store:
    from iolens.store.store import Store

    return Store(url)


def _show(summary: ScanSummary, format_: str, output: Path | None) -> int:
    present(summary, format_, output, ())
    return PARTLY_DONE if summary.walk.unreadable else 0
