"""Tables of a controller export, piece by piece: CSV through Arrow, SQLite and MySQL through their own readers.

Whatever they come from, pieces have times in UTC, names of controllers and columns of numbers, masked where a cell is
empty or not a number.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.errors import InputError
from iolens.records import Problem
from iolens.schema import LARGEST
from iolens.sources.contents.record_fields import record_pieces
from iolens.sources.reading.bounded_input import numbered_lines
from iolens.sources.reading.local_time import LocalClock, local_text
from iolens.sources.reading.parsed_numbers import real_or_none, shown
from iolens.sources.reading.saved_text import cells_of
from iolens.sources.reading.sql_database import Opening, TableSchema
from iolens.units import SECOND_US

BLOCK_BYTES: Final = 1 << 24
EARLIEST_US, LATEST_US = 0, 4_102_444_800 * SECOND_US  # 1970 to 2100
NOTHING: Final = ("", "NULL", "null", "NaN", "nan", "\\N", "N/A")
EPOCH: Final = "epoch"
NAME_LENGTH: Final = 64

_NUMBER: Final = r"^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$"
_STAMP: Final = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?$"
_ZONED: Final = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d(?::?\d\d)?)$"
# Epoch seconds of 1973 to 5138 have nine to eleven digits before the point; milli- and microseconds more.
_EPOCH_UNITS: Final = ((1e11, SECOND_US), (1e14, 1000), (1e17, 1))

Times = NDArray[np.int64]
Column = np.ma.MaskedArray[Any, Any]


class TablePiece(NamedTuple):
    """Rows of a table, in its order. Names are positions in `names`; both may go on from piece to piece."""

    time_us: Times
    controller: NDArray[np.int64]
    names: tuple[str, ...]
    numbers: Mapping[str, Column]
    texts: Mapping[str, NDArray[np.str_]]

    def __len__(self) -> int:
        return len(self.time_us)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a table is asked for."""

    time: str
    time_format: str | None
    controller: str | None
    name: str | None
    numbers: tuple[str, ...]
    texts: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """All of them, each once."""
        return list(dict.fromkeys(filter(None, (self.time, self.controller, *self.texts, *self.numbers))))


def csv_heading(path: Path, delimiter: str) -> list[str]:
    """The names of the columns of a CSV file, plain or gzip."""
    first = next(numbered_lines(path), None)
    if first is None:
        raise InputError(str(path), "empty file", "a CSV file with a heading")
    if isinstance(first, Problem):
        raise InputError(str(path), first.reason)
    return cells_of(first.text.removeprefix("\ufeff"), delimiter)


def csv_pieces(
    path: Path, heading: Sequence[str], delimiter: str, wanted: Wanted, clock: LocalClock | None
) -> Iterator[TablePiece | Problem]:
    """The rows of a CSV file below its heading."""
    import pyarrow as pa
    from pyarrow import csv as pacsv

    odd = _OddRows()
    text = pa.string()
    types = dict.fromkeys(wanted.columns, text)
    if wanted.controller is not None:
        types[wanted.controller] = pa.dictionary(pa.int32(), text)
    converting = pacsv.ConvertOptions(
        include_columns=wanted.columns, column_types=types, strings_can_be_null=True, null_values=list(NOTHING)
    )
    maker = _PieceMaker(str(path), wanted, clock)
    stream = _CsvStream(path)
    try:
        reader = pacsv.open_csv(
            pa.PythonFile(stream, mode="r"),
            read_options=pacsv.ReadOptions(block_size=BLOCK_BYTES, column_names=heading, skip_rows=1),
            parse_options=pacsv.ParseOptions(delimiter=delimiter, invalid_row_handler=odd.skip),
            convert_options=converting,
        )
        for batch in reader:
            if batch.num_rows:
                yield from maker.from_arrow(batch)
    except pa.ArrowInvalid as error:
        if "Empty CSV" not in str(error):
            yield Problem(str(path), None, f"cannot be read further: {str(error).splitlines()[0]}")
    yield from stream.problems
    if odd.count:
        reason = f"{odd.count} rows have not {len(heading)} cells: left out, such as {shown(odd.first)}"
        yield Problem(str(path), None, reason)
    yield from maker.last_problems()


@dataclass(slots=True)
class _OddRows:
    """Rows with too few or too many cells."""

    count: int = 0
    first: str = ""

    def skip(self, row: Any) -> str:
        self.first = self.first if self.count else str(row.text)
        self.count += 1
        return "skip"


class _CsvStream(io.RawIOBase):
    """The lines of a file for Arrow, which ends at one that is too long for it or not UTF-8: neither gets there."""

    def __init__(self, path: Path) -> None:
        self.problems: list[Problem] = []
        self._place = str(path)
        self._pieces = record_pieces(path, b"\n", may_lack_end=True)
        self._held = memoryview(b"")
        self._fill()  # here, for a file that is under way is so in this thread, and Arrow reads in another

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._fill()
        count = min(len(buffer), len(self._held))
        buffer[:count] = self._held[:count]
        self._held = self._held[count:]
        return count

    def _fill(self) -> None:
        while not self._held and (piece := next(self._pieces, None)) is not None:
            if isinstance(piece, Problem):
                self.problems.append(piece)
            else:
                whole = self._without_open_quotes(piece) if b'"' in piece else piece
                escaped = whole if _is_utf8(whole) else whole.decode("utf-8", "backslashreplace").encode()
                self._held = memoryview(escaped)

    def _without_open_quotes(self, piece: bytes) -> bytes:
        """Without lines in which a quotation does not end: Arrow would look for its end in all that follows."""
        text = np.frombuffer(piece, np.uint8)
        ends = np.flatnonzero(text == ord("\n")) + 1
        if not len(ends) or ends[-1] < len(piece):
            ends = np.append(ends, len(piece))
        quotes = np.diff(np.searchsorted(np.flatnonzero(text == ord('"')), ends), prepend=0)
        odd = quotes % 2 == 1
        if not odd.any():
            return piece
        begins = np.concatenate(([0], ends[:-1]))
        first = shown(piece[begins[odd][0] : ends[odd][0]].decode("utf-8", "backslashreplace"))
        reason = f"{int(odd.sum())} lines with a quotation that does not end: left out, such as {first}"
        self.problems.append(Problem(self._place, None, reason))
        return b"".join(piece[begin:end] for begin, end in zip(begins[~odd], ends[~odd], strict=True))


def _is_utf8(piece: bytes) -> bool:
    if piece.isascii():
        return True
    try:
        piece.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class _PieceMaker:
    """Turns Arrow batches of text into pieces; reports what is not a time or a number."""

    def __init__(self, place: str, wanted: Wanted, clock: LocalClock | None) -> None:
        self.place, self.wanted, self.clock = place, wanted, clock
        self.row = 0
        self.names: dict[str, int] = {}

    def from_arrow(self, batch: Any) -> Iterator[TablePiece | Problem]:
        problems: list[Problem] = []
        time_us, known = self._times(batch.column(self.wanted.time), problems)
        codes, reported = self._controllers(batch)
        if not reported.all():
            problems.append(self._problem("row", ~reported, "no controller: left out"))
        keep = known & reported
        numbers = {name: self._numbers(batch.column(name), name, problems) for name in self.wanted.numbers}
        texts = {
            name: np.array(batch.column(name).fill_null("").to_numpy(zero_copy_only=False), np.str_)
            for name in self.wanted.texts
        }
        self.row += batch.num_rows
        yield from problems
        if keep.any():
            yield TablePiece(
                time_us[keep],
                codes[keep],
                tuple(self.names),
                {name: column[keep] for name, column in numbers.items()},
                {name: column[keep] for name, column in texts.items()},
            )

    def last_problems(self) -> Iterator[Problem]:
        if self.clock is not None:
            self.clock.finish()
            for hour in self.clock.once:
                reason = f"around {local_text(hour)} clocks were set back: taken for the first hour"
                yield Problem(self.place, None, reason)

    def _controllers(self, batch: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if self.wanted.controller is None:
            self.names.setdefault(self.wanted.name or "", 0)
            return np.zeros(batch.num_rows, np.int64), np.ones(batch.num_rows, bool)
        column = batch.column(self.wanted.controller)
        listed = [str(name).strip() for name in column.dictionary.to_pylist()]
        codes = np.array([self.names.setdefault(name, len(self.names)) for name in listed] or [0], np.int64)
        known = column.is_valid().to_numpy(zero_copy_only=False)
        return codes[column.indices.fill_null(0).to_numpy(zero_copy_only=False)], known

    def _numbers(self, column: Any, name: str, problems: list[Problem]) -> Column:
        """Whole numbers stay exact; a cell that is no number is masked and reported."""
        import pyarrow as pa
        import pyarrow.compute as pc

        trimmed = pc.utf8_trim_whitespace(column)
        for type_ in (pa.int64(), pa.float64()):
            try:
                return _masked(pc.cast(trimmed, type_))
            except pa.ArrowInvalid:
                continue
        encoded = trimmed.dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        values = [real_or_none(text, least=-LARGEST) for text in texts]
        places = encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
        numbers = np.array([np.nan if value is None else value for value in (*values, None)])[places]
        bad = np.isnan(numbers) & column.is_valid().to_numpy(zero_copy_only=False)
        if bad.any():
            first = shown(texts[places[int(np.flatnonzero(bad)[0])]])
            reason = f"{first} is not a number: {int(bad.sum())} cells taken as unknown"
            problems.append(self._problem(name, bad, reason))
        return np.ma.masked_invalid(numbers)

    def _times(self, column: Any, problems: list[Problem]) -> tuple[Times, NDArray[np.bool_]]:
        """Times in UTC, and which of them are known. Many rows share a time: each is understood once."""
        encoded = column.dictionary_encode()
        times, zoned = self._distinct_times(encoded.dictionary)
        places = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        missing = ~encoded.indices.is_valid().to_numpy(zero_copy_only=False)
        if len(encoded.dictionary):
            array = np.ma.MaskedArray(np.ma.getdata(times)[places], np.ma.getmaskarray(times)[places] | missing)
        else:
            array = np.ma.MaskedArray(np.zeros(len(column), np.int64), True)
        if not zoned:
            array = local_to_utc(array, self.clock, self.place)
        values, known = np.ma.getdata(array), ~np.ma.getmaskarray(array)
        known = known & (values > EARLIEST_US) & (values < LATEST_US)
        if not known.all():
            first = shown(str(column[int(np.flatnonzero(~known)[0])].as_py()))
            count = int((~known).sum())
            problems.append(self._problem(self.wanted.time, ~known, f"{first} is not a time: {count} rows left out"))
        return values, known

    def _distinct_times(self, texts: Any) -> tuple[Column, bool]:
        """Microseconds since 1970, and whether they are in UTC already."""
        import pyarrow as pa
        import pyarrow.compute as pc

        written = self.wanted.time_format
        if written == EPOCH or (written is None and _all_match(texts, _NUMBER)):
            seconds = [real_or_none(text.strip()) for text in texts.to_pylist()]
            return _epoch_us(np.ma.masked_invalid(np.array(seconds, np.float64))), True
        if written is not None:
            values = _masked(pc.strptime(texts, written, "us", error_is_null=True).cast(pa.int64()))
            return _without_rolled_over(values, texts, written), False
        zoned = pc.match_substring_regex(texts, _ZONED)
        if pc.any(zoned).as_py():
            return _cast_or_each(texts, zoned, pa.timestamp("us", "UTC")), True
        return _cast_or_each(texts, pc.match_substring_regex(texts, _STAMP), pa.timestamp("us")), False

    def _problem(self, what: str, wrong: NDArray[np.bool_], reason: str) -> Problem:
        line = self.row + int(np.flatnonzero(wrong)[0]) + 2  # after the heading; rows left out before are not counted
        return Problem(self.place, line, f"{what}: {reason}")


def local_to_utc(local_us: Column, clock: LocalClock | None, place: str) -> Column:
    """Local microseconds to UTC; masked where that local time never was."""
    if clock is None:
        expected = "--timezone, or timezone in [sources.controller] or [filesystems.NAME] of the configuration"
        raise InputError(place, "its times are local and name no zone", expected)
    values = np.ma.getdata(local_us)
    unknown = np.ma.getmaskarray(local_us) | (values <= EARLIEST_US) | (values >= LATEST_US)
    offsets = clock.offsets(np.where(unknown, 0, values // SECOND_US))
    unknown = unknown | np.ma.getmaskarray(offsets)
    return np.ma.MaskedArray(np.ma.getdata(local_us) - np.ma.getdata(offsets) * SECOND_US, unknown)


def _epoch_us(numbers: Column) -> Column:
    """Seconds, milli- or microseconds since 1970, distinguished by their size."""
    known = np.abs(numbers.compressed())
    usual = float(np.median(known)) if known.size else 0.0  # one damaged stamp must not move the others
    factor = next((unit for limit, unit in _EPOCH_UNITS if usual < limit), 1)
    micros = np.where(np.ma.getmaskarray(numbers), 0.0, np.ma.getdata(numbers)) * factor
    unknown = np.ma.getmaskarray(numbers) | (np.abs(micros) >= LATEST_US)
    return np.ma.MaskedArray(np.rint(np.where(unknown, 0.0, micros)).astype(np.int64), unknown)


def _whole_us(seconds: Column) -> Column:
    """Microseconds of seconds since 1970 on some clock; masked where no date is."""
    micros = np.ma.getdata(seconds) * SECOND_US
    unknown = np.ma.getmaskarray(seconds) | ~(np.abs(micros) < LATEST_US)
    return np.ma.MaskedArray(np.where(unknown, 0.0, micros).astype(np.int64), unknown)


def _without_rolled_over(values: Column, texts: Any, written: str) -> Column:
    """Arrow takes the 31st of June for the 1st of July: look again at what falls on the first days of a month."""
    unknown = np.ma.getmaskarray(values).copy()
    days = np.ma.getdata(values).astype("datetime64[us]").astype("datetime64[D]")
    early = (days - days.astype("datetime64[M]")).astype(np.int64) < 3
    for place in np.flatnonzero(early & ~unknown):
        try:
            datetime.strptime(texts[int(place)].as_py(), written)
        except ValueError:
            unknown[place] = True
    return np.ma.MaskedArray(np.ma.getdata(values), unknown)


def _cast_or_each(texts: Any, good: Any, type_: Any) -> Column:
    """ISO-8601 times; one that cannot be, such as the 31st of June, is masked."""
    import pyarrow as pa
    import pyarrow.compute as pc

    chosen = pc.if_else(good, texts, None)
    try:
        times = pc.cast(chosen, type_)
    except pa.ArrowInvalid:
        times = pa.array([_time(item.as_py()) for item in chosen], pa.timestamp("us", type_.tz))
    return _masked(times.cast(pa.int64()))


def _time(text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None


def _all_match(column: Any, pattern: str) -> bool:
    import pyarrow.compute as pc

    result = pc.match_substring_regex(column.drop_null()[:100], pattern)
    return len(result) > 0 and bool(pc.all(result).as_py())


def _masked(array: Any) -> Column:
    unknown = ~array.is_valid().to_numpy(zero_copy_only=False)
    plain = array.fill_null(0).to_numpy(zero_copy_only=False)
    return np.ma.MaskedArray(plain, unknown | (np.isnan(plain) if plain.dtype.kind == "f" else False))


def find_table(schema: Mapping[str, TableSchema], name: str, place: str) -> TableSchema:
    """The table or view of that name."""
    table = schema.get(name.upper())
    if table is None:
        listed = ", ".join(sorted(table_schema.name for table_schema in schema.values())) or "none"
        raise InputError(place, f"no table {name!r}", f"one of its tables: {listed}")
    return table


def check_columns(columns: Collection[str], wanted: Sequence[str], place: str) -> None:
    """InputError that names the columns that are missing."""
    if missing := [name for name in wanted if name not in columns]:
        listed = ", ".join(sorted(columns)[:20])
        raise InputError(place, f"no column {', '.join(missing)}", f"columns as configured; there are {listed}")


def sql_pieces(
    opening: Opening, table_name: str, wanted: Wanted, clock: LocalClock | None
) -> Iterator[TablePiece | Problem]:
    """The rows of a table or view in time order, read as they come."""
    with opening.open() as database:
        table = find_table(database.schema(), table_name, opening.place)
        column = {name: table.column(name.upper()) for name in wanted.columns}
        time = column[wanted.time]
        is_epoch = wanted.time_format == EPOCH or _is_numeric(table, wanted.time)
        in_utc = is_epoch or database.keeps_utc(table, wanted.time.upper())
        seconds = database.real(time) if is_epoch else database.local_seconds(time)
        named = [column[wanted.controller]] if wanted.controller else []
        chosen = [
            seconds,
            *named,
            *(column[name] for name in wanted.texts),
            *(database.real(column[name]) for name in wanted.numbers),
        ]
        fields = [
            ("time", "f8"),
            *(("controller", f"U{NAME_LENGTH}") for _ in named),
            *((f"text {name}", f"U{NAME_LENGTH}") for name in wanted.texts),
            *((f"number {name}", "f8") for name in wanted.numbers),
        ]
        sql = f"SELECT {', '.join(chosen)} FROM {table.quoted} ORDER BY {time}"  # noqa: S608 (the schema's names)
        maker = _RowMaker(opening.place, wanted, None if in_utc else clock, in_utc, is_epoch)
        for rows in database.pieces(sql, (), np.dtype(fields)):
            yield from maker.from_rows(rows)
    yield from maker.last_problems()


def _is_numeric(table: TableSchema, name: str) -> bool:
    kind = table.columns[name.upper()][1]
    return bool(re.search(r"int|real|float|double|decimal|numeric", kind))


class _RowMaker:
    """Turns structured arrays of a database into pieces."""

    def __init__(self, place: str, wanted: Wanted, clock: LocalClock | None, in_utc: bool, is_epoch: bool) -> None:
        self.place, self.wanted, self.clock, self.in_utc, self.is_epoch = place, wanted, clock, in_utc, is_epoch
        self.names: dict[str, int] = {}

    def from_rows(self, rows: NDArray[np.void]) -> Iterator[TablePiece | Problem]:
        raw = np.ma.MaskedArray(np.nan_to_num(rows["time"]), np.isnan(rows["time"]))
        stamps = _epoch_us(raw) if self.is_epoch else _whole_us(raw)
        array = stamps if self.in_utc else local_to_utc(stamps, self.clock, self.place)
        values = np.ma.getdata(array)
        known = ~np.ma.getmaskarray(array) & (values > EARLIEST_US) & (values < LATEST_US)
        if not known.all():
            yield Problem(self.place, None, f"{self.wanted.time}: {int((~known).sum())} rows without a time: left out")
        if not known.any():
            return
        numbers = {name: np.ma.masked_invalid(rows[f"number {name}"][known]) for name in self.wanted.numbers}
        texts = {name: rows[f"text {name}"][known] for name in self.wanted.texts}
        yield TablePiece(values[known], self._codes(rows[known]), tuple(self.names), numbers, texts)

    def _codes(self, rows: NDArray[np.void]) -> NDArray[np.int64]:
        if self.wanted.controller is None:
            self.names.setdefault(self.wanted.name or "", 0)
            return np.zeros(len(rows), np.int64)
        values, which = np.unique(rows["controller"], return_inverse=True)
        codes = np.array([self.names.setdefault(str(name).strip(), len(self.names)) for name in values], np.int64)
        return codes[which]

    def last_problems(self) -> Iterator[Problem]:
        if self.clock is not None:
            self.clock.finish()
            for hour in self.clock.once:
                reason = f"around {local_text(hour)} clocks were set back: taken for the first hour"
                yield Problem(self.place, None, reason)
