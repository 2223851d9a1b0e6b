"""Inputs that become captures: what identifies a file, and refusals that stand for inputs that cannot be read."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from iolens.errors import InputError, IolensError, unexpected
from iolens.records import Capture, Item
from iolens.sources.reading.bounded_input import regular_file

Input = TypeVar("Input")
Opened = TypeVar("Opened")


def content_identity(path: Path) -> str:
    """Identity of a file: the hash of its content, so that the same file twice adds nothing."""
    return f"file/{regular_file(path).sha256()}"


def read_each(
    inputs: Sequence[Input], read: Callable[[Input], Opened], name: Callable[[Input], str] = str
) -> tuple[list[Opened], list[Capture]]:
    """Open each path or database; one that cannot be read becomes a capture that says so, and the others go on.

    `name` is what an input is called in messages.
    """
    opened: list[Opened] = []
    refused: list[Capture] = []
    for one in inputs:
        try:
            opened.append(read(one))
        except InputError as error:
            refused.append(refusal(name(one), error))
        except IolensError:
            raise  # the question itself was wrong
        except OSError as error:
            refused.append(refusal(name(one), InputError(name(one), f"cannot be read: {error.strerror or error}")))
        except Exception as error:
            refused.append(refusal(name(one), InputError(name(one), f"not read; {unexpected(error)}")))
    return opened, refused


def refusal(origin: str, error: InputError) -> Capture:
    """A capture that only says why it cannot be read."""
    return Capture(origin, f"refused/{uuid.uuid4()}", partial(_refusal, error))


def _refusal(error: InputError) -> Iterator[Item]:
    raise error
    yield  # makes this an iterator that fails when it is read
