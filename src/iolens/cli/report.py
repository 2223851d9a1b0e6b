"""Turn a store into one self-contained HTML report."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iolens.cli.options import RATE, TIME, WORDS, in_zone, progress, store_options
from iolens.store.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

    from iolens.api import OpenStore

PARTLY_DONE = 3


@click.command(
    "report",
    epilog="""\b
Examples:
  iolens report --store centre --output report.html
  iolens report -f scratch,home --from 2012-10-22 --to 2012-10-29 --peak 35GB/s -o week.html
""",
)
@click.option("--engine", metavar="NAME", help="duckdb, local-spark, spark://HOST:PORT or sc://HOST:PORT")
@click.option(
    "--filesystem", "-f", "filesystems", type=WORDS, default="", metavar="NAMES",
    help="File systems, comma-separated [all in the store]",
)  # fmt: skip
@click.option("--from", "since", type=TIME, metavar="TIME", help="Start of the window, such as 2012-10-22")
@click.option("--to", "until", type=TIME, metavar="TIME", help="End of the window, not included")
@click.option("--timezone", metavar="ZONE", help="Zone of times without one, such as Europe/Berlin [UTC]")
@click.option("--resolution", type=click.Choice(["raw", "60s", "1h"]),
              help="Raw rows or a rollup [raw; a rollup where none is left]")  # fmt: skip
@click.option("--calibration", metavar="NAME", help="Stored, configured or shipped calibration (shipped: grace-2012)")
@click.option(
    "--peak", type=RATE, metavar="RATE", help="Peak bandwidth, such as 35GB/s; default: configured, else largest tick"
)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), default=Path("report.html"), show_default=True,
    help="Where to write it",
)  # fmt: skip
@store_options
def COMMAND(
    engine: str | None,
    filesystems: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    timezone: str | None,
    resolution: str | None,
    calibration: str | None,
    peak: float | None,
    output: Path,
    store: str | None,
    config: str | None,
) -> int:
    """Write every table and figure of a store's file systems into one HTML file.

    It opens from disk in any browser, fetches nothing, and prints well: a summary in words first, then the evidence,
    with what is missing in the data beside it.
    """
    from datetime import UTC

    from iolens import __version__
    from iolens.api import OpenStore
    from iolens.views.render import atomic
    from iolens.views.report.page import ReportInfo, report_html

    atomic.check_place(output)
    scope = Scope(None, in_zone(since, timezone), in_zone(until, timezone), resolution=resolution)
    with OpenStore(store, engine=engine, config=config) as opened:
        names = _chosen(opened, filesystems)
        results, refused = _analysed(
            opened, names, scope, {"calibration": calibration, "peak": peak, "timezone": timezone}
        )
    about = ReportInfo(__version__, datetime.now(UTC), (scope.since, scope.until), timezone, tuple(refused))
    page = report_html(results, about)
    atomic.write(output, page)
    click.echo(f"written: {output}, {len(page.encode()) / 1e6:.1f} MB", err=True)
    for line in refused:
        click.echo(f"iolens: {line}", err=True)
    return PARTLY_DONE if refused else 0


def _chosen(opened: OpenStore, given: tuple[str, ...]) -> list[str]:
    """The file systems asked for, or all there are."""
    from iolens.errors import StoreError, UsageError
    from iolens.nearest_names import not_among

    known = opened.store.targets_by_filesystem()
    if not known:
        opened.store.check_that_it_exists()
        raise StoreError(f"{opened.store.url} holds no data yet; load some with `iolens ingest`")
    unknown = [name for name in given if name not in known]
    if unknown:
        raise UsageError(f"{opened.store.url} holds no file system {unknown[0]!r}{not_among(unknown[0], known)}")
    return list(dict.fromkeys(given)) or sorted(known)


def _analysed(opened: OpenStore, names: list[str], scope: Scope, more: dict[str, Any]) -> tuple[list[Any], list[str]]:
    """Every analysis of every file system; one that fails does not stop the others, unless all do."""
    from iolens.analyses import analysis_names
    from iolens.errors import IolensError, NotKnownError, UsageError

    results: list[Any] = []
    failures: list[tuple[str, IolensError]] = []
    unknown: list[IolensError] = []
    asked = [(name, analysis) for name in names for analysis in analysis_names()]
    with progress(None, "reading") as step:
        for name, analysis in asked:
            understood = _understood(analysis, {**more, "progress": _steps(step, name)})
            try:
                results.append(opened.analyse(analysis, replace(scope, filesystem=name), **understood))
            except NotKnownError as error:
                unknown.append(error)  # no section of it, as of every analysis that finds nothing
            except UsageError:
                raise
            except IolensError as error:
                failures.append((f"{analysis} of {name} is not in this report: {error}", error))
    if not results:
        raise next(iter([*(error for _, error in failures), *unknown]))
    return results, [line for line, _ in failures]


def _steps(step: Callable[[str], None], name: str) -> Callable[[date], None]:
    return lambda day: step(f"{name} {day}")


def _understood(analysis: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options that the analysis has a parameter for."""
    from inspect import signature

    from iolens.analyses import get_analysis

    names = {name.removesuffix("_bytes_per_s") for name in signature(get_analysis(analysis).run).parameters}
    return {name: value for name, value in options.items() if name in names and value is not None}
