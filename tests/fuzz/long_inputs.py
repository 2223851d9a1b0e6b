"""Long lines, long files and endless blanks for every source: time grows with the length, and no faster."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from iolens.sources import get_source
from iolens.sources.reading.bounded_input import HEAD_BYTES
from tests.fuzz.corpus import Example, examples_of
from tests.fuzz.oracles import TooLong, faults_of, time_limit

PIECES: Final = (
    b" ", b"\n", b" \n", b"9", b'"', b",", b"[", b"a ", b"\t", b"a", b"{", b"=", b":", b"-", b"0,", b"0 ", b'{"a":1}\n',
    b"|", b"\\", b"\0",
)  # fmt: skip
SHORT: Final = PIECES[:8]  # for the short form
BINARY: Final = (b"SQLite", b"\x89HDF", b"\x1f\x8b")
TIMES_LONGER: Final = 8
QUICK_S: Final = 0.5  # of processor time: what takes less is not judged by its growth
# Eight times the length takes eight times as long when time is linear, and 64 times when it is quadratic.
MOST_GROWTH: Final = 24.0


def faults_of_long_inputs(source: str, length: int, folder: Path, pieces: tuple[bytes, ...] = PIECES) -> list[str]:
    """What is wrong with how a source's examples are read when about `length` bytes of one thing are put into them."""
    return [
        f"{example.name}, {label}: {fault}"
        for example in examples_of(source)
        for label, make in _inputs(example, pieces)
        for fault in _faults(example, make, length, folder)
    ]


Make = Callable[[int], Example]


def _inputs(example: Example, pieces: tuple[bytes, ...]) -> Iterator[tuple[str, Make]]:
    """By name, what gives the example with so many bytes more."""
    chance = random.Random(example.name)
    texts = sorted(name for name, content in example.files.items() if not content.startswith(BINARY))
    for piece in pieces if texts else ():
        name = chance.choice(texts)
        content = example.files[name]
        begins = [0, *(at + 1 for at, byte in enumerate(content) if byte == 10)]
        for where, at in (("within", chance.randrange(len(content) + 1)), ("before a line", chance.choice(begins))):
            yield f"{piece!r} {where} at {at} of {name}", _with_run(example, name, piece, at)
    for name in texts:
        yield f"{name} again and again", _repeated(example, name)


def _with_run(example: Example, name: str, piece: bytes, at: int) -> Make:
    content = example.files[name]
    return lambda length: example.with_file(name, content[:at] + piece * (length // len(piece)) + content[at:])


def _repeated(example: Example, name: str) -> Make:
    content = example.files[name]
    return lambda length: example.with_file(name, content * max(length // max(len(content), 1), 1))


def _faults(example: Example, make: Make, length: int, folder: Path) -> list[str]:
    """The oracles of any damage, and that time is linear."""
    began = time.thread_time()
    faults = faults_of(make(length), folder)
    seconds = time.thread_time() - began
    if not faults and seconds > QUICK_S:
        seconds = min(seconds, _seconds(make(length), folder))
        shorter = min(_seconds(make(length // TIMES_LONGER), folder) for _ in range(2))
        if seconds > QUICK_S and seconds > MOST_GROWTH * max(shorter, QUICK_S / TIMES_LONGER / 2):
            faults = [f"{length} bytes take {seconds:.2f} s, an eighth of them {shorter:.3f} s"]
    shutil.rmtree(folder)
    return faults


def _seconds(example: Example, folder: Path) -> float:
    began = time.thread_time()
    faults_of(example, folder)
    return time.thread_time() - began


def slow_to_recognise(example: Example, source: str, path: Path, most_s: float) -> list[str]:
    """Heads that begin as the example does and go on with one thing, over which a source takes longer than `most_s`."""
    chance = random.Random(f"{example.name} {source}")
    content = max(example.files.values(), key=len)
    slow = []
    for piece in SHORT:
        lead = content[: chance.choice((0, chance.randrange(len(content) + 1)))]
        head = (lead + piece * HEAD_BYTES)[:HEAD_BYTES]
        took = _recognised_s(source, path, head)
        if took > most_s:
            took = min(took, _recognised_s(source, path, head))
        if took > most_s:
            slow.append(f"{source}: {lead[-20:]!r} and {piece!r}: {took:.2f} s")
    return slow


def _recognised_s(source: str, path: Path, head: bytes) -> float:
    path.write_bytes(head)
    began = time.thread_time()
    try:
        with time_limit(5):
            get_source(source).recognises(path, head)
    except TooLong:
        return float("inf")
    return time.thread_time() - began
