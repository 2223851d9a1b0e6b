"""What the sources of drives share: units converted once, numbers as tools write them, dates in names of files.

Whatever tool printed it, a row of `drives` is one drive at one time. A field that cannot be read is NULL and reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Item, Problem
from iolens.schema import LARGEST
from iolens.sources.reading.batches import ROWS_PER_BATCH, RowBatch
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import count_in_json, count_or_none, number_in_json, real_or_none, shown
from iolens.sources.reading.saved_text import stated_zone
from iolens.units import MIB, epoch_us

TABLE: Final = "drives"
DATA_UNIT_BYTES: Final = 512_000  # NVMe counts thousands of 512 bytes
INTEL_UNIT_BYTES: Final = 32 * MIB  # of Intel's own counters of host and NAND bytes
LATEST_S: Final = 4_102_444_800  # the year 2100
PERCENT_END: Final = 255.0  # NVMe's percentage used goes beyond 100, up to here
SAME_SHARE: Final = 0.01  # two counters of the same bytes, read seconds apart, differ by less
SAME_BYTES: Final = 1 << 30

_ABSENT: Final = frozenset({"", "nan", "none", "null", "n/a", "na", "-"})
_UNREPORTED_SERIAL: Final = re.compile(r"(?:redacted|unknown|none|null|n/?a|[0x*.\-\s]*)", re.IGNORECASE)
_GROUPED: Final = re.compile(r"\d{1,3}(?:[.,'\u2019\s\u00a0\u202f]\d{2,3})*[.,'\u2019\s\u00a0\u202f]\d{3}")
_HEXADECIMAL: Final = re.compile(r"0[xX][0-9a-fA-F]++")
_LONGEST: Final = 200  # characters of a number and what tools print beside it
_SEPARATOR: Final = re.compile(r"[^a-z0-9]")
_DATE: Final = re.compile(
    r"(?<![0-9A-Za-z])((?:19|20)\d\d)[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])"
    r"(?:[T_.\-]?([01]\d|2[0-3])[-_.:]?([0-5]\d)(?:[-_.:]?([0-5]\d))?(Z)?)?(?![0-9A-Za-z])"
)


class MalformedValue(ValueError):
    """A value that is not what its name promises."""


def plain(name: str) -> str:
    """`DataUnitsWritten`, `Data Units Written` and `data_units_written` are one name."""
    return _SEPARATOR.sub("", name.lower())


def count_of(value: object) -> int | None:
    """A count as tools write it: `1234`, `0x4D2`, `1,234`, `1.234`, `1234.0`, `1,234 (0.63 GB)`; None where absent."""
    if isinstance(value, float) and value != value:
        return None
    if value is None or (isinstance(value, str) and value.strip().lower() in _ABSENT):
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        number: int | None = count_in_json(value)
    else:
        number = _count(str(value)[:_LONGEST].partition("(")[0].strip())
    if number is None:
        shown_value = "a number of thousands of digits" if isinstance(value, int) else shown(str(value))
        raise MalformedValue(f"{shown_value} is out of range")
    return number


def _count(text: str) -> int | None:
    """The count that a text is; None where it is more than a column holds."""
    if _HEXADECIMAL.fullmatch(text):
        number = int(text, 16)
        return number if number <= LARGEST else None
    if text.isascii() and text.isdigit():
        return count_or_none(text)
    if _GROUPED.fullmatch(text):
        return count_or_none("".join(name for name in text if name.isdigit()))
    decimal = real_or_none(text)
    if decimal is not None and decimal.is_integer():
        return round(decimal)
    raise MalformedValue(f"{shown(text)} is not a count")


def percent_of(value: object) -> float | None:
    """`7`, `7%` or `7 %`; None where absent."""
    if value is None or (isinstance(value, str) and value.strip().lower() in _ABSENT):
        return None
    percent: float | None = None
    if isinstance(value, str):
        percent = real_or_none(value[:_LONGEST].strip().removesuffix("%").strip(), largest=PERCENT_END)
    elif number_in_json(value, largest=PERCENT_END) is not None:
        percent = float(value)  # type: ignore[arg-type] # a number, as was just asked
    if percent is None:
        raise MalformedValue(
            f"{shown(str(value)[:_LONGEST]) if isinstance(value, str) else 'a value'} is not a percentage"
        )
    return percent


def serial_of(value: object) -> str | None:
    """A serial number; None where it is empty or was blotted out (`REDACTED`): every drive would be the same."""
    is_reported = isinstance(value, str) or count_in_json(value) is not None
    text = str(value).strip() if is_reported else ""
    return None if _UNREPORTED_SERIAL.fullmatch(text) else text


@dataclass(slots=True)
class ReportedValues:
    """Named values of one drive, read one by one; what cannot be read is NULL and a problem."""

    values: Mapping[str, object]
    place: str
    line: int | None = None
    problems: list[Problem] = field(default_factory=list)

    def count(self, *names: str, unit: int = 1) -> int | None:
        """The first of these that is reported, times the bytes of its unit."""
        for name in names:
            try:
                value = count_of(self.values.get(name))
                if value is not None and value * unit > LARGEST:
                    raise MalformedValue(f"{value} units of {unit} bytes is out of range")
            except MalformedValue as error:
                self._report(name, error)
                continue
            if value is not None:
                return value * unit
        return None

    def percent(self, *names: str) -> float | None:
        """The first of these that is reported."""
        for name in names:
            try:
                value = percent_of(self.values.get(name))
            except MalformedValue as error:
                self._report(name, error)
                continue
            if value is not None:
                return value
        return None

    def hours(self, *names: str) -> float | None:
        """Hours powered."""
        value = self.count(*names)
        return None if value is None else float(value)

    def text(self, *names: str) -> str | None:
        """The first of these that is reported and not blotted out."""
        for name in names:
            value = self.values.get(name)
            if isinstance(value, str) and (serial := serial_of(value)) is not None:
                return serial
        return None

    def _report(self, name: str, error: MalformedValue) -> None:
        self.problems.append(Problem(self.place, self.line, f"{name} {error}: left out"))


@dataclass(frozen=True, slots=True)
class DriveReading:
    """One drive at one time, in bytes, hours and per cent; None where not reported.

    `vendor_host_write_bytes` stands in the log that tells `nand_write_bytes`, `host_write_bytes` in NVMe's own.
    """

    serial: str
    time_us: int
    model: str | None = None
    firmware: str | None = None
    host: str | None = None
    device: str | None = None
    capacity_bytes: int | None = None
    host_write_bytes: int | None = None
    vendor_host_write_bytes: int | None = None
    host_read_bytes: int | None = None
    nand_write_bytes: int | None = None
    power_on_hours: float | None = None
    wear_pct: float | None = None
    spare_pct: float | None = None
    media_errors: int | None = None

    @property
    def tells_something(self) -> bool:
        """Whether there is a number of its use at all."""
        used = (self.host_write_bytes, self.vendor_host_write_bytes, self.host_read_bytes, self.nand_write_bytes)
        return any(on_hour is not None for on_hour in (*used, self.power_on_hours, self.wear_pct))

    @property
    def vendor_disagrees(self) -> bool:
        """Whether the vendor's host bytes are not those NVMe counts: then its unit is not the one we know."""
        own, vendor = self.host_write_bytes, self.vendor_host_write_bytes
        if own is None or vendor is None:
            return False
        return abs(own - vendor) > SAME_BYTES + SAME_SHARE * own

    def columns(self, filesystem: str) -> dict[str, object]:
        """The row. Host and NAND bytes are of one log where it tells both, so that their quotient is its WAF."""
        paired = self.nand_write_bytes is not None and self.vendor_host_write_bytes is not None
        host = self.vendor_host_write_bytes if paired or self.host_write_bytes is None else self.host_write_bytes
        nand = self.nand_write_bytes
        if self.vendor_disagrees:
            host, nand = self.host_write_bytes, None
        return {
            "time": self.time_us,
            "filesystem": filesystem,
            "serial": _storable(self.serial),
            "model": _storable(self.model),
            "firmware": _storable(self.firmware),
            "host": _storable(self.host),
            "device": _storable(self.device),
            "capacity_bytes": self.capacity_bytes or None,  # a controller that does not tell says 0
            "host_write_bytes": host,
            "host_read_bytes": self.host_read_bytes,
            "nand_write_bytes": nand,
            "power_on_hours": self.power_on_hours,
            "wear_pct": self.wear_pct,
            "spare_pct": self.spare_pct,
            "media_errors": self.media_errors,
        }


def _storable(text: str | None) -> str | None:
    """Text that is no Unicode, from damaged JSON or the name of a file, with what is wrong escaped."""
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


class DriveRows:
    """Rows on their way out. A drive reported twice for one time counts once, and is reported if the two differ."""

    def __init__(self, filesystem: str) -> None:
        self.filesystem = filesystem
        self.has_rows = False
        self._batch = RowBatch()
        self._seen: dict[tuple[str, int], dict[str, object]] = {}

    def take(self, reading: DriveReading, place: str, line: int | None = None) -> Iterator[Item]:
        """One more reading; what is wrong with it, and rows when there are many."""
        if not reading.tells_something:
            yield Problem(place, line, f"drive {shown(reading.serial)}: no counter that could be read")
            return
        if reading.vendor_disagrees:
            reason = (
                f"drive {shown(reading.serial)}: the vendor's host bytes, {reading.vendor_host_write_bytes}, are not "
                f"those NVMe counts, {reading.host_write_bytes}: its unit is not known, NAND bytes left out"
            )
            yield Problem(place, line, reason)
        columns = reading.columns(self.filesystem)
        first = self._seen.setdefault((reading.serial, reading.time_us), columns)
        if first is not columns:
            if first != columns:
                reason = f"drive {shown(reading.serial)} again at the same time, with other values: the first counts"
                yield Problem(place, line, reason)
            return
        self.has_rows = True
        self._batch.add(TABLE, columns)
        if self._batch.count >= ROWS_PER_BATCH:
            yield from self._batch.flush()

    def flush(self) -> Iterator[Item]:
        """What is left."""
        return self._batch.flush()


class NamedTime(NamedTuple):
    """A date, perhaps with a time, in a name; `has_zone` when it says Z."""

    local: datetime
    has_zone: bool

    def time_us(self, options: ReadOptions, place: str) -> int:
        """The time, in the zone the user stated; a date alone is its midnight."""
        zone = UTC if self.has_zone else stated_zone(options, options.filesystem, place)
        return epoch_us(self.local.replace(tzinfo=zone).astimezone(UTC))


def time_in_name(name: str) -> NamedTime | None:
    """The last date in a name: `Intel_DCT_20190401.csv.gz`, `nvme0-2026-01-05T12:00:00Z.txt`."""
    for match in reversed(list(_DATE.finditer(name))):
        year, month, day, hour, minute, second = (int(group) if group else 0 for group in match.groups()[:6])
        try:
            return NamedTime(datetime(year, month, day, hour, minute, second), match[7] is not None)
        except ValueError:
            continue
    return None


def without_date(name: str) -> str:
    """A name with its dates taken out."""
    return _DATE.sub("", name)


def stated_time(options: ReadOptions, names: tuple[str, ...], place: str) -> int:
    """The time of a capture that does not tell it: `--at`, else the date in one of its names."""
    if options.at is not None:
        return epoch_us(options.at)
    for name in names:
        named_time = time_in_name(name)
        if named_time is not None:
            return named_time.time_us(options, place)
    raise InputError(place, "nothing here tells the time", "--at, or a date in the name such as 2019-04-01")


def epoch_time(value: object) -> int | None:
    """Microseconds from epoch seconds; None where absent."""
    seconds = count_of(value)
    if seconds is not None and not 0 < seconds < LATEST_S:
        raise MalformedValue(f"{shown(str(value))} is not a time in epoch seconds")
    return None if seconds is None else seconds * 1_000_000
