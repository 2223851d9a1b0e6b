"""Quantities as people write them: two families of units that are never mixed, exact bytes, times in UTC."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.units import (
    epoch_us,
    format_bytes,
    format_bytes_si,
    from_epoch_us,
    iso,
    parse_bytes,
    parse_capacity,
    parse_duration,
    parse_local_time,
    parse_rate,
    parse_time,
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("4096", 4096),
        ("0", 0),
        ("4KiB", 4096),
        ("4 KiB", 4096),
        (" 4kib ", 4096),
        ("1MiB", 2**20),
        ("1GiB", 2**30),
        ("1TiB", 2**40),
        ("30PiB", 30 * 2**50),
        ("1EiB", 2**60),
        ("512B", 512),
        ("4kB", 4_000),
        ("4KB", 4_000),
        ("1MB", 10**6),
        ("35GB", 35 * 10**9),
        ("133TB", 133 * 10**12),
        ("1.5 TB", 1_500_000_000_000),
        ("1e3 MB", 10**9),
        ("22.3PB", 22_300_000_000_000_000),
    ],
)
def test_bytes_are_written_in_powers_of_two_or_of_ten(text: str, count: int) -> None:
    assert parse_bytes(text) == count


def test_bytes_are_kept_exact_where_a_double_would_not() -> None:
    assert parse_bytes("9007199254740993") == 2**53 + 1
    assert parse_bytes("9223372036854775807") == 2**63 - 1


@pytest.mark.parametrize("text", ["4K", "4 M", "5 apples", "4KiBs"])
def test_a_unit_that_belongs_to_no_family_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="unknown unit"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["", "KiB", "-4KiB", "4,5GB", "1_000", "nan", "inf", "0x10"])
def test_what_is_not_a_number_and_a_unit_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="such as 4KiB"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["8EiB", "9223372036854775808", "1e30", "1e400", "1e99999999"])
def test_more_than_a_column_can_hold_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="too large"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "rate"),
    [("35GB/s", 35e9), ("550 MiB/s", 550.0 * 2**20), ("35GB / s", 35e9), ("35GB", 35e9), ("100B/s", 100.0)],
)
def test_a_rate_is_bytes_per_second(text: str, rate: float) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_rate, "35", "35 of what? write 35GB/s"),
        (parse_rate, " 1e3 / s", "1e3 of what? write 1e3GB/s"),
        (parse_rate, "0.5", "0.5 of what? write 0.5GB/s"),
        (parse_capacity, "133", "133 of what? write 133TB"),
        (parse_capacity, " 30.5 ", "30.5 of what? write 30.5TB"),
    ],
)
def test_a_rate_or_a_capacity_without_a_unit_is_asked_for_one(parse: Callable, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(text)


@pytest.mark.parametrize(("text", "count"), [("133TB", 133 * 10**12), ("30 PiB", 30 * 2**50), ("512B", 512), ("0", 0)])
def test_a_capacity_is_bytes(text: str, count: int) -> None:
    assert parse_capacity(text) == count


@pytest.mark.parametrize("text", ["35GB/h", "35GB/", "35GB/min"])
def test_a_rate_per_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a rate is per second"):
        parse_rate(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5.0),
        ("5s", 5.0),
        ("0.5s", 0.5),
        ("250ms", 0.25),
        ("10us", 1e-5),
        ("10min", 600.0),
        ("10m", 600.0),
        ("1h", 3600.0),
        ("90d", 7_776_000.0),
        ("2w", 1_209_600.0),
    ],
)
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["5 years", "5 minutes", "5KiB"])
def test_unknown_units_of_time_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write 5s, 10min, 1h, 2d"):
        parse_duration(text)


def test_a_duration_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        parse_duration("1e400s")


@pytest.mark.parametrize(
    "text",
    [
        "2012-10-22T19:00:00Z",
        "2012-10-22T19:00:00+00:00",
        "2012-10-22T21:00:00+02:00",
        "2012-10-22 12:00:00-07:00",
        "1350932400",
        "1350932400.0",
        "2012-10-22T19:00:00",  # no zone means UTC
        " 2012-10-22T19:00 ",
    ],
)
def test_the_same_time_in_many_spellings(text: str) -> None:
    assert parse_time(text) == datetime(2012, 10, 22, 19, tzinfo=UTC)
    assert parse_time(text).tzinfo is UTC


@pytest.mark.parametrize("text", ["2012-10-22", "20121022"])
def test_a_day_alone_is_its_midnight(text: str) -> None:
    assert parse_time(text) == datetime(2012, 10, 22, tzinfo=UTC)


def test_a_time_without_zone_can_stay_without_one() -> None:
    assert parse_local_time("2012-10-22T19:00:00") == datetime(2012, 10, 22, 19)
    assert parse_local_time("2012-10-22T19:00:00+02:00") == datetime(2012, 10, 22, 17, tzinfo=UTC)
    assert parse_local_time("1350932400") == datetime(2012, 10, 22, 19, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "22.10.2012", "2012-13-01", "12:00", "99999999999999999", "0001-01-01T00:00+10:00"]
)
def test_what_is_not_a_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write 2012-10-22 or 2012-10-22T19:00:00Z"):
        parse_time(text)


def test_microseconds_since_1970() -> None:
    assert epoch_us(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert epoch_us(datetime(2012, 10, 22, 19, 0, 0, 1, tzinfo=UTC)) == 1_350_932_400_000_001
    assert epoch_us(datetime(2012, 10, 22, 21, tzinfo=timezone(timedelta(hours=2)))) == 1_350_932_400_000_000
    assert epoch_us(datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)) == -1_000_000


@given(st.integers(min_value=-(10**15), max_value=10**17))
def test_no_microsecond_is_lost(microseconds: int) -> None:
    assert epoch_us(from_epoch_us(microseconds)) == microseconds


def test_iso_is_utc_with_z() -> None:
    assert iso(datetime(2012, 10, 22, 19, 0, 5, tzinfo=UTC)) == "2012-10-22T19:00:05Z"
    assert iso(datetime(2012, 10, 22, 21, 0, 5, tzinfo=timezone(timedelta(hours=2)))) == "2012-10-22T19:00:05Z"
    assert iso(datetime(2012, 10, 22, 19, 0, 5, 250_000, tzinfo=UTC)) == "2012-10-22T19:00:05.250000Z"


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_what_iso_writes_is_read_back(time: datetime) -> None:
    assert parse_time(iso(time)) == time


@pytest.mark.parametrize(
    ("count", "binary", "decimal"),
    [
        (0, "0 B", "0 B"),
        (999, "999 B", "999 B"),
        (1000, "1000 B", "1 kB"),
        (1024, "1 KiB", "1.02 kB"),
        (4096, "4 KiB", "4.1 kB"),
        (1_048_576, "1 MiB", "1.05 MB"),
        (1_500_000_000, "1.4 GiB", "1.5 GB"),
        (133e12, "121 TiB", "133 TB"),
        (999.4e9, "931 GiB", "999 GB"),
        (999.6e9, "931 GiB", "1 TB"),  # not 1000 GB
        (1023.4 * 1024, "1023 KiB", "1.05 MB"),
        (1023.6 * 1024, "1 MiB", "1.05 MB"),
        (-2048, "-2 KiB", "-2.05 kB"),
        (5e21, "4337 EiB", "5000 EB"),
    ],
)
def test_three_significant_digits_in_either_family(count: float, binary: str, decimal: str) -> None:
    assert (format_bytes(count), format_bytes_si(count)) == (binary, decimal)


@given(st.integers(min_value=0, max_value=2**62))
def test_what_is_shown_can_be_read_back_within_half_a_per_cent(count: int) -> None:
    for shown in (format_bytes(count), format_bytes_si(count)):
        assert parse_bytes(shown) == pytest.approx(count, rel=0.005)
