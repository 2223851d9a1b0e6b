"""Fullness and state of a target."""

from __future__ import annotations

import pytest

from iolens.sources.lustre.capacity import capacity, parse_count, parse_recovery, parse_version


def test_kilobytes_become_bytes_and_used_is_total_less_free() -> None:
    result = capacity({"kbytestotal": 100, "kbytesfree": 40, "kbytesavail": 35, "filestotal": 9, "filesfree": 2})
    assert result == {
        "total_bytes": 102400,
        "used_bytes": 61440,
        "free_bytes": 40960,
        "available_bytes": 35840,
        "total_inodes": 9,
        "used_inodes": 7,
        "free_inodes": 2,
    }


def test_what_is_not_reported_is_none() -> None:
    result = capacity({"kbytestotal": 100})
    assert result["total_bytes"] == 102400
    assert {name for name, value in result.items() if value is not None} == {"total_bytes"}


@pytest.mark.parametrize(("text", "count"), [(b"85908200\n", 85908200), (b"", None), (b"1_0", None), (b"1\n2", None)])
def test_a_number_or_none(text: bytes, count: int | None) -> None:
    assert parse_count(text) == count


def test_a_recovery_that_is_complete() -> None:
    text = b"status: COMPLETE\nrecovery_start: 1281389557\nrecovery_duration: 303\ncompleted_clients: 2469/2471\n"
    assert parse_recovery(text) == {
        "recovery_status": "COMPLETE",
        "recovery_start": 1281389557_000000,
        "recovery_duration_s": 303.0,
        "recovery_remaining_s": None,
        "completed_clients": 2469,
        "expected_clients": 2471,
    }


def test_a_recovery_under_way() -> None:
    text = b"status: RECOVERING\ntime_remaining: 291\nconnected_clients: 1/2\ncompleted_clients: 1\n"
    result = parse_recovery(text)
    assert isinstance(result, dict)
    assert (result["recovery_remaining_s"], result["completed_clients"], result["expected_clients"]) == (291.0, 1, 2)


def test_a_recovery_start_since_boot_is_no_date() -> None:
    result = parse_recovery(b"status: COMPLETE\nrecovery_start: 1286\n")
    assert isinstance(result, dict)
    assert result["recovery_start"] is None


@pytest.mark.parametrize("text", [b"", b"garbage\n", b"recovery_start: 1281389557\n"])
def test_a_recovery_that_is_not_understood_says_so(text: bytes) -> None:
    assert isinstance(parse_recovery(text), str)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (b"lustre: 1.8.3\nkernel: patchless_client\nbuild:  1.8.3-2010\n", "1.8.3"),
        (b"2.12.9_12.llnl\n", "2.12.9_12.llnl"),
        (b"\nlustre: 2.14.0_ddn133\n", "2.14.0_ddn133"),
        (b"\n", None),
    ],
)
def test_the_version_in_proc_sys_and_lctl(text: bytes, version: str | None) -> None:
    assert parse_version(text) == version
