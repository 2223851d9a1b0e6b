"""What a file system holds, by its scans: files by size, age, owner and project."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from iolens.question import BYTES, TOP, WORDS, Kind, Option, number, quantity, question, several
from iolens.times import last_utc_time
from iolens.units import parse_duration

if TYPE_CHECKING:
    from iolens.analyses.contents.analysis import Contents
    from iolens.questions.asking import Ask

NONE: Final = "none"


def _earlier(text: str, zone: str | None) -> str | datetime:
    from iolens.analyses.contents.change import FIRST, PREVIOUS

    return text if text in (FIRST, PREVIOUS, NONE) else last_utc_time(text, zone)


EARLIER: Final = Kind("earlier", _earlier, str | datetime | None)
SIZES: Final = several(BYTES, "sizes", may_be_none=True)
AGES: Final = several(quantity("age", lambda text: round(parse_duration(text)), int), "ages", may_be_none=True)


def _names(name: str, flag: str, meaning: str, **settings: Any) -> Option:
    return Option(name, meaning, WORDS, "", flag=flag, metavar="NAMES", **settings)


@question(
    "contents", "What a file system holds: files by size, age, owner, project",
    _names("projects", "--project", "Only these projects", means="project"),
    _names("owners", "--owner", "Only these owners", means="person"),
    _names("without_projects", "--without-project", "Also show everything without these projects", means="project"),
    Option(
        "compare", "Earlier scan to compare with; TIME: the last one up to then", EARLIER, "first",
        metavar="first|previous|none|TIME",
    ),
    Option(
        "threshold_files", "Number of files whose date is projected, such as 1e9", number(0, above=True),
        metavar="NUMBER",
    ),
    Option(
        "at_most_bytes", "Sizes up to which shares are given", SIZES, "4KiB,64KiB,1MiB,128MiB,1GiB", flag="--at-most",
        metavar="SIZES",
    ),
    Option(
        "within_s", "Ages up to which shares are given", AGES, "1d,7d,30d,90d,180d,365d", flag="--within",
        metavar="AGES",
    ),
    Option("scan", "Name of the scan, if there are several of the same time", metavar="NAME"),
    replace(TOP, meaning="Projects and owners in a table", metavar="N"),
    examples=(
        "--filesystem scratch",
        "-f scratch --without-project EarthScience --figure sizes.png --figure ages=ages.png",
        "-f scratch --compare 2010-01-23 --threshold-files 1e9 --format json",
    ),
)  # fmt: skip
def contents(ask: Ask, compare: str | datetime | None, **options: Any) -> Contents:
    """Files and bytes by size, age, owner, project and type, from the newest scan of the window.

    Scans come from `iolens scan`, Robinhood, policy listings, `find` or histograms. If there is an earlier scan, the
    change by project and by owner and a projection of the number of files are shown. Tables show the largest; JSON
    has all.
    """
    return ask.analyse("contents", compare=None if compare == NONE else compare, **options)
