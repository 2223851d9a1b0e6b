"""Which characters are shown as escapes, and how names are shortened."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.visible_text import LONGEST_NAME, shortened, shown_lines, shown_name, visible, visible_lines
from tests.hostile_names import HOSTILE

UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def test_everything_unseen_is_escaped_and_nothing_else() -> None:
    for code in range(0x110000):
        character = chr(code)
        is_unseen = unicodedata.category(character) in UNSEEN
        newer = unicodedata.category(character) == "Cn"  # Unicode may have named it since
        assert newer or (visible(character) != character) == is_unseen, hex(code)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"), ("\x9b", r"\x9b"), ("a\nb", r"a\nb"), ("\t\r", r"\t\r"), ("\u202e", r"\u202e"),
        ("\udcff", r"\xff"), ("\ud83d", r"\ud83d"), ("\U000e0041", r"\U000e0041"), ("ünï 漢 😀", "ünï 漢 😀"),
    ],
)  # fmt: skip
def test_escapes(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_lines_stay_where_sentences_have_them() -> None:
    assert visible_lines("one\n\ttwo\x1b\n") == "one\n\ttwo\\x1b\n"


@given(st.text(max_size=400), st.integers(4, 200))
def test_a_shortened_name_keeps_its_ends(text: str, most: int) -> None:
    short = shortened(text, most)
    assert len(short) <= most or short == text
    if len(text) > most:
        assert short.count("…") >= 1
        assert text.startswith(short[: most // 2])


def test_only_long_words_are_shortened() -> None:
    assert shown_lines(f"the owner {'x' * 3000} has files") == f"the owner {shortened('x' * 3000)} has files"
    assert len(shown_name("x" * 3000)) == LONGEST_NAME
    sentence = "word " * 500
    assert shown_lines(sentence) == sentence


def test_there_are_at_least_24_of_them() -> None:
    assert len(HOSTILE) >= 24
