"""The few ways iolens can fail, each carrying the facts a person needs to act."""

from __future__ import annotations

from iolens.visible_text import visible


class IolensError(Exception):
    """Something went wrong that the user can understand and act on; exit code 1."""

    exit_code = 1


class InputError(IolensError):
    """An input is missing or cannot be understood at all."""

    def __init__(self, place: str, found: str, expected: str = "", line: int | None = None) -> None:
        self.place, self.line, self.found, self.expected = place, line, found, expected
        where = f"{place}:{line}" if line is not None else place
        super().__init__(visible(f"{where}: {found}" + (f"; expected {expected}" if expected else "")))

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str, int | None]]:
        """How it passes from one of our processes to another."""
        return InputError, (self.place, self.found, self.expected, self.line)


class StoreError(IolensError):
    """The store cannot be read or written as asked."""


class StoreBusyError(StoreError):
    """Other writers kept winning until the deadline; nothing was lost, send again."""


class UsageError(IolensError):
    """The question itself is incomplete or contradictory; exit code 2."""

    exit_code = 2


class NotKnownError(UsageError):
    """An input of the question is neither given nor in the store; with it, there would be an answer."""
