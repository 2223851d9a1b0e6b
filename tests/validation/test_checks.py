"""What agrees, what differs, and what an explanation excuses."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from iolens.errors import InputError
from iolens.validation.checks import (
    CheckedNumber,
    Explained,
    Published,
    PublishedCheck,
    at_least,
    at_most,
    compare,
    out_of_reach,
    printed,
    reference,
    within,
)
from iolens.validation.evidence import PublicData, PublicFile

FILE = PublicFile("folder/file.csv", "https://example.org")


def judged(number: float, published: Published, otherwise: Explained | None = None) -> CheckedNumber:
    return compare(
        "X",
        PublishedCheck("Fig. 1", "a number", published, "by hand", lambda _: number, (), otherwise),
        PublicData(None),
    )


@pytest.mark.parametrize(
    ("text", "number", "agrees"),
    [
        ("133", 132.5, True),
        ("133", 133.49, True),
        ("133", 132.4, False),
        ("0.024", 0.02414, True),
        ("0.024", 0.0246, False),
        ("10.15", 10.158, False),
        ("1.04e-3", 1.0449e-3, True),
        ("1.04e-3", 1.046e-3, False),
        ("1152", 1152, True),
        ("1152", 1151, False),
        ("130.0", 130.06, False),
    ],
)
def test_a_printed_number_agrees_to_half_a_unit_of_its_last_digit(text: str, number: float, agrees: bool) -> None:
    assert (judged(number, printed(text)).verdict == "agrees") is agrees


def test_deviation_is_per_cent_of_what_was_published() -> None:
    assert judged(153.8, printed("133")).deviation_pct == pytest.approx(15.639, abs=0.001)
    assert judged(5.0, within("none", 0.0, "", (0.0, 0.0), "a count")).deviation_pct is None
    assert judged(9e6, at_least("over eight million", 8e6, "", "words")).deviation_pct is None


def test_words_are_bounds() -> None:
    assert judged(8e6 - 1, at_least("over eight million", 8e6, "", "words")).verdict == "differs"
    assert judged(9e6, at_least("over eight million", 8e6, "", "words")).verdict == "agrees"
    low = judged(11.0, at_most("extremely low", 10.0, "%", "words"))
    assert (low.verdict, low.agrees_from, low.agrees_to) == ("differs", None, 10.0)


def test_an_explanation_holds_only_for_the_difference_it_explains() -> None:
    known = Explained("153.8", "another window")
    explained = judged(153.81, printed("133"), known)
    assert (explained.verdict, explained.reason) == ("differs, explained", "by hand: another window")
    other = judged(153.9, printed("133"), known)
    assert other.verdict == "differs"
    assert "what is explained is 153.8" in other.reason
    assert judged(133.2, printed("133"), known).verdict == "agrees"


def test_what_no_data_reach_says_why() -> None:
    line = compare("X", out_of_reach("Table I", "peak", "717", "GB/s", "a benchmark"), PublicData(None))
    assert (line.verdict, line.reason, line.published, line.recomputed) == ("not reachable", "a benchmark", 717.0, None)
    words = compare("X", out_of_reach("Fig. 1", "bars", "curve", "", "drawn"), PublicData(None))
    assert words.published is None


def test_absent_data_are_named_with_their_origin(tmp_path: Path) -> None:
    check = PublishedCheck("Fig. 1", "a number", printed("1"), "by hand", lambda _: math.nan, (FILE,))
    for evidence in (PublicData(None), PublicData(tmp_path)):
        line = compare("X", check, evidence)
        assert (line.verdict, line.reason) == ("no data", "needs folder/file.csv (https://example.org)")
        assert line.inputs == ["folder/file.csv"]


@pytest.mark.parametrize(
    "error", [InputError("file", "is rubbish"), ZeroDivisionError("float division"), OSError("no")]
)
def test_data_that_cannot_be_used_are_a_failure(error: Exception) -> None:
    def recompute(evidence: PublicData) -> float:
        raise error

    line = compare("X", PublishedCheck("Fig. 1", "a number", printed("1"), "by hand", recompute), PublicData(None))
    assert line.verdict == "failed"
    assert str(error) in line.reason


def test_not_a_number_never_agrees() -> None:
    assert judged(math.nan, printed("1")).verdict == "differs"
    assert judged(math.nan, at_most("low", 1.0, "", "words")).verdict == "differs"


def test_a_reference_says_that_it_is_one() -> None:
    assert judged(20.93, reference("20.93", "%")).basis == "reference"
    assert judged(20.93, printed("20.93", "%")).basis == "printed"
