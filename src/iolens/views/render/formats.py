"""A result in the format asked for, to standard output or a file.

The view of a result is found by name (`view_names.py`): `views/blame.py` gives `tables(result)`, the main one first,
and `figures(result)`, the first one the default; `FIGURES` are the names of all. A large view is a package with a
module for each.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from iolens.errors import UsageError
from iolens.nearest_names import not_among
from iolens.views.render import atomic
from iolens.views.render.doubts import on_figure, on_tables, unsaid, warnings
from iolens.views.render.view_names import view_module, view_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from iolens.views.render.figures import Figure
    from iolens.views.render.tables import TableView

Format = Literal["table", "json", "csv", "parquet", "markdown"]
LIST: Final = "list"  # asked for in place of a figure or a table
FORMATS: Final[tuple[Format, ...]] = ("table", "json", "csv", "parquet", "markdown")


def render(
    result: object,
    format: Format,  # noqa: A002
    output: Path | None = None,
    width: int | None = None,
    *,
    table: str | None = None,
    wide: bool = False,
) -> None:
    """Write the result to `output`, or to standard output; `width` is the terminal's unless given.

    Only the `table` of that name, if one is named; `wide` shows all columns, however narrow the terminal is.
    """
    from iolens.views.render import json_text, tables

    check_output(format, output)
    is_terminal = output is None and sys.stdout.isatty()
    content: str | bytes
    if format == "json":
        content = json_text.to_json(result)
    elif format == "csv":
        content = tables.to_csv(_chosen(result, table)[0])
    elif format == "parquet":
        content = tables.to_parquet(_chosen(result, table)[0])
    elif format == "markdown":
        content = tables.to_markdown(_chosen(result, table))
    elif format == "table":
        columns = width or (shutil.get_terminal_size().columns if is_terminal else None)
        content = tables.to_terminal(_chosen(result, table), columns, colour=is_terminal, wide=wide)
    else:
        raise UsageError(f"unknown format {format!r}; there are {', '.join(FORMATS)}")
    if output is not None:
        atomic.write(output, content)
        return
    encoding = sys.stdout.encoding or "utf-8"
    text = content if isinstance(content, str) else content.decode()
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


def tables_of(result: object) -> list[TableView]:
    """All tables of a result, the main one first, each with a name of its own."""
    tables = on_tables(result, view_of(result, "tables").tables(result))
    before = Counter[str]()
    for place, table in enumerate(tables):  # of two file systems side by side the second one's are `per_target_2`
        name = table.name or "table"
        before[name] += 1
        tables[place] = replace(table, name=name if before[name] == 1 else f"{name}_{before[name]}")
    return tables


def _chosen(result: object, wanted: str | None) -> list[TableView]:
    tables = tables_of(result)
    if wanted is None:
        return tables
    names = [table.name for table in tables]
    if wanted not in names:
        raise UsageError(f"no table {wanted!r} here{not_among(wanted, names)}")
    said = warnings(result, tables)  # the table alone gives them all too
    return [
        replace(table, warnings=(*unsaid(said, [table]), *table.warnings)) for table in tables if table.name == wanted
    ]


def figures_of(result: object) -> dict[str, Callable[[], Figure]]:
    """All figures of a result by name, the default one first, each described only when called."""
    figures: dict[str, Callable[[], Figure]] = view_of(result, "figures", "tables").figures(result)
    return {name: _described(result, describe) for name, describe in figures.items()}


def _described(result: object, describe: Callable[[], Figure]) -> Callable[[], Figure]:
    return lambda: on_figure(result, describe())


def check_figures(view: str, requests: Sequence[str]) -> None:
    """Refuse a figure that the view never draws and a kind of file that none is, before anything is computed."""
    from iolens.views.render.figures import check_suffix

    names = view_module(view, "figures").FIGURES
    for request in requests:
        if request != LIST:
            path = _asked(request, names)[1]
            check_suffix(path)
            atomic.check_place(path)


def draw_figures(result: object, requests: Sequence[str]) -> list[Path]:
    """Draw `FILE` (the first figure) or `NAME=FILE` for each request; every request is checked before any is drawn."""
    from iolens.views.render.figures import check_suffix, draw

    figures = figures_of(result)
    asked = [_asked(request, list(figures)) for request in requests]
    for _, path in asked:
        check_suffix(path)
    for name, path in asked:
        draw(figures[name](), path)
    return [path for _, path in asked]


def _asked(request: str, names: Sequence[str]) -> tuple[str, Path]:
    name, equals, file = request.partition("=")
    if not equals or "/" in name or "." in name:
        return names[0], Path(request)
    if name not in names:
        raise UsageError(f"no figure {name!r} here{not_among(name, names)}")
    return name, Path(file)


def check_output(format: Format, output: Path | None) -> None:  # noqa: A002
    """Refuse bytes where text is read, and a place that cannot be written."""
    if output is not None:
        atomic.check_place(output)
    if format != "parquet":
        return
    if output is None:
        raise UsageError("parquet is binary: name a file with --output")
    if output.is_char_device() and output.name != "null":
        raise UsageError(f"{output}: parquet is binary and this is a terminal; name a file with --output")
