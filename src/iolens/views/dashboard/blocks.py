"""Where names in tables lead: a target, job, user or file system has a page of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from iolens.errors import UsageError
from iolens.views.render.doubts import warned
from iolens.views.render.figures import Figure
from iolens.views.render.formats import figures_of, tables_of
from iolens.views.render.section import Facts, Part, PartHeading
from iolens.views.render.tables import TableView
from iolens.views.render.view_names import view_of
from iolens.views.render.window_axes import EMPTY

OF_COLUMNS: Final = {
    "job": "/jobs/{}",
    "job_id": "/jobs/{}",
    "jobid": "/jobs/{}",
    "user": "/users/{}",
    "filesystem": "/filesystems/{}",
}
LONGEST_NAME: Final = 1000  # characters, as written in an address
_TRICKS: Final = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]|%[0-9A-Fa-f]{2}")  # refused by `web.access` in any path
OF_SHARES: Final = {"job": "/jobs/{}", "user": "/users/{}"}  # of `iolens blame --by`


def cell_link(result: Any, window: str, table: TableView, column: str, value: Any) -> str:
    """The address of what a cell names, with the window of the page; "": it has none."""
    if not isinstance(value, str) or not _fits_in_a_path(value):
        return ""
    if column == "target":
        own = getattr(result, "filesystem", None)
        return f"/filesystems/{quote(own, '')}/targets/{quote(value)}{window}" if own else ""
    if column == "name" and table.name == "shares":
        # not the sum of others, nor what is nobody's; an id without a record may be a job, but is no user
        is_one = any(line.name == value and (line.is_known or result.by == "job") for line in result.who)
        return _filled(OF_SHARES.get(result.by, ""), value) if is_one else ""
    return _filled(OF_COLUMNS.get(column, ""), value)


def _fits_in_a_path(name: str) -> bool:
    """Whether the server takes the name as the end of an address: others are shown without a link."""
    is_plain = not _TRICKS.search(name) and not {"", ".", ".."} & set(name.split("/"))
    return is_plain and len(quote(name)) <= LONGEST_NAME


def _filled(path: str, value: str) -> str:
    return path.format(quote(value)) if path else ""


# What a block shows of a result ---------------------------------------------------------------------------------------
# Facts, words, figures and tables, by name, from the views that the report uses.
#
# `facts` are the numbers in large type, `now` the newest of them, `answer:load` the words that the report says to that
# question, `figure:NAME` and `table:NAME` those of the command line, `tables` all of them, `words` and `lines` what a
# view says before its tables, `chapters` those of a page about one job or user.

NOTHING: Final = f"{EMPTY[:1].upper()}{EMPTY[1:]}."  # which the block itself says where it has nothing else


def block_parts(result: Any, shows: Sequence[str]) -> list[Part]:
    """The parts in the order that is asked for; of a figure that has nothing to show, why not."""
    parts = [part for show in shows for part in _shown(result, show)]
    shown = [part if not isinstance(part, Figure) or part.has_content else part.message for part in parts]
    return [part for part in shown if part and part != NOTHING]


def named_tables(result: Any) -> list[TableView]:
    """All tables of a result, each with a name: those of its view, or those on its page."""
    if not _is_page(result):
        return tables_of(result)
    tables = [part for part in _chapters(result) if isinstance(part, TableView)]
    return [replace(table, name=f"table_{number}") for number, table in enumerate(tables, 1)]


def named_figures(result: Any) -> dict[str, Callable[[], Figure]]:
    """All figures of a result by name; none where its view draws none."""
    return figures_of(result) if hasattr(view_of(result, "figures", "tables", "page"), "figures") else {}


def shown_tables(result: Any, shows: Sequence[str]) -> list[TableView]:
    """The tables of a block, for its links to CSV."""
    if "chapters" in shows:
        return named_tables(result)
    return [part for part in block_parts(result, shows) if isinstance(part, TableView)]


def _shown(result: Any, show: str) -> Iterator[Part]:
    kind, _, name = show.partition(":")
    if kind in ("facts", "now"):
        facts = _asked(result, kind)
        yield from [Facts(tuple(facts))] if facts else ()
    elif kind == "answer":
        yield from (words for answer in _asked(result, "answers") if answer.question == name for words in answer.words)
    elif kind == "figure":
        yield from (describe() for known, describe in named_figures(result).items() if known == name)
    elif kind == "table":
        yield from (table for table in named_tables(result) if table.name == name and table.rows)
    elif kind == "tables":
        yield from named_tables(result)
    elif kind in ("lines", "words"):
        yield from _asked(result, kind)
    elif kind == "chapters" and _is_page(result):
        yield from _chapters(result)
    else:
        raise UsageError(f"a block has no {show!r}")


def _asked(result: Any, what: str) -> list[Any]:
    function = getattr(view_of(result, "report", "tables", "page"), f"report_{what}", None)
    return [] if function is None else list(function(result))


def _is_page(result: Any) -> bool:
    """Whether it is a page of chapters, about one job or user."""
    return hasattr(view_of(result, "page", "tables"), "chapters")


def _chapters(result: Any) -> Iterator[Part]:
    for chapter in view_of(result, "page").chapters(result):
        yield PartHeading(chapter.title)
        yield from map(warned, chapter.warnings)
        yield from chapter.opening
        for section in chapter.sections:
            yield from [PartHeading(section.title, 3)] if section.title else ()
            yield from section.parts
