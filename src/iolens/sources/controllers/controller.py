"""Exports of storage controllers in the manner of Spider: CSV, SQLite or MySQL, columns mapped in the configuration.

Bandwidth and operations every few seconds become `target_io` of kind controller, rebuild and verify apart; request
sizes in linear bins become `target_histograms`. A year of 48 controllers is hundreds of millions of rows: it streams.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from iolens.errors import InputError
from iolens.records import Capture, Item, Problem
from iolens.sources.controllers.layout import DEFAULT, ControllerLayout, SizeColumns, layout_of
from iolens.sources.controllers.rows import IoReader, Reader, SizesReader
from iolens.sources.controllers.tables import (
    TablePiece,
    Wanted,
    check_columns,
    csv_heading,
    csv_pieces,
    find_table,
    sql_pieces,
)
from iolens.sources.reading.bounded_input import head_of, unpacked
from iolens.sources.reading.captures import read_each, refusal
from iolens.sources.reading.local_time import LocalClock, find_zone
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.saved_text import needed_filesystem, supplied_identity, zone_name
from iolens.sources.reading.sql_database import SQLITE_MAGIC, MysqlOpening, Opening, SqliteOpening, TableSchema
from iolens.units import SECOND_US, epoch_us

IO, SIZES = "io", "sizes"


class Controller:
    """Exports of storage controllers."""

    name = "controller"
    summary = "exports of storage controllers: CSV, SQLite or MySQL, columns as configured in [sources.controller]"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether a CSV file begins with the default columns; other layouts must be named and configured."""
        if head.startswith(SQLITE_MAGIC):
            return False
        first = unpacked(head).split(b"\n", 1)[0].decode("utf-8", "replace").strip().removeprefix("\ufeff")
        heading = {cell.strip() for cell in first.split(DEFAULT.delimiter)}
        return bool(_roles(DEFAULT, heading)) and {DEFAULT.time, DEFAULT.controller} <= heading

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per file and kind of content."""
        layout = layout_of(options.settings)
        groups, refused = read_each(paths, partial(_listed, layout=layout, options=options))
        yield from refused
        tables = [table for listed in groups for table in listed]
        split = _split_rows(tables)
        for table in tables:
            if table.role == IO and table.place in split:
                yield refusal(table.place, split[table.place])
            else:
                yield Capture(table.place, table.identity, table.items)

    def url_captures(self, urls: Sequence[str], options: ReadOptions) -> Iterator[Capture]:
        """The same from live databases: `mysql://user@host/database`."""
        layout = layout_of(options.settings)
        list_tables = partial(_listed_in, layout=layout, options=options, path=None)
        groups, refused = read_each([MysqlOpening(url) for url in urls], list_tables, lambda opening: opening.place)
        yield from refused
        for table in (table for tables in groups for table in tables):
            yield Capture(table.place, table.identity, table.items)


SOURCE: Final = Controller()


@dataclass(frozen=True, slots=True)
class _ControllerTable:
    """One kind of content of one file or database table, and how to read it again."""

    place: str
    role: str
    origin: Path | Opening
    table: str | None
    wanted: Wanted
    layout: ControllerLayout
    options: ReadOptions
    filesystem: str
    bins: Mapping[str, tuple[str, int]]
    identity: str
    heading: tuple[str, ...] = ()  # of a file

    def items(self) -> Iterator[Item]:
        clock = self._clock()
        if isinstance(self.origin, Path):
            pieces = csv_pieces(self.origin, self.heading, self.layout.delimiter, self.wanted, clock)
        else:
            pieces = sql_pieces(self.origin, self.table or "", self.wanted, clock)
        reader = self._reader()
        has_rows = False
        for piece in pieces:
            if isinstance(piece, Problem):
                yield piece
            else:
                has_rows = True
                yield from reader.take(_in_window(piece, self.options))
        yield from reader.end()
        if not has_rows:
            yield Problem(self.place, None, "no row that could be read")

    def _clock(self) -> LocalClock | None:
        """A clock for local times where a zone is stated; times with a zone of their own need none."""
        name = zone_name(self.options, self.filesystem)
        return None if name is None else LocalClock(find_zone(name, self.place))

    def _reader(self) -> Reader:
        common = (self.place, self.filesystem, self.interval_us)
        if self.role == SIZES:
            return SizesReader(*common, self.layout.sizes or SizeColumns(), self.bins)
        return IoReader(
            *common, [measure for measure in self.layout.measures if set(measure.names) <= set(self.wanted.numbers)]
        )

    @property
    def interval_us(self) -> int | None:
        """As configured or supplied; None: to be found."""
        if self.options.interval_s:
            return round(self.options.interval_s * SECOND_US)
        sizes = self.layout.sizes
        return sizes.interval_us if self.role == SIZES and sizes is not None else self.layout.interval_us


def _in_window(piece: TablePiece, options: ReadOptions) -> TablePiece:
    if options.since is None and options.until is None:
        return piece
    begin = epoch_us(options.since) if options.since is not None else 0
    end = epoch_us(options.until) if options.until is not None else np.iinfo(np.int64).max
    keep = (piece.time_us >= begin) & (piece.time_us < end)
    return TablePiece(
        piece.time_us[keep],
        piece.controller[keep],
        piece.names,
        {name: column[keep] for name, column in piece.numbers.items()},
        {name: column[keep] for name, column in piece.texts.items()},
    )


def _listed(path: Path, layout: ControllerLayout, options: ReadOptions) -> list[_ControllerTable]:
    """What a file holds."""
    is_sqlite = head_of(path).startswith(SQLITE_MAGIC)
    if is_sqlite:
        return _listed_in(SqliteOpening(path), layout, options, path)
    place = str(path)
    filesystem = needed_filesystem(options, place)
    heading = csv_heading(path, layout.delimiter)
    roles = _roles(layout, set(heading))
    if not roles:
        expected = "columns as configured in [sources.controller]; there are " + ", ".join(heading[:20])
        raise InputError(place, "none of the columns of bandwidth or sizes is here", expected, 1)
    tables = []
    for role in roles:
        wanted, bins = _wanted(layout, role, heading)
        check_columns(heading, wanted.columns, place)
        identity = supplied_identity(path, role=role, filesystem=filesystem, **_said(options))
        table = _ControllerTable(place, role, path, None, wanted, layout, options, filesystem, bins, identity)
        tables.append(replace(table, heading=tuple(heading)))
    return tables


def _listed_in(
    opening: Opening, layout: ControllerLayout, options: ReadOptions, path: Path | None
) -> list[_ControllerTable]:
    """What a database holds: the tables that are configured."""
    place = opening.place
    filesystem = needed_filesystem(options, place)
    named = {IO: layout.table, SIZES: layout.sizes.table if layout.sizes is not None else None}
    if not any(named.values()):
        raise InputError(
            place, "no table is configured", "table in [sources.controller], or in [sources.controller.sizes]"
        )
    tables = []
    with opening.open() as database:
        schema = database.schema()
        for role, name in named.items():
            if name is None:
                continue
            table = find_table(schema, name, place)
            heading = [spelt for spelt, _ in table.columns.values()]
            wanted, bins = _wanted(layout, role, heading)
            check_columns({spelt.upper() for spelt in heading}, [column.upper() for column in wanted.columns], place)
            content = None if path is not None else _extent(database, table, wanted)
            said = _said(options) | {"role": role, "filesystem": filesystem, "table": name}
            identity = supplied_identity(path, **said) if path is not None else _hashed(place, said, content)
            full = f"{place} {table.name}"
            tables.append(
                _ControllerTable(full, role, opening, name, wanted, layout, options, filesystem, bins, identity)
            )
    return tables


def _extent(database: Any, table: TableSchema, wanted: Wanted) -> tuple[Any, ...]:
    """How many rows, and from when to when: a table that has grown is another capture."""
    time = table.column(wanted.time.upper())
    sql = f"SELECT COUNT(*), MIN({time}), MAX({time}) FROM {table.quoted}"  # noqa: S608 (the schema's names)
    return tuple(database.rows(sql)[0])


def _hashed(place: str, said: Mapping[str, object], content: object) -> str:
    return "controller/" + hashlib.sha256(repr([place, sorted(said.items()), content]).encode()).hexdigest()


def _said(options: ReadOptions) -> dict[str, object]:
    said: dict[str, object] = {
        "timezone": options.timezone or options.zones.get(options.filesystem or ""),
        "interval": options.interval_s,
        "since": options.since,
        "until": options.until,
    }
    return said | ({"settings": repr(sorted(options.settings.items()))} if options.settings else {})


def _roles(layout: ControllerLayout, heading: set[str]) -> list[str]:
    """What a heading tells."""
    roles = []
    if any(not heading.isdisjoint(measure.names) for measure in layout.measures):
        roles.append(IO)
    sizes = layout.sizes
    if sizes is not None:
        long_columns = set(sizes.long_columns())
        if sizes.columns(heading) or (long_columns and long_columns <= heading):
            roles.append(SIZES)
    return roles


def _wanted(layout: ControllerLayout, role: str, heading: Sequence[str]) -> tuple[Wanted, dict[str, tuple[str, int]]]:
    """The columns to read, and which of them count which bin."""
    common = (layout.time_format, layout.controller, layout.name)
    if role == IO:
        measures = [
            measure for measure in layout.measures if not layout.is_default or set(measure.names) <= set(heading)
        ]
        names = tuple(dict.fromkeys(name for measure in measures for name in measure.names))
        return Wanted(layout.time, *common, names), {}
    sizes = layout.sizes or SizeColumns()
    bins = sizes.columns(heading)
    time, controller = sizes.time or layout.time, sizes.controller or layout.controller
    if sizes.wide:
        if not bins:
            patterns = " and ".join(pattern for _, pattern in sizes.wide)
            raise InputError("[sources.controller]", f"no column fits {patterns}", f"one of {', '.join(heading[:20])}")
        return Wanted(time, layout.time_format, controller, layout.name, tuple(bins)), bins
    counts = tuple(name for _, name in sizes.counts)
    texts = (sizes.direction,) if sizes.direction else ()
    return Wanted(time, layout.time_format, controller, layout.name, (sizes.size or "", *counts), texts), {}


def _split_rows(tables: Sequence[_ControllerTable]) -> dict[str, InputError]:
    """Why tables are refused, by place: bandwidth in one and operations in another would be two rows for one interval.

    The one with most columns is taken, and those that have none but its columns.
    """
    reported = [(set(table.wanted.numbers), table.place) for table in tables if table.role == IO]
    fullest, where = max(reported, key=lambda pair: len(pair[0]), default=(set(), ""))
    expected = "all columns of target_io in one table: join them first"
    return {
        place: InputError(place, f"it has other columns than {where}", expected)
        for columns, place in reported
        if not columns <= fullest
    }
