"""What a disk may hold after a power cut: the system calls of a process, and every state its files could be left in.

The process runs under strace. Names and contents that were not synced may be lost, alone or together; what was synced
is there. `make soak` goes through all times, the tests through some.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

CALLS = (
    "openat,open,creat,write,pwrite64,writev,lseek,ftruncate,fallocate,rename,renameat,renameat2,link,linkat,unlink,"
    "unlinkat,mkdir,mkdirat,rmdir,fsync,fdatasync,close,dup,dup2,dup3,fcntl"
)
LONG_AGO = 1_500_000_000
_CALL = re.compile(r"(?P<call>\w+)\((?P<arguments>.*)\)\s*= (?P<result>-?\d+)")
_ARGUMENT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(?:\.\.\.)?|([^,\s"][^,]*)')


def has_strace() -> bool:
    """Whether system calls can be recorded here."""
    return shutil.which("strace") is not None


@dataclass
class Node:
    """A file or directory: as programs see it, and as it is on disk for sure."""

    is_directory: bool
    content: bytearray = field(default_factory=bytearray)
    names: dict[str, Node] = field(default_factory=dict)
    synced_content: bytes = b""
    synced_names: dict[str, Node] = field(default_factory=dict)

    def sync(self) -> None:
        """What fsync promises: the content of this file, or the names in this directory, and no more."""
        self.synced_content, self.synced_names = bytes(self.content), dict(self.names)


Tree = dict[str, bytes | None]  # path → content; None for a directory


@dataclass
class Disk:
    """A directory tree while system calls change it."""

    root: Path
    top: Node = field(default_factory=lambda: Node(is_directory=True))
    opened: dict[int, tuple[Node, int]] = field(default_factory=dict)
    synced_at: int = 0  # number of the last call that had anything written

    def take_in(self, folder: Path, node: Node | None = None) -> None:
        """Begin with what is there, all of it on disk."""
        node = node or self.top
        for path in folder.iterdir():
            child = node.names[path.name] = Node(path.is_dir())
            if path.is_dir():
                self.take_in(path, child)
            else:
                child.content += path.read_bytes()
                child.sync()
        node.sync()

    def find(self, path: str) -> tuple[Node, str] | None:
        """The directory that holds a path of the tree, and its last name."""
        absolute = os.path.normpath(path)
        if not absolute.startswith(f"{self.root}/"):
            return None
        *above, last = absolute[len(str(self.root)) + 1 :].split("/")
        node = self.top
        for name in above:
            if name not in node.names:
                return None
            node = node.names[name]
        return node, last

    def apply(self, number: int, call: str, arguments: Sequence[str | bytes], result: int) -> bool:
        """Follow one call; whether it changed something."""
        if result < 0:
            return False
        paths = [argument for argument in arguments if isinstance(argument, bytes)]
        if call in ("openat", "open", "creat"):
            return self._open(os.fsdecode(paths[0]), str(arguments[-1] if call == "open" else arguments[2:]), result)
        if call in ("mkdir", "mkdirat") and (place := self.find(os.fsdecode(paths[0]))):
            place[0].names[place[1]] = Node(is_directory=True)
            return True
        if call in ("unlink", "unlinkat", "rmdir") and (place := self.find(os.fsdecode(paths[0]))):
            del place[0].names[place[1]]
            return True
        if call in ("rename", "renameat", "renameat2", "link", "linkat"):
            old, new = (self.find(os.fsdecode(path)) for path in paths[:2])
            if old and new:
                new[0].names[new[1]] = old[0].names[old[1]]
                if call.startswith("rename"):
                    del old[0].names[old[1]]
                return True
            return False
        return self._on_descriptor(number, call, arguments, result)

    def _open(self, path: str, flags: str, descriptor: int) -> bool:
        self.opened.pop(descriptor, None)
        if Path(path) == self.root:
            self.opened[descriptor] = self.top, 0
            return False
        place = self.find(path)
        if place is None:
            return False
        folder, name = place
        is_new = name not in folder.names
        node = folder.names.setdefault(name, Node(is_directory=False))
        if "O_TRUNC" in flags:
            node.content.clear()
        self.opened[descriptor] = node, len(node.content) if "O_APPEND" in flags else 0
        return is_new or "O_TRUNC" in flags

    def _on_descriptor(self, number: int, call: str, arguments: Sequence[str | bytes], result: int) -> bool:
        descriptor = int(str(arguments[0]))
        if call == "close":
            self.opened.pop(descriptor, None)
        if descriptor not in self.opened:
            return False
        node, offset = self.opened[descriptor]
        if call in ("dup", "dup2", "dup3") or (call == "fcntl" and "F_DUPFD" in str(arguments[1])):
            self.opened[result] = node, offset
        elif call in ("fsync", "fdatasync"):
            node.sync()
            self.synced_at = number
            return True
        elif call == "lseek":
            self.opened[descriptor] = node, result
        elif call == "ftruncate":
            size = int(str(arguments[1]))
            node.content[size:] = bytes(max(0, size - len(node.content)))
            return True
        elif call in ("write", "pwrite64"):
            written = arguments[1]
            assert isinstance(written, bytes)
            at = int(str(arguments[3])) if call == "pwrite64" else offset
            node.content[at : at + result] = written[:result]
            if call == "write":
                self.opened[descriptor] = node, offset + result
            return True
        elif call in ("writev", "fallocate"):
            raise AssertionError(f"{call} is not followed")
        return False

    def tree(self, names: Callable[[Node], dict[str, Node]], content: Callable[[Node], bytes]) -> Tree:
        """All paths, by what a directory and a file are taken to hold."""

        def walk(node: Node, above: str) -> Iterator[tuple[str, bytes | None]]:
            for name, child in names(node).items():
                yield f"{above}{name}", None if child.is_directory else content(child)
                if child.is_directory:
                    yield from walk(child, f"{above}{name}/")

        return dict(walk(self.top, ""))

    def only_synced(self) -> Tree:
        """Everything that was not synced is lost, names as well as contents."""
        return self.tree(lambda node: node.synced_names, lambda node: node.synced_content)

    def names_without_content(self) -> Tree:
        """Names reached the disk and contents did not: what a journal of metadata leaves."""
        return self.tree(lambda node: node.names, lambda node: node.synced_content)

    def torn(self, chance: random.Random) -> Tree:
        """Names reached the disk, and of each file that was not synced some beginning, or zeros."""

        def content(node: Node) -> bytes:
            whole = bytes(node.content)
            if whole == node.synced_content:
                return whole
            kept = chance.choice([0, len(whole), chance.randint(0, len(whole)), _line_end(whole, chance)])
            zeros = bytes(len(whole) - kept) if chance.random() < 0.2 else b""
            beginning = whole[:kept] + zeros
            return beginning if len(beginning) >= len(node.synced_content) else node.synced_content

        return self.tree(lambda node: node.names, content)


def _line_end(text: bytes, chance: random.Random) -> int:
    """A cut exactly between two lines, where nothing looks torn."""
    ends = [place for place, octet in enumerate(text) if octet == 10]
    return chance.choice(ends) if ends else 0


def recorded(command: Sequence[object], root: Path, trace: Path) -> Disk:
    """The tree before a command ran; its calls are in `trace`."""
    disk = Disk(root.resolve())
    disk.take_in(root)
    options = ["-f", "-qq", "-xx", "-s", str(64 << 20), "-e", f"trace={CALLS}", "-e", "signal=none", "-o", str(trace)]
    done = subprocess.run(["strace", *options, *map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return disk


def calls(trace: Path) -> Iterator[tuple[str, list[str | bytes], int]]:
    """The recorded calls in the order in which they ended: name, arguments, result."""
    begun: dict[str, str] = {}
    with trace.open() as lines:
        for line in lines:
            process, _, text = line.rstrip("\n").partition(" ")
            text = text.lstrip()
            if text.endswith("<unfinished ...>"):
                begun[process] = text.removesuffix("<unfinished ...>").rstrip()
                continue
            if text.startswith("<..."):
                text = begun.pop(process) + text.partition(" resumed>")[2]
            if match := _CALL.match(text):
                yield match["call"], _arguments(match["arguments"]), int(match["result"])


def _arguments(text: str) -> list[str | bytes]:
    names: list[str | bytes] = []
    for match in _ARGUMENT.finditer(text):
        word = match.group(2)
        names.append(word if word is not None else bytes.fromhex(match.group(1).replace("\\x", "")))
    return names


def states(disk: Disk, trace: Path, chance: random.Random, share: float = 1.0) -> Iterator[tuple[str, Tree]]:
    """What the disk may hold after a power cut at each time, or at a share of the times; with a name for it."""
    numbers = count()
    for call, arguments, result in calls(trace):
        number = next(numbers)
        if not disk.apply(number, call, arguments, result) or chance.random() >= share:
            continue
        yield f"{call} {number}, only what was synced", disk.only_synced()
        yield f"{call} {number}, names without content", disk.names_without_content()
        yield f"{call} {number}, torn", disk.torn(chance)
    yield "the end, only what was synced", disk.only_synced()
    yield "the end, names without content", disk.names_without_content()


def lay_out(tree: Tree, folder: Path) -> None:
    """Make a state of the disk a directory again, written long ago."""
    folder.mkdir()
    for path, content in tree.items():
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)
            os.utime(folder / path, (LONG_AGO, LONG_AGO))
