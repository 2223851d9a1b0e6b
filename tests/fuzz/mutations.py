"""Seeded damage to a file: what a bad disk, a cut transfer, a careless hand or an ill-wisher does to it."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable
from typing import Final, NamedTuple

RUNS: Final = (b" ", b"\n", b"9", b"[", b'"', b",", b"\t", b"{", b"a", b"\0", b"-", b";", b":", b"\\", b"%", b".")
NUMBERS: Final = (
    b"-1", b"9" * 19, b"18446744073709551615", b"9" * 25, b"9" * 5000, b"1e308", b"1e400", b"nan", b"inf", b"-0",
    b"0x7fffffffffffffff", b"1_000", b"\xd9\xa3", b"", b"1.5.2", b"9223372036854775807", b"00000000000000000000001",
    b"1e18446744073709551615", b"4611686018427387904", b"253402300800", b"-9223372036854775809", b"0.0000001", b"+7",
)  # fmt: skip
NESTED: Final = (b"[" * 5000, b'{"a":' * 5000, b"[" * 5000 + b"]" * 5000)
LONG: Final = 3000
_NUMBER: Final = re.compile(rb"\d+(?:\.\d+)?")


class Mutation(NamedTuple):
    """What was done, and what came of it."""

    kind: str
    content: bytes


def mutated(content: bytes, chance: random.Random) -> Mutation:
    """One to three kinds of damage, one after the other."""
    kinds = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        kind = chance.choice(KINDS)
        content = kind(content, chance)
        kinds.append(kind.__name__)
    return Mutation("+".join(kinds), content)


def flip(content: bytes, chance: random.Random) -> bytes:
    """Other bytes in a few places."""
    damaged = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 8)) if damaged else 0):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    return bytes(damaged)


def cut(content: bytes, chance: random.Random) -> bytes:
    """The beginning alone."""
    return content[: chance.randrange(len(content) + 1)]


def behead(content: bytes, chance: random.Random) -> bytes:
    """The end alone."""
    return content[chance.randrange(len(content) + 1) :]


def delete(content: bytes, chance: random.Random) -> bytes:
    """A stretch taken out."""
    begin, length = chance.randrange(len(content) + 1), chance.choice((1, 2, 8, 100))
    return content[:begin] + content[begin + length :]


def double(content: bytes, chance: random.Random) -> bytes:
    """A stretch written twice."""
    begin = chance.randrange(len(content) + 1)
    end = begin + chance.choice((1, 8, 100, 1000))
    return content[:end] + content[begin:end] + content[end:]


def insert_run(content: bytes, chance: random.Random) -> bytes:
    """One byte, thousands of times."""
    return _inserted(content, chance.choice(RUNS) * chance.choice((1, 20, LONG)), chance)


def insert_nested(content: bytes, chance: random.Random) -> bytes:
    """Brackets deeper than any stack."""
    return _inserted(content, chance.choice(NESTED), chance)


def change_number(content: bytes, chance: random.Random) -> bytes:
    """A number that no counter has."""
    result = list(_NUMBER.finditer(content))
    if not result:
        return _inserted(content, chance.choice(NUMBERS), chance)
    item = chance.choice(result)
    return content[: item.start()] + chance.choice(NUMBERS) + content[item.end() :]


def blank_beside_number(content: bytes, chance: random.Random) -> bytes:
    """A blank before or after a number."""
    result = list(_NUMBER.finditer(content))
    if not result:
        return content
    at = chance.choice(chance.choice(result).span())
    return content[:at] + chance.choice((b" ", b"\t", b"\xc2\xa0")) + content[at:]


def drop_line(content: bytes, chance: random.Random) -> bytes:
    """A line that is not there."""
    lines = content.splitlines(keepends=True)
    if lines:
        del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def swap_lines(content: bytes, chance: random.Random) -> bytes:
    """Two lines in each other's place."""
    lines = content.splitlines(keepends=True)
    if len(lines) > 1:
        item, other = chance.sample(range(len(lines)), 2)
        lines[item], lines[other] = lines[other], lines[item]
    return b"".join(lines)


def repeat_line(content: bytes, chance: random.Random) -> bytes:
    """A line again, elsewhere."""
    lines = content.splitlines(keepends=True)
    if lines:
        lines.insert(chance.randrange(len(lines)), chance.choice(lines))
    return b"".join(lines)


def swap_words(content: bytes, chance: random.Random) -> bytes:
    """Two words of a line in each other's place."""
    words = re.split(rb"([ ,;:|\t]+)", content)
    places = range(0, len(words), 2)
    if len(places) > 1:
        item = chance.choice(places[:-1])
        other = min(item + 2 * chance.randrange(1, 6), places[-1])
        words[item], words[other] = words[other], words[item]
    return b"".join(words)


def pad(content: bytes, chance: random.Random) -> bytes:
    """Zeros at the end, as some copies have."""
    return content + bytes(chance.choice((1, 7, 4096)))


def pack(content: bytes, chance: random.Random) -> bytes:
    """gzip, whole or damaged."""
    packed = gzip.compress(content, mtime=0)
    return packed if chance.random() < 0.3 else chance.choice((flip, cut, double))(packed, chance)


def _inserted(content: bytes, what: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    return content[:at] + what + content[at:]


KINDS: Final[tuple[Callable[[bytes, random.Random], bytes], ...]] = (
    flip, cut, behead, delete, double, insert_run, insert_nested, change_number, change_number, change_number,
    blank_beside_number, drop_line, swap_lines, repeat_line, swap_words, pad, pack,
)  # fmt: skip
