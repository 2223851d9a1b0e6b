"""Which targets of a file system a user means: short names, in whatever case."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from iolens.errors import UsageError
from iolens.nearest_names import not_among


def chosen_targets(given: Sequence[str], known: Collection[str], filesystem: str) -> tuple[str, ...]:
    """The targets that were meant: `OST0001` is `scratch-OST0001`, in whatever case; an error names the nearest.

    A file system that has no targets, only records such as drives, leaves them as they are.
    """
    if not known:
        return tuple(given)
    return tuple(dict.fromkeys(_chosen_target(name, known, filesystem) for name in given))


def _chosen_target(given: str, known: Collection[str], filesystem: str) -> str:
    if given in known:
        return given
    meant = given.lower()
    names = sorted(name for name in known if meant in (name.lower(), *_short_names(name, filesystem)))
    if len(names) == 1:
        return names[0]
    if names:
        raise UsageError(f"several targets of {filesystem} may be meant by {given!r}: {', '.join(names)}")
    raise UsageError(f"{filesystem} has no target {given!r}{_nearest(given, known, filesystem)}")


def _nearest(given: str, known: Collection[str], filesystem: str) -> str:
    """The nearest targets, as they were asked for: with or without the file system's name."""
    prefix = f"{filesystem}-"
    is_whole = given.lower().startswith(prefix.lower())
    return not_among(given, known if is_whole else [name.removeprefix(prefix) for name in known])


def _short_names(name: str, filesystem: str) -> Iterator[str]:
    """A target's name without the file system's, which users leave out."""
    lower = name.lower()
    yield lower.removeprefix(f"{filesystem.lower()}-").removeprefix(f"{filesystem.lower()}:")
    yield lower.rpartition("-")[2]
