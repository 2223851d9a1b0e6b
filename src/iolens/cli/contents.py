"""What a file system holds: files by size, age, owner, project."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from iolens.cli.options import WORDS, Asked, QuantityType, analysis_options
from iolens.cli.shared_time_options import TimeType
from iolens.times import last_utc_time
from iolens.units import parse_bytes, parse_duration

NONE = "none"


def _earlier(text: str, zone: str | None) -> Any:
    from iolens.analyses.contents.change import FIRST, PREVIOUS

    return text if text in (FIRST, PREVIOUS, NONE) else last_utc_time(text, zone)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(parse_bytes(word) for word in text.split(",") if word.strip())


def _ages(text: str) -> tuple[int, ...]:
    return tuple(round(parse_duration(word)) for word in text.split(",") if word.strip())


@click.command(
    "contents",
    epilog="""\b
Examples:
  iolens contents --filesystem scratch
  iolens contents -f scratch --without-project EarthScience --figure sizes.png --figure ages=ages.png
  iolens contents -f scratch --compare 2010-01-23 --threshold-files 1e9 --format json
""",
)
@click.option("--project", "projects", type=WORDS, default="", metavar="NAMES", help="Only these projects")
@click.option("--owner", "owners", type=WORDS, default="", metavar="NAMES", help="Only these owners")
@click.option(
    "--without-project",
    "without",
    type=WORDS,
    default="",
    metavar="NAMES",
    help="Also show everything without these projects",
)
@click.option(
    "--compare",
    type=TimeType("earlier", _earlier),
    default="first",
    show_default=True,
    metavar="first|previous|none|TIME",
    help="Earlier scan to compare with; TIME: the last one up to then",
)
@click.option(
    "--threshold-files",
    type=click.FloatRange(0, min_open=True),
    metavar="NUMBER",
    help="Number of files whose date is projected, such as 1e9",
)
@click.option(
    "--at-most",
    type=QuantityType("sizes", _sizes),
    default="4KiB,64KiB,1MiB,128MiB,1GiB",
    show_default=True,
    metavar="SIZES",
    help="Sizes up to which shares are given",
)
@click.option(
    "--within",
    type=QuantityType("ages", _ages),
    default="1d,7d,30d,90d,180d,365d",
    show_default=True,
    metavar="AGES",
    help="Ages up to which shares are given",
)
@click.option("--scan", metavar="NAME", help="Name of the scan, if there are several of the same time")
@click.option(
    "--top", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="Projects and owners in a table"
)
@analysis_options
def COMMAND(
    asked: Asked,
    projects: tuple[str, ...],
    owners: tuple[str, ...],
    without: tuple[str, ...],
    compare: str | datetime,
    threshold_files: float | None,
    at_most: tuple[int, ...],
    within: tuple[int, ...],
    scan: str | None,
    top: int,
) -> None:
    """Files and bytes by size, age, owner, project and type, from the newest scan of the window.

    Scans come from `iolens scan`, Robinhood, policy listings, `find` or histograms. If there is an earlier scan, the
    change by project and by owner and a projection of the number of files are shown. Tables show the largest; JSON
    has all.
    """
    result = asked.analyse(
        "contents",
        projects=projects,
        owners=owners,
        without_projects=without,
        compare=None if compare == NONE else compare,
        threshold_files=threshold_files,
        at_most_bytes=at_most,
        within_s=within,
        scan=scan,
        top=top,
    )
    asked.show(result)
