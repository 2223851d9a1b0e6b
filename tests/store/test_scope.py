"""The scope of a question: the times of people in UTC, narrowing, and which rows it leaves."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import iolens
from iolens.store.scope import RAW, Scope
from iolens.store.store import Store
from tests.analyses.capacity_rows import readings, table_of

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "given",
    [
        "2026-01-05T12:00:00Z",
        "2026-01-05T12:00",
        "2026-01-05T13:00:00+01:00",
        datetime(2026, 1, 5, 12),  # without a zone: UTC
        datetime(2026, 1, 5, 13, tzinfo=timezone(timedelta(hours=1))),
    ],
)
def test_times_are_in_utc_however_they_are_written(given: str | datetime) -> None:
    assert Scope.of("scratch", since=given) == Scope("scratch", NOON)


def test_a_scope_is_narrowed_and_never_changed() -> None:
    scope = Scope.of("scratch", targets=["OST0000"], resolution=RAW)
    assert scope == Scope("scratch", None, None, ("OST0000",), None, "raw")
    assert Scope.of(scope, until=NOON) == Scope("scratch", None, NOON, ("OST0000",), None, "raw")
    assert scope.only("resolution") == Scope("scratch", resolution="raw")
    assert (scope.rollup, Scope(resolution="60s").rollup) == (None, "60s")
    with pytest.raises(FrozenInstanceError):
        scope.source = "lmt-db"  # type: ignore[misc]


def test_a_store_takes_a_scope_for_the_keyword_arguments(tmp_path: Path) -> None:
    Store(tmp_path).append("target_capacity", table_of(readings(range(8), [100, 110, 130, 120, 150, 190, 240, 300])))
    with iolens.open(str(tmp_path)) as store:
        by_words = store.capacity(since="2020-09-16", until="2020-09-19")
        by_scope = store.capacity(Scope.of(since="2020-09-16", until="2020-09-19"))
        assert by_scope == by_words
        assert by_words.readings == 3
        assert store.frame("target_capacity", Scope.of(since="2020-09-16")).collect().shape[0] == 12  # of two targets
