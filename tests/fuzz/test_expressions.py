"""No regular expression of the sources backtracks: twice the text takes twice the time, whatever the text."""

from __future__ import annotations

import re
import time
from functools import cache

from tests.fuzz.expressions import Expression, expressions
from tests.fuzz.oracles import TooLong, time_limit

LENGTH = 6000
ALL = expressions()
BACKTRACKING = (
    (r"\s*(\w+)\s*:\s*(.*?)\s*", False),  # blanks that either part may take
    (r"(?:[a-z]+ ?)+:", False),
    (r"^\s*Fileset$", True),  # blank lines that each line end may take
    (r"\d+\w*-", False),
    (r"read +\|? *write", True),
)


def seconds(expression: Expression, text: str, enough_s: float = 0.0) -> float:
    """Processor time of this thread: other processes do not lengthen it. The shortest of three tries."""
    shortest = float("inf")
    for _ in range(3):
        began = time.thread_time()
        try:
            with time_limit(1):
                expression.run(text)
        except TooLong:
            return float("inf")
        shortest = min(shortest, time.thread_time() - began)
        if shortest < enough_s:
            break
    return shortest


@cache
def most_s() -> float:
    """What expressions that do backtrack take here, the quickest of them; what is linear takes a hundredth of it."""
    bad = [Expression("here", "bad", re.compile(text, re.MULTILINE), searched) for text, searched in BACKTRACKING]
    return min(max(seconds(item, text) for text in item.attacks(LENGTH)) for item in bad) / 4


def test_no_expression_backtracks() -> None:
    slow = [
        f"{item.module}.{item.name}: {text[:60]!r}"
        for item in ALL
        for text in item.attacks(LENGTH)
        if seconds(item, text, most_s()) > most_s()
    ]
    assert slow == []


def test_the_test_notices_one_that_does() -> None:
    linear = Expression("here", "good", re.compile(r"\d+ \w+-"), False)
    assert max(seconds(linear, text) for text in linear.attacks(LENGTH)) < most_s()


def test_every_expression_of_the_sources_is_looked_at() -> None:
    names = {f"{item.module.rpartition('.')[2]}.{item.name}" for item in ALL}
    assert {
        "ior_text._OPTION",
        "fsstats.FPROF_HEADING",
        "nvme_logs._LAYOUTS[1]",
        "units._NUMBER",
        "lustre_lctl._NAME",
    } <= names
    assert len(ALL) > 130
    searched = {item.name for item in ALL if item.is_searched}
    assert {"_JOB_TIME", "GROUP_HEAD", "_DOCUMENT"} <= searched  # also where another module searches with it
