"""Who hears what happens while something long is made: lines for a person, and steps of progress."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass


def _warn(line: str) -> None:
    warnings.warn(line, stacklevel=3)


def _ignore(label: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Listener:
    """`say` takes a line that a person should read, `step` the label of a part that is done.

    In Python a line is a warning and progress is not shown; the command line prints both to standard error.
    """

    say: Callable[[str], None] = _warn
    step: Callable[[str], None] = _ignore
