"""Compact lists of hosts as Slurm prints them: `nid[0001-0003,7],login1`. They are stored so, and expanded on demand.

A range is bounded before anything is built from it: `n[0-999999999]` in a damaged record must not take the memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Final

from iolens.sources.reading.parsed_numbers import shown

MOST_NODES: Final = 1_000_000
LONGEST_LIST: Final = 1 << 20  # characters
_MOST_DIGITS: Final = 12
_PIECE: Final = re.compile(r"\[([^\[\]]*+)\]|([^\[\],]++)")
_NUMBERED: Final = re.compile(rf"(.*?)([0-9]{{1,{_MOST_DIGITS}}})")
_RANGE: Final = re.compile(rf"([0-9]{{1,{_MOST_DIGITS}}})(?:-([0-9]{{1,{_MOST_DIGITS}}}))?")


def expand_nodes(text: str, most: int = MOST_NODES) -> list[str]:
    """Every host of a compact list, in its order; ValueError where it is none, or has more than `most` hosts."""
    if len(text) > LONGEST_LIST:
        raise ValueError(f"a node list of {len(text)} characters: longer than {LONGEST_LIST >> 10} KiB")
    names: list[str] = []
    for entry in _entries(text):
        parts = list(_parts(entry))
        length = 1
        for part in parts:
            length *= sum(last - first + 1 for first, last, _ in part) if isinstance(part, list) else 1
        if len(names) + length > most:
            raise ValueError(f"node list {shown(text)} has more than {most} hosts")
        names += map("".join, product(*(_texts(part) for part in parts)))
    return names


def count_nodes(text: str) -> int | None:
    """How many hosts a list has; None where it is none."""
    try:
        return len(expand_nodes(text))
    except ValueError:
        return None


def compact_nodes(names: Iterable[str]) -> str:
    """The inverse of `expand_nodes`, as short as numbers at the end of names allow; in order of names and numbers."""
    plain: list[str] = []
    numbered: dict[tuple[str, int], list[int]] = {}  # by what stands before the number, and its digits
    for name in sorted(set(names)):
        match = _NUMBERED.fullmatch(name)
        if match is None:
            plain.append(name)
        else:
            numbered.setdefault((match[1], len(match[2])), []).append(int(match[2]))
    parts = [_compacted(stem, width, numbers) for (stem, width), numbers in numbered.items()]
    return ",".join([*plain, *parts])


def _compacted(stem: str, width: int, numbers: Sequence[int]) -> str:
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number])
    texts = ["-".join(f"{end:0{width}}" for end in ends) for ends in ranges]
    return f"{stem}[{','.join(texts)}]" if len(numbers) > 1 else f"{stem}{texts[0]}"


def _entries(text: str) -> Iterator[str]:
    """What stands between commas that are outside brackets."""
    begin = depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            yield text[begin:place].strip()
            begin = place + 1
    yield text[begin:].strip()


def _parts(entry: str) -> Iterator[str | list[tuple[int, int, int]]]:
    """Texts, and the ranges of each pair of brackets: first, last and width with leading zeros."""
    end = 0
    for match in _PIECE.finditer(entry):
        if match.start() != end:
            break
        end = match.end()
        yield match[2] if match[2] is not None else [_range(piece, entry) for piece in match[1].split(",")]
    if end != len(entry) or not entry:
        raise ValueError(f"not a node list: {shown(entry)}")


def _range(piece: str, entry: str) -> tuple[int, int, int]:
    match = _RANGE.fullmatch(piece.strip())
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise ValueError(f"not a range of hosts: {shown(piece)} in {shown(entry)}")
    return int(match[1]), int(match[2] or match[1]), len(match[1])


def _texts(part: str | list[tuple[int, int, int]]) -> list[str]:
    if isinstance(part, str):
        return [part]
    return [f"{number:0{width}}" for first, last, width in part for number in range(first, last + 1)]
