"""Outside formats in, rows of our tables out. One module per format; raw counters stay raw.

A module below this package that defines `SOURCE` is a source, and so is what another package registers under
`iolens.sources`; nothing else needs to know of it.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Protocol, TypeVar

from iolens.config import DeviceRule, ProjectRule
from iolens.errors import InputError, IolensError, UsageError, unexpected
from iolens.records import Capture, Item
from iolens.registry import load, registered
from iolens.sources.reading.bounded_input import head_of, opened_packed

Input = TypeVar("Input")
Opened = TypeVar("Opened")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user supplies where a format lacks it."""

    filesystem: str | None = None
    target: str | None = None
    timezone: str | None = None
    interval_s: float | None = None
    at: datetime | None = None
    since: datetime | None = None  # only moments from here on, where a format can skip
    until: datetime | None = None  # and before this one
    settings: Mapping[str, Any] = field(default_factory=dict)  # `[sources.NAME]` of the configuration
    zones: Mapping[str, str] = field(default_factory=dict)  # configured time zones by file system
    devices: DeviceRule = field(default_factory=DeviceRule)  # `[devices]` of the configuration
    projects: ProjectRule = field(default_factory=ProjectRule)  # `[projects]` of the configuration


class Source(Protocol):
    """One outside format.

    Optional: `stored_as`, the store's source name when it differs; `whole_directories = True` when a directory is one
    piece (otherwise each file below it is read); `takes_base_names = True` when a path may be what several files'
    names begin with; `schemes`, the URL schemes it answers to, with `url_captures(urls, options)`.
    """

    name: str
    summary: str

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether `path`, which begins with `head` (empty for a directory), looks like this format."""

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """The ingestible pieces of `paths`, in time order where the format tells."""


def source_names() -> list[str]:
    """Names of all sources."""
    return list(_registered())


def get_source(name: str) -> Source:
    """The source of that name."""
    if name not in _registered():
        raise UsageError(f"no source is called {name!r}; there are: {', '.join(source_names())}")
    source: Source = load(_registered()[name])
    return source


def _registered() -> dict[str, EntryPoint]:
    return registered("iolens.sources", "SOURCE", "iolens.sources", "iolens.scan")


@cache
def all_sources() -> tuple[Source, ...]:
    """Every source, loaded."""
    return tuple(get_source(name) for name in source_names())


def recognise(path: Path) -> Source:
    """The source whose format `path` has."""
    if not path.exists():
        raise InputError(str(path), "no such file or directory")
    head = b"" if path.is_dir() else head_of(path)
    if not head and path.is_file():
        raise InputError(str(path), "empty file", "telemetry")
    failed = ""
    for source in all_sources():
        try:
            if source.recognises(path, head):
                return source
        except Exception as error:  # one source that stumbles over a file of another must not hide it
            failed = f" ({source.name}: {unexpected(error)})"
    expected = f"one of {', '.join(source_names())}; name it to insist"
    raise InputError(str(path), f"format not recognised{failed}", expected)


def content_identity(path: Path) -> str:
    """Identity of a file: the hash of its content, so that the same file twice adds nothing."""
    with opened_packed(path) as stream:
        return "file/" + hashlib.file_digest(stream, "sha256").hexdigest()


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
