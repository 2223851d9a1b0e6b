"""Time is linear in the length of what is read, for every source and for recognition; the short form."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from iolens.errors import InputError
from iolens.sources import recognise, source_names
from tests.fuzz.corpus import examples, examples_of
from tests.fuzz.long_inputs import PIECES, SHORT, faults_of_long_inputs, slow_to_recognise
from tests.fuzz.oracles import rows_of, time_limit

LONG_BYTES = 50_000
RECOGNISED_S = 0.25


@pytest.mark.parametrize("source", source_names())
def test_fifty_kilobytes_of_anything_within_a_line_take_no_time(tmp_path: Path, source: str) -> None:
    assert faults_of_long_inputs(source, LONG_BYTES, tmp_path / "long", SHORT) == []


@pytest.mark.parametrize("source", source_names())
def test_recognition_takes_no_time_over_a_head_of_blanks(tmp_path: Path, source: str) -> None:
    """Also where the file begins as one of this format does."""
    heads = [*examples_of(source), *examples()[:: len(examples()) // 4]]
    assert [slow for head in heads for slow in slow_to_recognise(head, source, tmp_path / "a", RECOGNISED_S)] == []


@pytest.mark.parametrize("piece", PIECES)
def test_64_kib_of_one_thing_is_refused_at_once_by_all_sources_together(tmp_path: Path, piece: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(piece * 65536)
    began = time.thread_time()
    with time_limit(20), pytest.raises(InputError, match="not recognised"):
        recognise(path)
    assert time.thread_time() - began < 2


def test_three_megabytes_of_ior_take_seconds(tmp_path: Path) -> None:
    """They took more than 280."""
    (example,) = (example for example in examples_of("ior") if example.name == "ior text")
    content = example.files["text.txt"]
    named = example.with_file("text.txt", content * (3_000_000 // len(content))).write(tmp_path)
    began = time.thread_time()
    with time_limit(20):
        assert rows_of(example, tmp_path, named).total() > 5000
    assert time.thread_time() - began < 10
