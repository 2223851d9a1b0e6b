"""Answers in a notebook: their tables as frames, and the main one as HTML where IPython shows an answer."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from iolens.errors import UsageError
from iolens.nearest_names import not_among
from iolens.views.render.formats import tables_of
from iolens.views.render.tables import to_arrow
from iolens.views.report.page import table_html

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS: Final = 100  # of a table in a cell
LIBRARIES: Final = ("pandas", "polars", "pyarrow")


def tables(result: object) -> dict[str, pa.Table]:
    """All tables of an answer by their names, the main one first, with the values of its CSV."""
    return {table.name: to_arrow(table) for table in tables_of(result)}


def frame(result: object, table: str | None = None, library: str = "pandas") -> Any:
    """A table of an answer, the main one unless it is named, as a frame of pandas, polars or pyarrow."""
    import narwhals as nw

    known = tables(result)
    wanted = table or next(iter(known))
    for word, words in ((wanted, known), (library, LIBRARIES)):
        if word not in words:
            raise UsageError(f"there is no {word!r} here{not_among(word, words)}")
    rows = nw.from_native(known[wanted], eager_only=True)
    try:
        return getattr(rows, f"to_{library.removeprefix('py')}")()
    except ModuleNotFoundError as error:
        raise UsageError(f"{library} is not installed: pip install {library}") from error


def html_of(result: object) -> str:
    """The main table of an answer with its warnings, and the names of the others."""
    main, *others = tables_of(result)
    notes = [main.note] if main.note else []
    if (more := len(main.rows) - MOST_ROWS) > 0:
        notes.append(f"{more:,} more rows: `iolens.frame(result)`.")
    if others:
        notes.append(f"Further tables, by `iolens.frame(result, NAME)`: {', '.join(table.name for table in others)}.")
    return table_html(replace(main, rows=main.rows[:MOST_ROWS], note="\n".join(notes)))


def show_as_html(answers: type) -> None:
    """Have IPython, where it runs, show answers of this class as HTML; they are no classes of a common base."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is not None:
        shell.display_formatter.formatters["text/html"].for_type(answers, html_of)
