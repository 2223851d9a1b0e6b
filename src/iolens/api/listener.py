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
    """`say` takes a line that a person should read, `step` the label of a part that is done, `done` what was asked for.

    In Python a line is a warning, and progress and what was done are not shown; the command line prints all to
    standard error.
    """

    say: Callable[[str], None] = _warn
    step: Callable[[str], None] = _ignore
    done: Callable[[str], None] = _ignore
