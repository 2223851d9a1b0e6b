"""Mutations of one example after the other, each read as `ingest` would, and what is wrong with any of them."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from tests.fuzz.corpus import Example, examples_of
from tests.fuzz.mutations import mutated
from tests.fuzz.oracles import faults_of, rows_of

BESIDE_EVERY: Final = 12  # so often a whole copy is read beside the damaged one
IN_C: Final = frozenset({"h5lmt", "tokio-hdf5"})  # whose library may take the process down, or not come back
LONGEST_SILENCE_S: Final = 120.0  # of a child; it tells of every mutation


@dataclass(slots=True)
class Fault:
    """What was wrong, and how to see it again."""

    example: str
    seed: str
    kind: str
    what: str

    def __str__(self) -> str:
        return f"{self.example}, mutation {self.seed!r} ({self.kind}): {self.what}"


@dataclass(slots=True)
class Report:
    """What became of the mutations of some examples."""

    mutations: int = 0
    beside: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """Both together."""
        self.mutations += other.mutations
        self.beside += other.beside
        self.seconds += other.seconds
        self.kinds += other.kinds
        self.faults += other.faults


def run_example(example: Example, numbers: range, folder: Path) -> Iterator[Report]:
    """Mutations by their numbers, one report each: the same number of the same example is the same mutation."""
    whole = folder / "whole"
    named = example.write(whole)
    expected = rows_of(example, whole, named)
    for place, number in enumerate(numbers):
        began = time.process_time()
        seed = f"{example.name} {number}"
        chance = random.Random(seed)
        name = chance.choice(sorted(example.files))
        mutation = mutated(example.files[name], chance)
        damaged = example.with_file(name, mutation.content)
        case = folder / "case"
        result = faults_of(damaged, case)
        report = Report(1, kinds=Counter(mutation.kind.split("+")))
        if example.stands_alone and place % BESIDE_EVERY == 0:
            report.beside = 1
            both = rows_of(damaged, whole, [*(case / item.relative_to(whole) for item in named), *named])
            result += ["a row of the whole file beside it is lost"] if expected - both else []
        report.faults = [Fault(example.name, seed, mutation.kind, what) for what in result]
        report.seconds = time.process_time() - began
        shutil.rmtree(case)
        yield report
    shutil.rmtree(whole)


def run_source(source: str, mutations: int, folder: Path, first: int = 0) -> Report:
    """So many mutations of a source's examples; those that a C library reads are read by a child process."""
    total = Report()
    examples = examples_of(source)
    for place, example in enumerate(examples):
        numbers = range(first + place, first + mutations, len(examples))
        reports = in_child(example, numbers, folder) if source in IN_C else run_example(example, numbers, folder)
        for report in reports:
            total.add(report)
    return total


def in_child(example: Example, numbers: range, folder: Path) -> Iterator[Report]:
    """The same in another process; where it dies or falls silent, that mutation is a fault and the next is read."""
    left = numbers
    while left:
        with _child(example, left, folder) as (pipe, child):
            try:
                while left:
                    if not pipe.poll(LONGEST_SILENCE_S):
                        raise TimeoutError(f"nothing came back for {LONGEST_SILENCE_S:.0f} s")
                    yield pipe.recv()
                    left = left[1:]
            except (EOFError, OSError) as error:
                child.join(5)
                what = f"died: exit code {child.exitcode}" if isinstance(error, EOFError) else f"hang: {error}"
                seed = f"{example.name} {left[0]}"
                yield Report(1, faults=[Fault(example.name, seed, "in C", what)])
                left = left[1:]


@contextmanager
def _child(
    example: Example, numbers: range, folder: Path
) -> Iterator[tuple[Connection, multiprocessing.process.BaseProcess]]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_run_in_child, args=(theirs, example, numbers, folder), daemon=True)
    child.start()
    theirs.close()
    try:
        yield ours, child
    finally:
        ours.close()
        if child.is_alive():
            child.kill()
        child.join()


def _run_in_child(pipe: Connection, example: Example, numbers: range, folder: Path) -> None:
    own = folder / f"child-{numbers[0]}"
    for report in run_example(example, numbers, own):
        pipe.send(report)
    shutil.rmtree(own, ignore_errors=True)
