"""The inputs of a capacity plan from lists such as `3,4`, `3..4` and `100TB..150TB`, and from what-ifs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from iolens.errors import UsageError
from iolens.plans.inputs import OPTION, Input, parse_input
from iolens.units import parse_capacity


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number; write 28, 3,4 or 3..4") from None


PARSERS: Final[dict[str, Callable[[str], float]]] = {
    "ssi": _number,
    "purge_days": _number,
    "purge_fraction": _number,
    "daily_growth_bytes": parse_capacity,
}
OPTIONS: Final = {name.removesuffix("_bytes").replace("_", "-"): name for name in PARSERS}


def capacity_inputs(name: str, text: str, origin: str) -> list[Input]:
    """One input for each member of a list."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise UsageError(f"{name}: nothing is given")
    return [parse_input(name, word, PARSERS[name], origin) for word in words]


def what_ifs(texts: Sequence[str]) -> dict[str, list[Input]]:
    """Inputs by name from `NAME=LIST`."""
    inputs = {}
    for text in texts:
        option, equals, values = text.partition("=")
        if not equals or option.strip() not in OPTIONS:
            raise UsageError(f"--what-if {text!r}: write NAME=LIST, with NAME one of {', '.join(OPTIONS)}")
        name = OPTIONS[option.strip()]
        inputs[name] = capacity_inputs(name, values, f"{OPTION}--what-if {option.strip()}")
    return inputs
