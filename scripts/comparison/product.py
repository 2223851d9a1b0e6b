"""The few names of the package that a comparison needs, by the places they had and have; and what takes their place.

A revision that moves one of them adds its new place to `PLACES`: the first that is there counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, Final

PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "the command line": ("iolens.cli.main:iolens",),
    "a figure as a picture": ("iolens.views.render.matplotlib_figure:to_bytes",),  # (figure, kind) → bytes
    "a figure as data of a page": ("iolens.views.render.bokeh_figure:item",),  # (figure) → a JSON document
}
PICTURE: Final = b"figure "  # what a described picture begins with


def place(name: str) -> tuple[Any, str]:
    """The module that has it now, and its name there."""
    for text in PLACES[name]:
        module, _, attribute = text.partition(":")
        try:
            home = import_module(module)
        except ModuleNotFoundError:
            continue
        if hasattr(home, attribute):
            return home, attribute
    raise SystemExit(f"{name}: not at {', '.join(PLACES[name])}; add its place to {__name__}.PLACES")


def command_line() -> Any:
    """The group of all verbs."""
    module, name = place("the command line")
    return getattr(module, name)


def describe_figures() -> None:
    """From now on a figure is not drawn: its description, as JSON, stands where its picture would."""
    replace("a figure as a picture", lambda figure, *_: PICTURE + described(figure).encode())
    replace("a figure as data of a page", lambda figure, *_: {"figure": plain(figure)})


def replace(name: str, instead: Callable[..., Any]) -> None:
    """Put something in the place of a name."""
    module, attribute = place(name)
    setattr(module, attribute, instead)


def described(figure: Any) -> str:
    """A figure as a line of JSON."""
    return json.dumps(plain(figure), ensure_ascii=False)


def plain(value: Any) -> Any:
    """Dataclasses as objects that name their class, arrays as lists, numbers as they are; NaN as a text."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"is": type(value).__name__, **{item.name: plain(getattr(value, item.name)) for item in fields(value)}}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if isinstance(value, str | int | None) else str(value)
