"""A table as a plain description, and its renderings: terminal, markdown, CSV and Parquet.

People see formatted values with units and `–` for what is missing; machines get the numbers as they are. Names of
others are made visible here, as each output needs it.
"""

from __future__ import annotations

import csv
import io
import math
import re
import textwrap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from iolens.units import format_bytes, format_bytes_si
from iolens.views.render.doubts import WARNING
from iolens.views.render.escaped_text import markdown_cell, markdown_lines
from iolens.views.render.json_text import plain_value
from iolens.views.render.shown_times import show_time as show_time
from iolens.views.render.shown_times import zone_name
from iolens.visible_text import counted, shortened, shown_lines, shown_name, visible, with_short_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa
    from rich.table import Table as RichTable

MISSING: Final = "–"
_UNBOUNDED: Final = 1_000_000  # columns: wider than any table
_SHORT: Final = 40  # characters: a cell of words no longer than this is not broken; a longer one is a sentence
_SENTENCE: Final = 24  # columns: no sentence is narrower, nor is a shorter cell of a sideways table broken
_GUTTER: Final = 3  # columns between two columns
_LONGEST_CELL: Final = 1000  # characters of words in a cell
_FORMULA: Final = (
    "=",
    "+",
    "-",
    "@",
    "\N{FULLWIDTH EQUALS SIGN}",
    "\N{FULLWIDTH PLUS SIGN}",
)  # spreadsheets compute these
_LENGTHS: Final = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))

Kind = Literal["text", "integer", "number", "time", "date"]
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: its machine name (with its unit), what people read above it, and how a value is shown."""

    name: str
    heading: str
    kind: Kind
    show: Callable[[Any], str]
    unit: str = ""

    @property
    def align(self) -> Literal["left", "right"]:
        """Numbers to the right, the rest to the left."""
        return "right" if self.kind in ("integer", "number") else "left"

    @property
    def label(self) -> str:
        """What stands beside the value: the heading, of times with their zone."""
        return f"{self.heading} ({zone_name()})" if self.kind == "time" else self.heading

    @property
    def heading_with_unit(self) -> str:
        """`Mean FSU (%)`."""
        return f"{self.heading} ({self.unit})" if self.unit else self.label

    def cell(self, value: Any) -> str:
        """The value for people, without unit."""
        return MISSING if is_missing(value) else self.show(value)

    def cell_with_unit(self, value: Any) -> str:
        """The value for people where no heading gives the unit."""
        return self.cell(value) if is_missing(value) or not self.unit else f"{self.show(value)} {self.unit}"


@dataclass(frozen=True, slots=True)
class TableView:
    """Rows under columns; `sideways` tables print one line per column, for few rows with many facts.

    `warnings` stand before the rows: what to know before the numbers are believed. By its `name`, a noun that no other
    table of the answer has, a table can be asked for alone. Where a terminal is narrow the last columns are left out
    first, those that `keep` names last of all.
    """

    title: str
    columns: tuple[TableColumn, ...]
    rows: list[Row]
    note: str = ""
    sideways: bool = False
    warnings: tuple[str, ...] = ()
    name: str = ""
    keep: tuple[str, ...] = ()


def sentence(note: str) -> str:
    """A note with a capital letter and a full stop."""
    return f"{note[:1].upper()}{note[1:]}."


def row_of(result: object, columns: Sequence[TableColumn], own: Mapping[str, Any] | None = None) -> Row:
    """A line of the result's fields, by the columns' names; `own` are cells that are no field as it is."""
    cells = own or {}
    return tuple(cells[column.name] if column.name in cells else getattr(result, column.name) for column in columns)


def rows_of(results: Iterable[object], columns: Sequence[TableColumn]) -> list[Row]:
    """A line for each result."""
    return [row_of(result, columns) for result in results]


def telling(
    columns: tuple[TableColumn, ...], rows: list[Row], usual: Mapping[str, tuple[object, ...]]
) -> tuple[tuple[TableColumn, ...], list[Row]]:
    """Without columns that are empty, or say only what is usual."""
    kept = [
        place
        for place, column in enumerate(columns)
        if any(row[place] not in usual.get(column.name, (None,)) for row in rows)
    ]
    return tuple(columns[place] for place in kept), [tuple(row[place] for place in kept) for row in rows]


def text(name: str, heading: str) -> TableColumn:
    """Words; a list of words is joined, an empty one is `none`."""
    return TableColumn(name, heading, "text", _show_text)


def count(name: str, heading: str) -> TableColumn:
    """An integer, with thousands apart."""
    return TableColumn(name, heading, "integer", lambda value: f"{value:,}")


def number(name: str, heading: str, unit: str = "", form: str = ",.3g") -> TableColumn:
    """A number shown with a format specification."""
    return TableColumn(name, heading, "number", lambda value: format(value, form), unit)


def percent(name: str, heading: str) -> TableColumn:
    """A share of a hundred."""
    return TableColumn(name, heading, "number", show_percent, "%")


def volume(name: str, heading: str) -> TableColumn:
    """Bytes moved, in powers of ten (`133 TB`)."""
    return TableColumn(name, heading, "integer", format_bytes_si)


def rate(name: str, heading: str) -> TableColumn:
    """Bytes per second, in powers of ten (`35 GB/s`)."""
    return TableColumn(name, heading, "number", lambda value: f"{format_bytes_si(value)}/s")


def size(name: str, heading: str) -> TableColumn:
    """The size of an I/O, in powers of two (`4 KiB`)."""
    return TableColumn(name, heading, "integer", format_bytes)


def time(name: str, heading: str) -> TableColumn:
    """A time in the zone that times are shown in, to the second."""
    return TableColumn(name, heading, "time", show_time)


def day(name: str, heading: str) -> TableColumn:
    """A calendar day."""
    return TableColumn(name, heading, "date", lambda value: str(value.isoformat()))


def show_percent(value: float) -> str:
    """One decimal; more digits where that would round to nothing, or to all of what is less than all."""
    if is_missing(value):
        return MISSING
    if 0 < abs(value) < 0.1:
        return f"{value:.2g}"
    if 99.9 < value < 100.0:
        return next((text for digits in range(1, 10) if float(text := f"{value:.{digits}f}") < 100.0), "100.0")
    return f"{value:.1f}"


def show_whole_percent(value: float) -> str:
    """No decimal; more digits where that would round to nothing, or to all of what is less than all."""
    text = f"{value:.0f}"
    return text if value in (0.0, 100.0) or text not in ("0", "-0", "100", "nan", "inf") else show_percent(value)


def show_seconds(value: float) -> str:
    """`58 s`, `4.5 min`, `3 h`."""
    if is_missing(value):
        return MISSING
    size, unit = next((pair for pair in _LENGTHS if value >= 1.5 * pair[0]), _LENGTHS[-1])
    return f"{value / size:,.0f} {unit}" if value / size >= 999.5 else f"{value / size:.3g} {unit}"


def is_missing(value: Any) -> bool:
    """Whether there is no such value: None, NaN or infinite."""
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def to_terminal(
    tables: Sequence[TableView], width: int | None = None, colour: bool = False, *, wide: bool = False
) -> str:
    """All tables as text, at most `width` columns wide (None: as wide as they are); no cell is ever cut off.

    Sentences wrap. Of a table with no space for all of its columns the least important ones are left out, and a line
    says how many; with `wide` all are shown, however long the lines become.
    """
    return "\n".join(_terminal_block(table, width, colour, wide) for table in tables)


def to_markdown(tables: Sequence[TableView], level: int = 2) -> str:
    """All tables as GitHub-flavoured markdown, their titles as headings of that level."""
    return "\n".join(_markdown_block(table, level) for table in tables)


def to_csv(table: TableView) -> str:
    """One table with unformatted values: machine names above, empty where missing."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(column.name for column in table.columns)
    writer.writerows([_csv_cell(value) for value in row] for row in table.rows)
    return out.getvalue()


def to_arrow(table: TableView) -> pa.Table:
    """One table with unformatted values; the column types do not depend on them."""
    import pyarrow as pa

    types: dict[Kind, Any] = {
        "text": pa.string(), "integer": pa.int64(), "number": pa.float64(),
        "time": pa.timestamp("us", tz="UTC"), "date": pa.date32(),
    }  # fmt: skip
    schema = pa.schema([(column.name, types[column.kind]) for column in table.columns])
    arrays = [
        pa.array([_typed(row[place], column.kind) for row in table.rows], types[column.kind])
        for place, column in enumerate(table.columns)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def to_parquet(table: TableView) -> bytes:
    """The same as a Parquet file."""
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(to_arrow(table), out, compression="zstd")
    return out.getvalue()


def _show_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(shown_name(str(item)) for item in value) or "none"
    return shortened(with_short_words(visible(str(value))), _LONGEST_CELL)


def _machine_cell(value: Any) -> Any:
    plain = plain_value(value)
    return ";".join(map(str, plain)) if isinstance(plain, list) else plain


def _csv_cell(value: Any) -> Any:
    """As it is, but for text that a terminal obeys or a spreadsheet would compute."""
    cell = _machine_cell(value)
    if not isinstance(cell, str):
        return cell
    seen = visible(cell)
    return f"'{seen}" if seen.startswith(_FORMULA) else seen


def _typed(value: Any, kind: Kind) -> Any:
    if is_missing(value) or kind in ("time", "date"):
        return None if is_missing(value) else value
    cell = _machine_cell(value)
    return _storable(str(cell)) if kind == "text" else round(cell) if kind == "integer" else float(cell)


def _storable(text: str) -> str:
    """Text that can be written as UTF-8: a byte that is none is shown by its number."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


# Cells as people see them: headings on top, or headings at the left with one column of values per row.


def headings(table: TableView) -> list[str]:
    """What stands above the cells."""
    if not table.sideways:
        return [column.heading_with_unit for column in table.columns]
    first = table.columns[0]
    return [first.label, *(first.cell(row[0]) for row in table.rows)]


def body(table: TableView) -> list[list[str]]:
    """The cells, line by line."""
    if not table.sideways:
        return [[column.cell(value) for column, value in zip(table.columns, row, strict=True)] for row in table.rows]
    lines = list(enumerate(table.columns))[1:]
    return [[column.label, *(column.cell_with_unit(row[place]) for row in table.rows)] for place, column in lines]


def aligns(table: TableView) -> list[Literal["left", "right"]]:
    """To which side the cells of each column lean."""
    return ["left"] * (1 + len(table.rows)) if table.sideways else [column.align for column in table.columns]


def _terminal_block(table: TableView, width: int | None, colour: bool, wide: bool) -> str:
    from rich.console import Console
    from rich.text import Text

    out = io.StringIO()
    console = Console(
        file=out, width=_UNBOUNDED, force_terminal=colour, color_system="auto" if colour else None,
        force_jupyter=False, legacy_windows=False, highlight=False, markup=False, emoji=False,
    )  # fmt: skip
    console.print(Text(with_short_words(visible(table.title)), style="bold"), width=width)
    for warning in table.warnings:
        for line in shown_lines(f"{WARNING} {warning}").splitlines():
            console.print(Text(_wrapped(line, width), style="bold"))
    if table.rows:
        limit = None if wide else width
        shown, left_out = (table, 0) if limit is None else fitting(table, limit)
        console.print(_rich_table(shown, limit))
        if left_out:
            console.print(Text(f"{counted(left_out, 'column')} not shown: --wide"))
    for line in shown_lines(table.note).splitlines():
        console.print(Text(_wrapped(line, width)))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _rich_table(table: TableView, width: int | None) -> RichTable:
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for heading, align, wide in zip(headings(table), aligns(table), _widths(table, width), strict=True):
        grid.add_column(Text(heading), justify=align, width=wide, vertical="top", overflow="fold")
    for line in body(table):
        grid.add_row(*map(Text, line))
    return grid


def fitting(table: TableView, width: int) -> tuple[TableView, int]:
    """The table with as many columns as there is space for, and how many are left out."""
    least = _least_widths(table)
    shown, names = list(range(len(least))), [column.name for column in table.columns]
    is_kept = [not table.sideways and names[place] in table.keep for place in shown]
    for place in sorted(shown[1:], key=lambda place: (is_kept[place], -place))[:-1]:
        if sum(least[place] for place in shown) + _GUTTER * (len(shown) - 1) <= width:
            break
        shown.remove(place)
    if table.sideways:
        rows = [table.rows[place - 1] for place in shown[1:]]
        return replace(table, rows=rows), len(least) - len(shown)
    rows = [tuple(row[place] for place in shown) for row in table.rows]
    return replace(table, columns=tuple(table.columns[place] for place in shown), rows=rows), len(least) - len(shown)


def _least_widths(table: TableView) -> list[int]:
    """How narrow each column can be: numbers, times and names stay whole, sentences wrap."""
    columns = list(zip(headings(table), *body(table), strict=True))
    words = [True] * len(columns) if table.sideways else [column.kind == "text" for column in table.columns]
    short = _SENTENCE if table.sideways else _SHORT
    return [
        max(
            _longest_heading_word(heading), *(_least_width(cell, short) if is_text else _length(cell) for cell in cells)
        )
        for (heading, *cells), is_text in zip(columns, words, strict=True)
    ]


def _widths(table: TableView, width: int | None) -> list[int]:
    """Columns as wide as they like, narrowed to `width` as far as numbers and all but very long words stay whole."""
    columns = zip(headings(table), *body(table), strict=True)
    wide, least = [max(map(_length, cells)) for cells in columns], _least_widths(table)
    excess = sum(wide) + _GUTTER * (len(wide) - 1) - (_UNBOUNDED if width is None else width)
    while excess > 0 and wide != least:
        _, place = max((wide[i], i) for i in range(len(wide)) if wide[i] > least[i])
        wide[place] -= 1
        excess -= 1
    return wide


def _length(cell: str) -> int:
    from rich.cells import cell_len

    return cell_len(cell)


def _longest_heading_word(heading: str) -> int:
    return max(map(_length, heading.split()), default=0)


def _least_width(cell: str, short: int) -> int:
    """A short cell stays whole; a longer one is a sentence or a list and wraps, between words or inside a long one."""
    return _length(cell) if len(cell) <= short else min(max(_SENTENCE, *map(_length, cell.split())), _SHORT)


def _wrapped(line: str, width: int | None) -> str:
    """Lines of at most `width`; a number and its unit stay together."""
    if width is None:
        return line
    tied = re.sub(r"(?<=[0-9]) (?=\S)", "\0", line)
    return textwrap.fill(tied, width, break_long_words=False, break_on_hyphens=False).replace("\0", " ")


def _markdown_block(table: TableView, level: int) -> str:
    parts = [f"{'#' * level} {markdown_cell(table.title)}\n"]
    parts += [f"> **{WARNING}** {markdown_cell(warning)}\n" for warning in table.warnings]
    if table.rows:
        rules = ["---:" if align == "right" else "---" for align in aligns(table)]
        cells = [[markdown_cell(cell) for cell in line] for line in (headings(table), *body(table))]
        parts.append("".join(f"| {' | '.join(line)} |\n" for line in (cells[0], rules, *cells[1:])))
    if table.note:
        parts.append("  \n".join(markdown_lines(table.note)) + "\n")
    return "\n".join(parts)
