"""Inodes met before, against a plain set."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from iolens.sources.contents.inode_counts import SeenInodes


@given(st.lists(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 20), max_size=30), max_size=12))
def test_seen_inodes_are_those_of_a_set(batches: list[list[int]]) -> None:
    seen, known = SeenInodes(), set[int]()
    for batch in batches:
        expected = []
        for number in batch:
            expected.append(number not in known)
            known.add(number)
        assert seen.first_seen(np.array(batch, np.uint64)).tolist() == expected
    assert len(seen) == len(known)
