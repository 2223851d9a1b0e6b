"""Turn a store into one self-contained HTML report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.options import reading_options, window_options
from iolens.cli.output_options import progress
from iolens.cli.shared_store_options import store_options
from iolens.cli.value_types import RATE, WORDS, KindType
from iolens.errors import OptionError
from iolens.messages import say
from iolens.question import Kind
from iolens.store.scope import Scope
from iolens.times import utc_time

PARTLY_DONE = 3


def _against(text: str, zone: str | None) -> datetime | str | None:
    return text if text in ("previous", "none") else utc_time(text, zone)


@verb(
    "report",
    "Turn a store into one self-contained HTML report",
    epilog="""\b
Examples:
  iolens report --store centre --output report.html
  iolens report -f scratch,home --from 2012-10-22 --to 2012-10-29 --peak 35GB/s -o week.html
  iolens report --job 1234 --timezone Europe/Berlin -o job-1234.html
  iolens report --user ana --during "last week" -o ana.html
""",
)
@click.option("--job", metavar="ID", help="A short page about this job, to send to its user")
@click.option("--user", metavar="NAME", help="A short page about this user, to send to them [the last 7 days of data]")
@click.option("--cluster", metavar="NAME", help="With --job: cluster of the job, if several have this id")
@click.option("--names", is_flag=True, help="With --job: name other jobs and their users")
@click.option("--engine", metavar="NAME", help="duckdb, local-spark, spark://HOST:PORT or sc://HOST:PORT")
@click.option(
    "--filesystem", "-f", "filesystems", type=WORDS, default="", metavar="NAMES",
    help="File systems, comma-separated [all in the store]",
)  # fmt: skip
@window_options
@click.option("--resolution", type=click.Choice(["raw", "60s", "1h"]),
              help="Raw rows or a rollup [raw; a rollup if no raw rows are left]")  # fmt: skip
@click.option("--calibration", metavar="NAME", help="Stored, configured or shipped calibration (shipped: grace-2012)")
@click.option(
    "--peak", type=RATE, metavar="RATE", help="Peak bandwidth, such as 35GB/s; default: configured, else largest tick"
)
@click.option("--full", is_flag=True, help="All figures and tables, and nothing closed")
@click.option(
    "--against", type=KindType(Kind("time", _against)), metavar="TIME", default="previous", show_default=True,
    help="Compare with a period of the same length: the one before, one that starts at TIME, or none",
)  # fmt: skip
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), default=Path("report.html"), show_default=True,
    help="Where to write it",
)  # fmt: skip
@reading_options
@store_options
def report(
    job: str | None,
    user: str | None,
    cluster: str | None,
    names: bool,
    engine: str | None,
    filesystems: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    timezone: str | None,
    resolution: str | None,
    calibration: str | None,
    peak: float | None,
    full: bool,
    against: datetime | Literal["previous", "none"],
    output: Path,
    **opened_with: Any,
) -> int:
    """Write what is known of a store's file systems into one HTML file.

    The file opens in any browser without a network and can be printed: one page for each file system first, then a
    chapter for each question with its evidence. With --job or --user: a short page to send to a user, with what ran,
    what it cost and what to change; it names no other users.
    """
    from iolens.api import OpenStore
    from iolens.views.render import atomic

    of_pages, of_report = {"cluster": cluster, "names": names or None}, {"calibration": calibration, "peak": peak}
    _check_options(job, user, of_pages, {**of_report, "resolution": resolution})
    atomic.check_place(output)
    scope = Scope(None, since, until, resolution=resolution)
    refused: tuple[str, ...] = ()
    with OpenStore(opened_with.pop("store"), engine=engine, **opened_with) as opened, progress(None, "reading") as step:
        if job is not None:
            from iolens.api.job_page import JobPageOptions
            from iolens.api.sent_pages import write_job_page

            options = JobPageOptions(filesystems, cluster, names)
            size = write_job_page(opened, output, job, scope, options, timezone)
        elif user is not None:
            from iolens.api.sent_pages import write_user_page

            size = write_user_page(opened, output, user, scope, filesystems, timezone)
        else:
            from iolens.api.listener import Listener
            from iolens.api.report import write_report

            listener = Listener(step=step)
            written = write_report(
                opened, output, filesystems, scope, timezone=timezone, full=full,
                against=None if against == "none" else against, listener=listener, **of_report,
            )  # fmt: skip
            size, refused = written.bytes, written.refused
    length = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
    say(f"written: {output}, {length}")
    for line in refused:
        click.echo(f"iolens: {line}", err=True)
    return PARTLY_DONE if refused else 0


def _check_options(
    job: str | None, user: str | None, of_pages: Mapping[str, object], of_report: Mapping[str, object]
) -> None:
    """Whether the options go together."""
    if job is not None and user is not None:
        raise OptionError("--job and --user are two pages: give one of them")
    for name, value in of_pages.items():
        if value is not None and job is None:
            raise OptionError(f"--{name} goes with --job only")
    for name, value in of_report.items():
        if value is not None and (job is not None or user is not None):
            raise OptionError(f"--{name} does not go with --job and --user")
