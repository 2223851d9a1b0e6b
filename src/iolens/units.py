"""Quantities as people write them (`4KiB`, `133TB`, `35GB/s`, `5s`) to and from plain numbers.

KiB, MiB, … are powers of two; kB, MB, … are powers of ten; the two are never mixed. A number alone is bytes only where
it is the size of a file, a block or an I/O (`4096`): capacities, growth and rates need a unit.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30
SECOND_US: Final = 1_000_000
DAY_S: Final = 86_400
DAY_US: Final = DAY_S * SECOND_US
TICKS: Final = {60.0: "minute", 3600.0: "hour", 86400.0: "day"}

_BYTE_UNITS: Final[dict[str, int]] = {"": 1, "b": 1} | {
    prefix + suffix: base**power
    for base, suffix in ((1024, "ib"), (1000, "b"))
    for power, prefix in enumerate("kmgtpe", start=1)
}
_TIME_UNITS: Final[dict[str, float]] = {
    "us": 1e-6, "ms": 1e-3, "": 1.0, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0,
}  # fmt: skip
UNKNOWN: Final = "–"  # an amount that is none
_LARGEST: Final = 1 << 63  # what a column of the store cannot hold
_EPOCH_SECONDS: Final = re.compile(r"[0-9]{9,}(\.[0-9]+)?")  # from 1973 on; eight digits are a date such as 20121022
_NUMBER: Final = re.compile(r"([0-9]++(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]++)?)\s*+([A-Za-z]*+)")


def parse_bytes(text: str) -> int:
    """Bytes from `4096`, `4KiB`, `1.5 TB`: the size of a file, a block or an I/O."""
    number, unit = _split(text)
    try:
        factor = _BYTE_UNITS[unit.lower()]
    except KeyError:
        raise ValueError(f"{text!r}: unknown unit {unit!r}; write 4KiB, 35GB, 133TB") from None
    amount = Decimal(number)  # exact, where a double would lose the last bytes of a large count
    if amount >= _LARGEST or amount * factor >= _LARGEST:
        raise ValueError(f"{text!r}: too large; the limit is 8 EiB")
    return round(amount * factor)


def parse_capacity(text: str) -> int:
    """Bytes from `30PB` or `3.2 TB`: of a file system or a drive, or gained in a day. A number alone is refused."""
    _refuse_bare(text, "TB")
    return parse_bytes(text)


def parse_rate(text: str) -> float:
    """Bytes per second from `35GB/s` or `550 MiB/s`. A number alone is refused."""
    amount, slash, per = text.partition("/")
    if slash and per.strip().lower() != "s":
        raise ValueError(f"{text!r}: a rate is per second; write 35GB/s")
    _refuse_bare(amount, "GB/s")
    return float(parse_bytes(amount))


def parse_duration(text: str) -> float:
    """Seconds from `5`, `5s`, `10min`, `1h`, `2d`."""
    number, unit = _split(text)
    try:
        seconds = float(number) * _TIME_UNITS[unit.lower()]
    except KeyError:
        raise ValueError(f"{text!r}: unknown unit {unit!r}; write 5s, 10min, 1h, 2d") from None
    if seconds * 1e6 >= _LARGEST:
        raise ValueError(f"{text!r}: too long")
    return seconds


def parse_time(text: str) -> datetime:
    """A time in UTC from ISO-8601 (`2012-10-22`, `2012-10-22T19:00:00Z`) or epoch seconds; no zone means UTC."""
    time = parse_local_time(text)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def parse_local_time(text: str) -> datetime:
    """The same, but a time without a zone stays without one."""
    try:
        if _EPOCH_SECONDS.fullmatch(text.strip()):
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=float(text))
        time = datetime.fromisoformat(text.strip())
        return time if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r}: not a time; write 2012-10-22 or 2012-10-22T19:00:00Z") from None


def tick_word(tick_s: float | None) -> str:
    """What a tick of that many seconds is called."""
    return TICKS.get(tick_s or 0.0, "tick")


def epoch_us(time: datetime) -> int:
    """Microseconds since 1970 UTC, exact."""
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds


def from_epoch_us(microseconds: int) -> datetime:
    """The UTC time of `epoch_us`."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def iso(time: datetime) -> str:
    """ISO-8601 with Z, without needless zeros: `2012-10-22T19:00:05Z`."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def format_bytes(count: float, digits: int = 3) -> str:
    """`1.5 GiB`: three significant digits in powers of two."""
    return _scaled(count, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"), digits)


def format_bytes_si(count: float, digits: int = 3) -> str:
    """`133 TB`: three significant digits in powers of ten."""
    return _scaled(count, 1000, ("B", "kB", "MB", "GB", "TB", "PB", "EB"), digits)


def _scaled(count: float, base: int, names: tuple[str, ...], digits: int) -> str:
    if not math.isfinite(count):
        return UNKNOWN
    power = 0
    while abs(count) >= base - 0.5 and power < len(names) - 1:  # what would be shown as a whole base is the next unit
        count /= base
        power += 1
    if power == 0 or abs(count) >= 999.5:
        return f"{0.0 if abs(count) <= 0.5 else count:.0f} {names[power]}"  # never "-0 B"
    return f"{count:.{digits}g} {names[power]}"


def _refuse_bare(text: str, example: str) -> None:
    number, unit = _split(text)
    if not unit and Decimal(number):  # nothing is nothing in any unit
        raise ValueError(f"{number} of what? write {number}{example}")


def _split(text: str) -> tuple[str, str]:
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r}: not a quantity; write a number and a unit, such as 4KiB, 35GB/s or 5s")
    return match[1], match[2]
