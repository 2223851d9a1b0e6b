"""Sources and analyses by name: our own modules, and other packages through entry points.

A module below one of our packages that assigns the constant (`SOURCE`, `ANALYSIS`) is found by its text: nothing is
imported before it is asked for. Another package registers an object of the same kind in its `pyproject.toml`:

    [project.entry-points."iolens.sources"]
    my-format = "my_package.my_format:SOURCE"
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from iolens.errors import UsageError

_NAME = re.compile(r'^    name = "([\w-]+)"', re.MULTILINE)  # of the class whose object the constant is


class RegisteredObject(NamedTuple):
    """Where a registered object is: `value` is its module, a colon and its name there."""

    name: str
    value: str
    group: str


@cache
def registered(group: str, constant: str, *packages: str) -> dict[str, RegisteredObject]:
    """Every registered object by its name, ours first: a package cannot replace one of them."""
    points: dict[str, RegisteredObject] = {}
    for package in packages:
        spec = find_spec(package)
        for folder in (spec and spec.submodule_search_locations) or ():
            for path, text in _modules_below(Path(folder)):
                if f"\n{constant}" in text:
                    module = ".".join((package, *path.relative_to(folder).with_suffix("").parts))
                    name = _name(path, text)
                    points[name] = RegisteredObject(name, f"{module}:{constant}", group)
    if Path(__file__).is_file() and _is_named(group, sys.path):  # the agent of one file is alone
        from importlib.metadata import entry_points  # late: it takes longer than a log of Darshan to read

        for other in entry_points(group=group):
            points.setdefault(other.name, RegisteredObject(other.name, other.value, group))
    return dict(sorted(points.items()))


def _is_named(group: str, folders: Iterable[str]) -> bool:
    """Whether an installed package may register something in a group: its list of entry points has the name."""
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True  # packages that are somewhere else
    for folder in folders:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 (a name for each of many packages)
        except OSError:
            if os.path.isfile(folder):  # noqa: PTH113 (an archive, which may hold packages)
                return True
            continue
        for name in names:
            if name.endswith(".egg") or (name.endswith((".dist-info", ".egg-info")) and _has(folder, name, group)):
                return True
    return False


def _has(folder: str, package: str, group: str) -> bool:
    try:
        with open(os.path.join(folder, package, "entry_points.txt"), "rb") as stream:  # noqa: PTH118, PTH123
            return group.encode() in stream.read()
    except OSError:
        return False


def _modules_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every module of a package with its text: files, or members of the one file that the agent is."""
    if folder.is_dir():
        yield from ((path, path.read_text("utf-8")) for path in sorted(folder.rglob("*.py")))
        return
    from zipfile import ZipFile

    file = next(parent for parent in folder.parents if parent.is_file())
    with ZipFile(file) as archive:
        for path in sorted(file / name for name in archive.namelist() if name.endswith(".py")):
            if path.is_relative_to(folder):
                yield path, archive.read(str(path.relative_to(file))).decode()


def _name(path: Path, text: str) -> str:
    if path.stem == "analysis":
        return path.parent.name
    stated = _NAME.search(text)
    return stated[1] if stated else path.stem.replace("_", "-")


@cache
def load(entry: RegisteredObject) -> Any:
    """The registered object itself; a package that cannot be imported is named."""
    module, _, attribute = entry.value.partition(":")
    if module.startswith("iolens."):
        return getattr(import_module(module), attribute)
    from importlib.metadata import EntryPoint

    try:
        return EntryPoint(*entry).load()
    except Exception as error:
        raise UsageError(f"{entry.group} {entry.name!r} of {entry.value} cannot be loaded: {error}") from error
