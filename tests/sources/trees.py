"""Made-up directory trees, and what `find` says of them."""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from iolens.records import Rows
from iolens.scan.findings import Findings
from iolens.scan.mounts import mounts, owner_name
from iolens.scan.workers import ScanOrder, new_progress, run_scan
from iolens.sources.contents.inode_counts import ENDS

NOW_S = 1_700_000_000
TYPES = {"f": "file", "d": "dir", "l": "symlink", "p": "fifo", "s": "sock", "b": "blk", "c": "chr"}
NAMES = ["plain", "with space", "new\nline", os.fsdecode(b"\xff\xfe-latin"), "grün", "tab\t", "-dash", "*star?"]
FIELDS = ("%y", "%s", "%b", "%U", "%A@", "%T@", "%n", "%i", "%P")


class ListedInode(NamedTuple):
    """One name, as `find` sees it."""

    kind: str
    size: int
    allocated: int
    uid: int
    atime: int
    mtime: int
    links: int
    inode: int
    path: bytes


def grow(root: Path, seed: int, directories: int = 40, files: int = 300) -> None:
    """A tree with every kind of inode a user can make, odd names, holes, hard links, link loops, and ages."""
    draw = random.Random(seed)
    root.mkdir(parents=True, exist_ok=True)
    places = [root]
    for number in range(directories):
        place = draw.choice(places) / f"{draw.choice(NAMES)}-{number}"
        place.mkdir()
        places.append(place)
    made: list[Path] = []
    regular: list[Path] = []
    for number in range(files):
        path = draw.choice(places) / f"{draw.choice(NAMES)}.{number}"
        _make(draw, path, regular, places)
        made.append(path)
    for path in [*made, *places]:
        ages = [draw.choice((-50, 0, 1, 3600, 86400 * draw.randrange(1, 4000))) for _ in range(2)]
        os.utime(path, (NOW_S - ages[0], NOW_S - ages[1]), follow_symlinks=False)


def _make(draw: random.Random, path: Path, regular: list[Path], places: list[Path]) -> None:
    kind = draw.choice(("file",) * 8 + ("link",) * 3 + ("symlink", "loop", "fifo"))
    if kind == "link" and regular:
        path.hardlink_to(draw.choice(regular))
        regular.append(path)
    elif kind == "symlink":
        path.symlink_to(draw.choice(("/nowhere", "/etc/passwd", *places)))
    elif kind == "loop":
        path.symlink_to(draw.choice((".", "..", path.name)))
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        with path.open("wb") as stream:
            stream.write(bytes(draw.choice((0, 0, 1, 2, 3, 4096, draw.randrange(20_000)))))
            if draw.random() < 0.2:
                stream.truncate(draw.randrange(1 << 33))
        regular.append(path)


def listed_inodes(root: Path) -> list[ListedInode]:
    """Every name below `root`, and `root` itself, by `find`."""
    format_ = "".join(field + r"\0" for field in FIELDS)  # a name may hold any other byte
    done = subprocess.run(["find", os.fsencode(root), "-xdev", "-printf", format_], capture_output=True, check=True)
    fields = done.stdout.split(b"\0")[:-1]
    return [_listed(*fields[begin : begin + len(FIELDS)]) for begin in range(0, len(fields), len(FIELDS))]


def _listed(kind: bytes, *fields: bytes) -> ListedInode:
    *numbers, path = fields
    size, blocks, uid, atime, mtime, links, inode = (int(number.partition(b".")[0]) for number in numbers)
    return ListedInode(TYPES[kind.decode()], size, blocks * 512, uid, atime, mtime, links, inode, path)


def once(names: list[ListedInode]) -> list[ListedInode]:
    """Each inode once."""
    return list({name.inode: name for name in names}.values())


def histogram_of(names: list[ListedInode], now_s: int = NOW_S) -> Counter[Any]:
    """By definition, one by one: owner, type, histogram, bin → inodes, and the same with bytes and allocation."""
    sums: Counter[Any] = Counter()
    for item in once(names):
        group = owner_name(item.uid), item.kind
        for name, value in (("size", item.size), ("atime", now_s - item.atime), ("mtime", now_s - item.mtime)):
            end = next((end for end in ENDS[name] if value <= end), None)
            for what, number in (("count", 1), ("bytes", item.size), ("allocated_bytes", item.allocated)):
                sums[*group, name, end, what] += number
    widths = Counter(name.path.rpartition(b"/")[0] for name in names if name.path)
    for item in names:
        if item.kind == "dir":
            width = widths[item.path]
            end = next(end for end in ENDS["width"] if width <= end)
            sums[owner_name(item.uid), "dir", "width", end, "count"] += 1
    return +sums


def records(findings: Findings) -> Iterator[dict[str, Any]]:
    """Rows of `contents`; hard-linked inodes are settled first."""
    findings.settle()
    for item in findings.counts.rows("scratch"):
        assert isinstance(item, Rows)
        for place in range(item.count):
            yield {name: column[place] if isinstance(column, list) else column for name, column in item.columns.items()}


def histogram(findings: Findings) -> Counter[Any]:
    """The same of a scan."""
    sums: Counter[Any] = Counter()
    for row in records(findings):
        for what in ("count", "bytes", "allocated_bytes"):
            sums[row["owner"], row["inode_type"], row["histogram"], row["bin"], what] += row[what] or 0
    return +sums


def scanned(root: Path, workers: int = 2, **order: Any) -> Findings:
    """A scan without a journal."""
    asked = ScanOrder(str(root), NOW_S * 1_000_000, **order)
    progress = new_progress(asked)
    run_scan(asked, progress, workers=workers, mounts=mounts())
    assert not progress.unfinished
    return progress.findings
