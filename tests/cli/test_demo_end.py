"""When the days of `iolens demo` end: now, so that its pages are fresh, or where one says."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from iolens.cli.demo import AGENT_MINUTES, _end
from iolens.errors import UsageError
from tests.cli.command import iolens


def test_the_demo_ends_at_the_last_whole_minute() -> None:
    now = datetime(2026, 3, 1, 0, 3, 59, 7, UTC)
    assert AGENT_MINUTES == 5
    assert _end(None, now) == datetime(2026, 2, 28, 23, 58, tzinfo=UTC)


def test_the_demo_ends_where_one_says() -> None:
    assert _end(datetime(2026, 1, 7, tzinfo=UTC)) == datetime(2026, 1, 7, tzinfo=UTC)
    with pytest.raises(UsageError, match="--end 2026-01-07T00:00:30: a whole minute"):
        _end(datetime(2026, 1, 7, 0, 0, 30, tzinfo=UTC))


def test_an_end_that_is_no_time_is_refused() -> None:
    done = iolens("demo", "--end", "evening")
    assert (done.code, "evening" in done.err) == (2, True)
