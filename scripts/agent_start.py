"""How `iolens-agent.pyz` starts: with modules that an earlier start compiled, else with those of the file itself.

`make_agent.py` puts this into the file as `__main__`. Compiled code is of one Python version, so it cannot be shipped
for all; it is kept in `$XDG_CACHE_HOME/iolens-agent` (`~/.cache/iolens-agent`), one file that is read at once. Code
from there is run, so nobody else may be able to write it: otherwise, and whenever anything else is wrong, the agent
starts without it and says nothing.
"""

from __future__ import annotations

import _frozen_importlib_external as import_system  # `importlib.util` would load more than this needs
import marshal
import os
import stat
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

SOURCES = ""  # hash of all modules: `make_agent.py` fills it in
FOLDER = "iolens-agent"
SUFFIX = ".modules"
MOST_KEPT = 4  # files of other versions of the agent or of Python; more are removed, oldest first
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
NOT_PRIVATE = stat.S_IRWXG | stat.S_IRWXO


class CompiledModules:
    """Finds and loads modules by their compiled code; `archive` is where their source is."""

    def __init__(self, archive: str, codes: dict[str, bytes]) -> None:
        self.archive, self.codes = archive, codes

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """What Python asks of the importers in `sys.meta_path`."""
        file = name.replace(".", "/")
        package = f"{file}/__init__.py"
        file = package if package in self.codes else f"{file}.py"
        if file not in self.codes:
            return None
        spec: Any = type(import_system.__spec__)(name, self, is_package=file == package)
        spec.origin, spec.has_location = f"{self.archive}/{file}", True
        if file == package:
            spec.submodule_search_locations.append(spec.origin.rpartition("/")[0])
        return spec

    def create_module(self, spec: object) -> None:
        """The usual kind of module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the code of a module."""
        file = str(module.__file__)[len(self.archive) + 1 :]
        exec(marshal.loads(self.codes[file]), module.__dict__)


def start(archive: str) -> None:
    """Have modules loaded from their compiled code, where that is possible."""
    try:
        folder = cache_folder()
        if folder is None:
            return
        path = folder / cache_name()
        codes = kept_codes(path)
        if codes is None and not sys.dont_write_bytecode:
            codes = compiled(archive)
            keep(path, codes)
    except (OSError, ValueError, EOFError, TypeError, SyntaxError, ImportError, KeyError):
        return
    if codes is not None:
        sys.meta_path.insert(0, CompiledModules(archive, codes))  # type: ignore[arg-type]


def cache_folder() -> Path | None:
    """The folder of compiled modules, made where it is missing; None where someone else could change what is in it."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        base = Path("~/.cache").expanduser()
    if not base.is_absolute():
        return None
    folder = base.resolve() / FOLDER
    if not sys.dont_write_bytecode:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder if is_private(folder) else None


def is_private(folder: Path) -> bool:
    """Whether only this user can reach into a folder, and nobody else but root can put another in its place."""
    mine = os.geteuid()
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != mine or status.st_mode & NOT_PRIVATE:
        return False
    above = [parent.lstat() for parent in folder.parents]
    return all(status.st_uid in (0, mine) and not _others_may_replace(status.st_mode) for status in above)


def _others_may_replace(mode: int) -> bool:
    """Whether others can remove what is in a folder: not where it is sticky, as /tmp is."""
    return bool(mode & OTHERS_MAY_WRITE) and not mode & stat.S_ISVTX


def cache_name() -> str:
    """The file of this agent for this Python: code of another would not run, or would crash it."""
    python = f"{sys.implementation.cache_tag}-{import_system.MAGIC_NUMBER.hex()}"
    return f"{SOURCES}-{python}-O{sys.flags.optimize}{SUFFIX}"


def kept_codes(path: Path) -> dict[str, bytes] | None:
    """Compiled modules of an earlier start by their file; None where there are none, or not all of them."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        foreign = status.st_uid != os.geteuid() or status.st_mode & OTHERS_MAY_WRITE
        if foreign or not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not ours")
        content = stream.read()
    if content[:4] != zlib.crc32(content[4:]).to_bytes(4, "big"):
        return None
    codes: dict[str, bytes] = marshal.loads(content[4:])
    return codes


def compiled(archive: str) -> dict[str, bytes]:
    """The code of every module of the archive, by its file."""
    from zipfile import ZipFile

    with ZipFile(archive) as sources:
        return {
            name: marshal.dumps(compile(sources.read(name), f"{archive}/{name}", "exec", dont_inherit=True))
            for name in sources.namelist()
            if name.endswith(".py") and name != "__main__.py"
        }


def keep(path: Path, codes: dict[str, bytes]) -> None:
    """Write them for the next start; other processes see the whole file or none."""
    content = marshal.dumps(codes)
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(zlib.crc32(content).to_bytes(4, "big") + content)
        beside.replace(path)
    except OSError:
        beside.unlink()
        raise
    remove_oldest(path)


def remove_oldest(mine: Path) -> None:
    """Keep a few files beside one's own."""
    others = sorted((path for path in mine.parent.iterdir() if path != mine), key=lambda path: path.lstat().st_mtime)
    for path in others[: max(len(others) - MOST_KEPT, 0)]:
        path.unlink()


if __name__ == "__main__":
    start(sys.path[0])
    from iolens.light.__main__ import main

    sys.exit(main())
