"""Fields of many records at once: the different values are exact however long they are, and a long one costs itself."""

from __future__ import annotations

import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.sources.contents.record_fields import LONGEST_WORD, RecordText, Spans, Words

FIELD = st.tuples(st.sampled_from([b"", b"a", b"ab" * 40, b"x" * LONGEST_WORD, b"x" * 2000]), st.binary(max_size=9))


def words_of(fields: list[bytes]) -> Words:
    text = b"".join(fields)
    ends = np.cumsum([len(field) for field in fields], dtype=np.int64)
    begins = np.concatenate(([0], ends[:-1])).astype(np.int64)
    return RecordText(text, b"\0").words(Spans(begins, ends))


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(FIELD.map(b"".join), min_size=1, max_size=30))
def test_words_are_the_different_values(fields: list[bytes]) -> None:
    values, places = words_of(fields)
    assert [values[place] for place in places] == fields
    assert len(values) == len(set(fields))


def test_one_long_field_does_not_cost_its_length_in_every_record() -> None:
    """A name of a megabyte among 50,000 records took a hundred thousand passes over all of them."""
    began = time.thread_time()
    values, _ = words_of([b"climate", b"physics"] * 25_000 + [b"x" * 1_000_000])
    assert sorted(len(value) for value in values) == [7, 7, 1_000_000]
    assert time.thread_time() - began < 10
