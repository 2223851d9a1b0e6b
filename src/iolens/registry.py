"""Sources and analyses by name: our own modules, and other packages through entry points.

A module below one of our packages that assigns the constant (`SOURCE`, `ANALYSIS`) is found by its text: nothing is
imported before it is asked for. Another package registers an object of the same kind in its `pyproject.toml`:

    [project.entry-points."iolens.sources"]
    my-format = "my_package.my_format:SOURCE"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolens.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_NAME = re.compile(r'^    name = "([\w-]+)"', re.MULTILINE)  # of the class whose object the constant is


@cache
def registered(group: str, constant: str, *packages: str) -> dict[str, EntryPoint]:
    """Every registered object by its name, ours first: a package cannot replace one of them."""
    from importlib.metadata import EntryPoint, entry_points  # late: samplers on compute nodes do not need it

    points: dict[str, EntryPoint] = {}
    for package in packages:
        spec = find_spec(package)
        for folder in (spec and spec.submodule_search_locations) or ():
            for path, text in _modules_below(Path(folder)):
                if f"\n{constant}" in text:
                    module = ".".join((package, *path.relative_to(folder).with_suffix("").parts))
                    name = _name(path, text)
                    points[name] = EntryPoint(name, f"{module}:{constant}", group)
    for other in entry_points(group=group) if Path(__file__).is_file() else ():  # the agent of one file is alone
        points.setdefault(other.name, other)
    return dict(sorted(points.items()))


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
def load(entry: EntryPoint) -> Any:
    """The registered object itself; a package that cannot be imported is named."""
    if entry.module.startswith("iolens."):
        return getattr(import_module(entry.module), entry.attr)
    try:
        return entry.load()
    except Exception as error:
        raise UsageError(f"{entry.group} {entry.name!r} of {entry.value} cannot be loaded: {error}") from error
