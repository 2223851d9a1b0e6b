"""The few ways iolens can fail, each carrying the facts a person needs to act."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from iolens.visible_text import visible

REPORT: Final = "please report this"
_LONGEST_MESSAGE: Final = 200


class IolensError(Exception):
    """Something went wrong that the user can understand and act on; exit code 1."""

    exit_code = 1


class InputError(IolensError):
    """An input is missing or cannot be understood at all."""

    def __init__(self, place: str, problem: str, expected: str = "", line: int | None = None) -> None:
        self.place, self.line, self.problem, self.expected = place, line, problem, expected
        where = f"{place}:{line}" if line is not None else place
        super().__init__(visible(f"{where}: {problem}" + (f"; expected {expected}" if expected else "")))

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str, int | None]]:
        """How it passes from one of our processes to another."""
        return InputError, (self.place, self.problem, self.expected, self.line)


class StoreError(IolensError):
    """The store cannot be read or written as asked."""


class StoreBusyError(StoreError):
    """Other writers kept winning until the deadline; nothing was lost, send again."""


class AlertsBusyError(StoreError):
    """Another check of alerts has not ended; exit code 3: nothing was checked."""

    exit_code = 3


class UsageError(IolensError):
    """The question itself is incomplete or contradictory; exit code 2."""

    exit_code = 2


class OptionError(UsageError):
    """Options contradict each other, or the state of things; the command line shows its usage with it."""


class NotKnownError(UsageError):
    """An input of the question is neither given nor in the store; with it, there would be an answer."""


def unexpected(error: BaseException) -> str:
    """What to say of an exception that nobody foresaw while an input was read, so that it can be reported and mended.

    Which exception, and where in iolens: the innermost of our own places on its way.
    """
    import traceback

    package = Path(__file__).parent
    ours = [
        summary for summary in traceback.extract_tb(error.__traceback__) if package in Path(summary.filename).parents
    ]
    where = f"{Path(ours[-1].filename).relative_to(package)}:{ours[-1].lineno}" if ours else "outside iolens"
    message = " ".join(str(error).split())
    shown = message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…"
    return f"{REPORT}: {type(error).__name__} at {where}" + (f": {shown}" if shown else "")
