"""Which days of a table are one part of an answer: as many as have few rows, and the same ones in any window."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby
from typing import Final, NamedTuple

from iolens.store.parts import EPOCH

BLOCKS: Final = (64, 16, 4)  # days that may be one part, counted from 1970
MOST_TOGETHER: Final = 500_000  # rows of parts too small to be remembered that are made as one


class DayBlock(NamedTuple):
    """Days that are one part."""

    first: date
    last: date
    rows: int
    is_of_small: bool = False


def day_blocks(
    rows: Mapping[date, int], most_rows: int, fewest_remembered: int, apart: Collection[date] = ()
) -> Iterator[DayBlock]:
    """Of the rows of each day; a part of fewer rows than `fewest_remembered` is not remembered.

    Between the days of a block is none of those that are to be `apart`.
    """
    blocks = _blocks(rows, most_rows, apart)
    return _together(blocks, rows, min(most_rows, MOST_TOGETHER), fewest_remembered, apart)


def _blocks(rows: Mapping[date, int], most_rows: int, apart: Collection[date] = ()) -> Iterator[tuple[date, date]]:
    """First and last of the days that are taken together: as many as have few rows, and the same ones in any window.

    Between them is none of those that are to be `apart`.
    """
    if not rows:
        return
    numbers = {day.toordinal() - EPOCH: count for day, count in sorted(rows.items())}
    first, last = min(numbers), max(numbers)
    not_in = {day.toordinal() - EPOCH for day in apart}

    def cut(numbers: dict[int, int], widths: Sequence[int]) -> Iterator[tuple[int, int]]:
        for width, *narrower in (widths,) if widths else ():
            for _, some in groupby(numbers.items(), key=lambda item: item[0] // width):
                block = dict(some)
                begin = next(iter(block)) // width * width
                is_whole = (
                    first <= begin and begin + width - 1 <= last and not_in.isdisjoint(range(begin, begin + width))
                )
                if is_whole and sum(block.values()) <= most_rows:
                    yield begin, begin + width - 1
                else:
                    yield from cut(block, narrower)
        if not widths:
            yield from ((number, number) for number in numbers)

    for begin, end in cut(numbers, BLOCKS):
        yield date.fromordinal(begin + EPOCH), date.fromordinal(end + EPOCH)


def _together(
    blocks: Iterable[tuple[date, date]],
    rows: Mapping[date, int],
    most_rows: int,
    fewest_remembered: int,
    apart: Collection[date],
) -> Iterator[DayBlock]:
    """Neighbours that are too small to be remembered are one, up to so many rows."""
    before: DayBlock | None = None
    for first, last in blocks:
        block = DayBlock(first, last, sum(count for day, count in rows.items() if first <= day <= last))
        if before is not None:
            if _may_join(before, block, most_rows, fewest_remembered) and not any(
                before.last < day < first for day in apart
            ):
                before = DayBlock(before.first, last, before.rows + block.rows, is_of_small=True)
                continue
            yield before
        before = block
    if before is not None:
        yield before


def _may_join(before: DayBlock, block: DayBlock, most_rows: int, fewest_remembered: int) -> bool:
    is_small = before.is_of_small or before.rows < fewest_remembered
    return is_small and block.rows < fewest_remembered and before.rows + block.rows < most_rows
