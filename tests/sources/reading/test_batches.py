"""Only what lies in the window the user named."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from iolens.records import Problem, Rows
from iolens.sources.reading.batches import within
from iolens.sources.reading.options import ReadOptions

WINDOW = ReadOptions(since=datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC), until=datetime(1970, 1, 1, 0, 0, 4, tzinfo=UTC))


def kept(time: object) -> Rows:
    rows = Rows("contents", {"time": time, "count": [1, 2, 3]}, 3)
    problem, result = list(within([Problem("here", None, "said anyway"), rows], WINDOW))
    assert isinstance(problem, Problem)
    assert isinstance(result, Rows)
    return result


@pytest.mark.parametrize("kind", [list, np.array])
def test_rows_of_the_window(kind: type) -> None:
    result = kept(kind([1_999_999, 2_000_000, 4_000_000]))
    assert (result.count, result.columns["count"]) == (1, [2])


@pytest.mark.parametrize(("time_us", "count"), [(2_000_000, 3), (4_000_000, 0)])
def test_one_time_for_all_rows(time_us: int, count: int) -> None:
    result = kept(time_us)
    assert result.count == count
    assert result.columns["time"] == time_us
