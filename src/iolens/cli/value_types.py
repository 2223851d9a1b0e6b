"""Values of options on the command line: kinds of values as `question.py` declares them, for click."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import click

from iolens import question
from iolens.question import ChoiceKind, Kind, NumberKind, quantity, words_of
from iolens.units import parse_bytes


class KindType(click.ParamType[Any]):
    """Text as the kind reads it, in the zone that `--timezone` names; a usage error shows how to write it."""

    def __init__(self, kind: Kind) -> None:
        self.name = kind.word
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """What the text means."""
        given = None if ctx is None else ctx.params.get("timezone")  # known by now: the option is eager
        zone = given if isinstance(given, str) else None
        try:
            return self.kind.read(value, zone) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


class FiniteRange(click.FloatRange):
    """A number within bounds, and one that there is: `nan` is within none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        converted: float = super().convert(value, param, ctx)
        if not math.isfinite(converted):
            self.fail(f"{value!r} is not a number", param, ctx)
        return converted


def click_type(kind: Kind) -> click.ParamType[Any]:
    """The kind as click has it: ranges and choices are shown in the help."""
    if isinstance(kind, ChoiceKind):
        return click.Choice(kind.words)
    if isinstance(kind, NumberKind):
        if kind.python is int:
            return click.IntRange(_whole(kind.least), _whole(kind.most))
        return FiniteRange(kind.least, kind.most, min_open=kind.above)
    if kind is question.FILE:
        return click.Path(path_type=Path, dir_okay=False)
    return click.STRING if kind is question.TEXT else KindType(kind)


def sizes_type(multiple_of: int = 1) -> KindType:
    """A list of sizes in bytes, each once, in their order; those of transfers to a disk are multiples of its sector."""

    def read(text: str) -> tuple[int, ...]:
        sizes = tuple(dict.fromkeys(parse_bytes(word) for word in words_of(text)))
        if not sizes or any(size < 1 or size % multiple_of for size in sizes):
            bound = f"multiples of {multiple_of} bytes, " if multiple_of > 1 else ""
            raise ValueError(f"{text!r}: sizes are {bound}such as 4KiB,64KiB,1MiB")
        return sizes

    return KindType(quantity("sizes", read))


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


RATE: Final = KindType(question.RATE)
BYTES: Final = KindType(question.BYTES)
CAPACITY: Final = KindType(question.CAPACITY)
DURATION: Final = KindType(question.DURATION)
WORDS: Final = KindType(question.WORDS)
TIME: Final = KindType(question.TIME)
TIMES: Final = KindType(question.TIMES)
DAY: Final = KindType(question.DAY)
ZONE: Final = KindType(question.ZONE)
