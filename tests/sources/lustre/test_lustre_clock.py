"""Lustre's own times, in every spelling."""

from __future__ import annotations

import pytest

from iolens.sources.lustre.clock import snapshot_of, stamp_us


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1284241188.775657 secs.usecs", 1284241188_775657),
        ("1510780958.796675432 (secs.nsecs)", 1510780958_796675),
        ("1742378286.330946263 secs.nsecs", 1742378286_330946),
        ("1749555918.867061397", 1749555918_867061),
        ("1537070542", 1537070542_000000),
        ("1537070542.5", 1537070542_500000),
        ("294.706849244 secs.nsecs", 294_706849),
    ],
)
def test_a_time_in_every_spelling(text: str, microseconds: int) -> None:
    assert stamp_us(text) == microseconds


def test_old_servers_do_not_pad_the_microseconds() -> None:
    # lustre-OST0000/brw_stats of 2.0.0.1: 9,667 µs, not .9667 s
    assert stamp_us("1286990247.9667 (secs.usecs)") == 1286990247_009667


def test_some_servers_pad_the_nanoseconds_with_blanks() -> None:
    assert stamp_us("1510781853.  9826353 secs.nsecs") == 1510781853_009826


@pytest.mark.parametrize(
    "text", ["", "soon", "-5", "1_0", "12.x secs.usecs", "12.", "1.1234567 secs.usecs", "1.5 days", "9" * 40]
)
def test_what_is_not_a_time_is_none(text: str) -> None:
    assert stamp_us(text) is None


def test_the_time_of_a_text_is_found_without_reading_it() -> None:
    assert snapshot_of(b"\nsnapshot_time:  1589909588.327213269 (secs.nsecs)\r\nrest") == 1589909588_327213
    assert snapshot_of(b"job_stats:\n") is None
