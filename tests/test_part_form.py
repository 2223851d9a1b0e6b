"""What a part holds comes back as it was; what is no part of this form is refused."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.part_form import PartForm, PartFormError


@dataclass(slots=True)
class Inner:
    values: np.ndarray
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Outer:
    inner: dict[str, Inner]
    numbers: list[Any]
    when: datetime
    counts: Counter[int] = field(default_factory=Counter)
    names: frozenset[str] = frozenset()
    pairs: tuple[tuple[int, int], ...] = ()


FORM = PartForm("test", 3, (Outer, Inner))
PART = Outer(
    {"a": Inner(np.arange(6.0).reshape(2, 3)), "b": Inner(np.zeros((0, 4), np.uint8), "x")},
    [1, 2.5, float("inf"), float("-inf"), True, None, "ü"],
    datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    Counter({7: 2, -1: 1}),
    frozenset({"z", "y"}),
    ((1, 2), (3, 4)),
)


def test_a_part_comes_back_as_it_was() -> None:
    again = FORM.read(FORM.written(PART))
    assert (again.numbers, again.when, again.counts) == (PART.numbers, PART.when, PART.counts)
    assert isinstance(again.counts, Counter)
    assert (again.names, again.pairs) == (PART.names, PART.pairs)
    for name, inner in PART.inner.items():
        assert again.inner[name].note == inner.note
        assert again.inner[name].values.dtype == inner.values.dtype
        assert np.array_equal(again.inner[name].values, inner.values)
    again.inner["a"].values += 1.0  # what was read can be added to


def test_what_is_not_a_number_stays_so() -> None:
    assert np.isnan(FORM.read(FORM.written([float("nan")]))[0])


@pytest.mark.parametrize(
    "other", [PartForm("test", 4, (Outer, Inner)), PartForm("other", 3, (Outer, Inner))], ids=["version", "name"]
)
def test_another_form_is_refused(other: PartForm) -> None:
    with pytest.raises(PartFormError, match="not a part of"):
        other.read(FORM.written(PART))


def test_a_class_that_the_reader_does_not_name_is_refused() -> None:
    with pytest.raises(PartFormError, match="damaged"):
        PartForm("test", 3, (Outer,)).read(FORM.written(PART))


@given(st.data())
def test_a_damaged_part_is_refused_or_read(data: st.DataObject) -> None:
    whole = bytearray(FORM.written(PART))
    for place in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=5)):
        whole[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    with suppress(PartFormError):
        FORM.read(bytes(whole[:cut]))


def test_what_has_no_form_is_refused_when_it_is_written() -> None:
    with pytest.raises(TypeError, match="object"):
        FORM.written([object()])
