"""Damaged inputs of every source, the short form: no traceback, no hang, no impossible value, no row lost.

`python -m bench.fuzz` is the long form. What it finds is mended, and comes here or to the source's own tests.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from iolens.records import Note, Problem
from iolens.sources import get_source, source_names
from iolens.store.readers import guarded
from tests.fuzz.corpus import Example, examples, examples_of
from tests.fuzz.mutations import KINDS, mutated
from tests.fuzz.oracles import faults_of, rows_of
from tests.fuzz.runs import run_source

MUTATIONS_PER_SOURCE = 120
NAMES = [example.name for example in examples()]
FOREIGN = (b"what is this?", b"\x00\xff\xfe\x80", b" " * 2000, b"[[[[", b'"', b",,,,,,,,,,,,", b"9" * 5000)


def example_called(name: str) -> Example:
    return next(example for example in examples() if example.name == name)


def test_every_source_has_an_example() -> None:
    """A new source brings one: without it, nobody tries what damage does to it."""
    assert {example.source for example in examples()} == set(source_names())
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_whole(tmp_path: Path, name: str) -> None:
    example = example_called(name)
    assert faults_of(example, tmp_path) == []
    named = [tmp_path / file for file in example.named or example.files]
    items = [
        item for capture in get_source(example.source).captures(named, example.options) for item in guarded(capture)
    ]
    assert [item for item in items if isinstance(item, Problem) and not isinstance(item, Note)] == []
    assert rows_of(example, tmp_path, named)


@pytest.mark.parametrize("source", source_names())
def test_damage_is_refused_and_nothing_else(tmp_path: Path, source: str) -> None:
    report = run_source(source, MUTATIONS_PER_SOURCE, tmp_path)
    assert [str(fault) for fault in report.faults] == []
    assert report.mutations == MUTATIONS_PER_SOURCE
    if any(example.stands_alone for example in examples_of(source)):
        assert report.beside >= MUTATIONS_PER_SOURCE // 20


@pytest.mark.parametrize("name", [example.name for example in examples() if example.foreign_line])
def test_a_foreign_line_costs_no_row(tmp_path: Path, name: str) -> None:
    """Between any two lines of its own, whatever stands there."""
    example = example_called(name)
    ((file, content),) = example.files.items()
    path = example.write(tmp_path)[0]
    expected = rows_of(example, tmp_path, [path])
    lines = content.splitlines(keepends=True)
    chance = random.Random(name)
    for place in range(1, len(lines) + 1):
        foreign = chance.choice(FOREIGN) + b"\n"
        example.with_file(file, b"".join([*lines[:place], foreign, *lines[place:]])).write(tmp_path)
        lost = expected - rows_of(example, tmp_path, [path])
        assert not lost, f"{file}, line {place + 1} {foreign[:20]!r}: {lost}"


def test_mutations_are_the_same_again_and_of_every_kind() -> None:
    """The seed alone decides, so that a fault can be seen again."""
    content = example_called("lctl").files["lctl.txt"]
    once, again = ([mutated(content, random.Random(seed)) for seed in range(300)] for _ in range(2))
    assert once == again
    assert {kind for item in once for kind in item.kind.split("+")} == {kind.__name__ for kind in KINDS}
    assert sum(item.content != content for item in once) > 280
