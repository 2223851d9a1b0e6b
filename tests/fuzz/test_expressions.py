"""No regular expression of the sources backtracks: twice the text takes twice the time, whatever the text."""

from __future__ import annotations

import re
import time

import pytest

from tests.fuzz.expressions import Expression, expressions
from tests.fuzz.oracles import TooLong, time_limit

LENGTH = 6000
MOST_S = 0.03  # of processor time; what is linear takes less than a thousandth, what is quadratic a tenth and more
ALL = expressions()


def seconds(expression: Expression, text: str) -> float:
    """Processor time of this thread: other processes do not lengthen it. Of three tries the shortest."""
    shortest = float("inf")
    for _ in range(3):
        began = time.thread_time()
        try:
            with time_limit(1):
                expression.run(text)
        except TooLong:
            return float("inf")
        shortest = min(shortest, time.thread_time() - began)
        if shortest < MOST_S:
            break
    return shortest


@pytest.mark.parametrize("expression", ALL, ids=lambda item: f"{item.module.rpartition('.')[2]}.{item.name}")
def test_no_expression_backtracks(expression: Expression) -> None:
    slow = [text for text in expression.attacks(LENGTH) if seconds(expression, text) > MOST_S]
    assert [text[:60] for text in slow] == []


@pytest.mark.parametrize(
    ("pattern", "is_searched"),
    [
        (r"\s*(\w+)\s*:\s*(.*?)\s*", False),  # blanks that either part may take
        (r"(?:[a-z]+ ?)+:", False),
        (r"^\s*Fileset$", True),  # blank lines that each line end may take
        (r"\d+\w*-", False),
        (r"read +\|? *write", True),
    ],
)
def test_the_test_notices_one_that_does(pattern: str, is_searched: bool) -> None:
    bad = Expression("here", "bad", re.compile(pattern, re.MULTILINE), is_searched)
    assert any(seconds(bad, text) > MOST_S for text in bad.attacks(LENGTH))


def test_every_expression_of_the_sources_is_looked_at() -> None:
    names = {f"{item.module.rpartition('.')[2]}.{item.name}" for item in ALL}
    assert {"ior_text._OPTION", "fprof.HEADING", "nvme_logs._LAYOUTS[1]", "units._NUMBER", "lustre_lctl._NAME"} <= names
    assert len(ALL) > 130
    searched = {item.name for item in ALL if item.is_searched}
    assert {"_JOB_TIME", "GROUP_HEAD", "_DOCUMENT"} <= searched  # also where another module searches with it
