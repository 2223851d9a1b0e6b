"""Outside formats in, rows of our tables out. One module per format; raw counters stay raw.

A module below this package that defines `SOURCE` is a source, and so is what another package registers under
`iolens.sources`; nothing else needs to know of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

from iolens.errors import InputError, UsageError, unexpected
from iolens.records import Capture
from iolens.registry import RegisteredObject, load, registered
from iolens.sources.reading.bounded_input import head_of
from iolens.sources.reading.options import ReadOptions as ReadOptions


class Source(Protocol):
    """One outside format.

    Optional: `stored_as`, the store's source name when it differs; `whole_directories = True` when a directory is one
    piece (otherwise each file below it is read); `takes_base_names = True` when a path may be what several files'
    names begin with; `schemes`, the URL schemes it answers to, with `url_captures(urls, options)`; `continues = True`
    when it reads a URL from the last stored job on (`options.last_jobs`).
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


def _registered() -> dict[str, RegisteredObject]:
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
