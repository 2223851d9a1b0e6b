"""A scan against `find`, one by one; while files come and go, broken off and resumed, in parts, and in odd places."""

from __future__ import annotations

import errno
import fcntl
import gc
import json
import multiprocessing
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.config import ProjectRule
from iolens.errors import InputError, IolensError
from iolens.scan import inodes as batch_stat
from iolens.scan import mounts as inode_owners
from iolens.scan import walk as tree_walk
from iolens.scan.findings import Findings, from_plain
from iolens.scan.inodes import EntryStats, OpenedTree, rows_of
from iolens.scan.journal import Journal, Progress
from iolens.scan.mounts import Mount, filesystem_name, mount_of, mount_points_below, mounts
from iolens.scan.walk import ScanPace, ScanPart, Signals, TreeWalk, WalkRule
from iolens.scan.workers import Interrupted, ScanOrder, new_progress, run_scan
from iolens.sources.contents.inode_counts import LARGEST, InodeCounts
from tests.sources.trees import NOW_S, grow, histogram, histogram_of, listed_inodes, once, records, scanned

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
NOW_US = NOW_S * 1_000_000


def rule(root: Path, **changes: Any) -> WalkRule:
    return WalkRule(str(root), NOW_US, root.stat().st_dev, **changes)


def walked(walk_rule: WalkRule, signals: Signals | None = None, **how: Any) -> Findings:
    """The work of one process, here."""
    walk = TreeWalk(walk_rule, signals or Signals([0, 0], [0]), **how)
    progress = Progress(Findings(InodeCounts(NOW_US)), {"": None})
    for step in walk.steps([""]):
        progress.take(step)
    walk.close()
    assert not progress.unfinished
    return progress.findings


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes of a scan have what the test replaced, whatever threads earlier tests left."""
    monkeypatch.setattr("iolens.scan.workers._may_fork", lambda: True)


@pytest.fixture
def in_flight(forked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file system counts as slow, and as one that can take more: soon as many lookups as may be are in flight."""
    monkeypatch.setattr("iolens.scan.inodes.SLOW_S", -1.0)
    monkeypatch.setattr("iolens.scan.inodes.FREE_RATIO", float("inf"))
    monkeypatch.setattr("iolens.scan.inodes.TURN_S", 1e-9)


@pytest.fixture
def public_path() -> Iterator[Path]:
    """A directory everybody may look into."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        if any(part.stat().st_mode & 0o005 != 0o005 for part in path.parents):
            pytest.skip("others may not come here at all")
        yield path


def totals(findings: Findings) -> tuple[int, int]:
    rows = [row for row in records(findings) if row["histogram"] == "size"]
    return sum(row["count"] for row in rows), sum(row["bytes"] for row in rows)


# Exactly what find sees.


@pytest.mark.parametrize("seed", range(6))
def test_a_scan_is_what_find_finds(tmp_path: Path, seed: int) -> None:
    grow(tmp_path / "tree", seed)
    findings = scanned(tmp_path / "tree", workers=1 + seed % 3)
    names = listed_inodes(tmp_path / "tree")
    assert findings.names == len(names)
    assert any(name.links > 1 and name.kind == "file" for name in names)
    assert histogram(findings) == histogram_of(names)
    assert (findings.vanished, findings.unreadable, findings.excluded) == (0, 0, 0)


def test_the_same_where_names_cannot_be_looked_at_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_walk, "usable", lambda descriptor: False)
    grow(tmp_path / "tree", 7)
    findings = scanned(tmp_path / "tree")
    names = listed_inodes(tmp_path / "tree")
    assert findings.names == len(names)
    assert histogram(findings) == histogram_of(names)


def test_hard_links_count_once_and_their_names_are_reported(tmp_path: Path) -> None:
    grow(tmp_path / "tree", 99)
    names = [item for item in listed_inodes(tmp_path / "tree") if item.links > 1 and item.kind != "dir"]
    links = scanned(tmp_path / "tree").settle()
    assert links == (len(once(names)), len(names))
    assert links.names > links.inodes > 0


def test_the_root_alone(tmp_path: Path) -> None:
    assert totals(scanned(tmp_path)) == (1, tmp_path.stat().st_size)


def test_a_directory_of_many(tmp_path: Path) -> None:
    """More entries than are held at once, in one directory."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    for number in range(100_000):
        os.mknod(f"file-{number}", 0o100600, dir_fd=descriptor)
    os.close(descriptor)
    findings = scanned(tmp_path)
    rows = list(records(findings))
    assert [(row["bin"], row["count"]) for row in rows if row["histogram"] == "width"] == [(131072, 1)]
    assert [row["count"] for row in rows if row["histogram"] == "size" and row["inode_type"] == "file"] == [100_000]


def test_deeper_than_a_path_can_be(tmp_path: Path) -> None:
    """Two thousand levels, their path some thirty kilobytes long."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    name = "deep-below-here"
    for _ in range(2000):
        os.mkdir(name, dir_fd=descriptor)
        inner = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(os.open("at the bottom", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)
    findings = scanned(tmp_path)
    assert (findings.names, findings.unreadable) == (2002, 0)
    subprocess.run(["rm", "-rf", tmp_path / name], check=True)  # deeper than the test's own clearing can go


def test_links_are_never_followed(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "large").write_bytes(bytes(5000))
    (tmp_path / "tree" / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "tree" / "loop").symlink_to(tmp_path / "tree")
    findings = scanned(tmp_path / "tree")
    assert {row["inode_type"]: row["count"] for row in records(findings) if row["histogram"] == "mtime"} == {
        "dir": 1,
        "symlink": 2,
    }


def test_a_root_that_is_a_link_is_meant(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file").touch()
    (tmp_path / "link").symlink_to("tree")
    assert scanned(tmp_path / "link").names == 2


@pytest.mark.parametrize("what", ["missing", "file"])
def test_a_root_that_is_no_directory(tmp_path: Path, what: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be scanned"):
        scanned(tmp_path / what)


def test_listing_does_not_change_access_times(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").touch()
    os.utime(tmp_path / "inner", (1000, 2000))
    scanned(tmp_path)
    assert (tmp_path / "inner").stat().st_atime == 1000


# Several lookups in flight.


def looked_at(walk_rule: WalkRule, lookups: int) -> tuple[Findings, int]:
    """The work of one process, and how many lookups it had in flight in the end."""
    walk = TreeWalk(walk_rule, Signals([0, 0], [0]), lookups=lookups)
    progress = Progress(Findings(InodeCounts(NOW_US)), {"": None})
    for step in walk.steps([""]):
        progress.take(step)
    walk.close()
    assert not progress.unfinished
    return progress.findings, walk._lookups.in_flight


@pytest.mark.usefixtures("in_flight")
@pytest.mark.parametrize("in_batches", [True, False])
@pytest.mark.parametrize("seed", range(31, 35))
def test_lookups_in_flight_find_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, in_batches: bool
) -> None:
    grow(tmp_path / "tree", seed, directories=60, files=600)
    monkeypatch.setattr(tree_walk, "usable", lambda descriptor: in_batches)
    alone, single = looked_at(rule(tmp_path / "tree"), 1)
    together, many = looked_at(rule(tmp_path / "tree"), 8)
    names = listed_inodes(tmp_path / "tree")
    assert (single, many) == (1, 8)
    assert together.names == alone.names == len(names)
    assert together.settle() == alone.settle()
    assert histogram(together) == histogram(alone) == histogram_of(names)


@pytest.mark.usefixtures("in_flight")
def test_processes_with_lookups_in_flight_find_what_find_finds(tmp_path: Path) -> None:
    grow(tmp_path / "tree", 35, directories=100, files=1500)
    findings = scanned(tmp_path / "tree", workers=3)
    names = listed_inodes(tmp_path / "tree")
    assert findings.names == len(names)
    assert histogram(findings) == histogram_of(names)


@pytest.mark.usefixtures("in_flight")
def test_entries_kept_with_lookups_in_flight_are_the_same(tmp_path: Path) -> None:
    grow(tmp_path / "tree", 36)
    tables = []
    for lookups in (1, 8):
        pieces = tmp_path / f"pieces-{lookups}"
        pieces.mkdir()
        looked_at(rule(tmp_path / "tree", pieces=pieces), lookups)
        tables.append(pq.read_table(pieces).to_pylist())
    alone, together = (sorted(table, key=lambda row: str(row["path"])) for table in tables)
    assert together == alone
    assert len(alone) == len(listed_inodes(tmp_path / "tree"))


@pytest.mark.usefixtures("in_flight")
def test_names_that_vanish_or_are_refused_in_flight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each of twelve directories ten of forty names go away before they are looked at, and three may not be."""
    for directory in range(12):
        (tmp_path / f"d{directory}").mkdir()
        for number in range(40):
            (tmp_path / f"d{directory}" / f"{number}").write_bytes(bytes(number))
    real_look, real_stat = batch_stat.BatchStat._look, os.stat

    def look(self: Any, descriptors: list[int], names: list[bytes], places: list[Any]) -> list[int]:
        for descriptor, name in zip(descriptors, names, strict=True):
            if int(name) % 4 == 0:
                os.unlink(name, dir_fd=descriptor)
        codes = real_look(self, descriptors, names, places)
        return [-1 if int(name) in (1, 2, 3) else code for name, code in zip(names, codes, strict=True)]

    def stat(path: Any, **how: Any) -> os.stat_result:
        if path in ("1", "2", "3"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real_stat(path, **how)

    monkeypatch.setattr(batch_stat.BatchStat, "_look", look)
    walk_rule = rule(tmp_path)
    monkeypatch.setattr(tree_walk, "usable", lambda descriptor: True)
    monkeypatch.setattr(os, "stat", stat)
    findings, many = looked_at(walk_rule, 8)
    monkeypatch.undo()
    assert many == 8
    assert (findings.names, findings.vanished, findings.unreadable) == (1 + 12 + 12 * 27, 120, 36)
    assert {place.reason for place in findings.unreadable_places} == {"3 of its entries: Permission denied"}
    sizes = sum(number for number in range(4, 40) if number % 4)
    files = [row for row in records(findings) if (row["histogram"], row["inode_type"]) == ("size", "file")]
    assert sum(row["bytes"] for row in files) == 12 * sizes


def test_errors_keep_nothing_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of a scan collect no cycles: an error that held its directory would stay for ever."""
    for directory in range(5):
        (tmp_path / f"d{directory}").mkdir()
        (tmp_path / f"d{directory}" / "file").touch()

    def stat(path: Any, **how: Any) -> os.stat_result:
        raise PermissionError(errno.EACCES, "Permission denied")

    real = OpenedTree.open

    def open_(self: OpenedTree, directory: str) -> int:
        if directory == "d3":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(self, directory)

    walk_rule = rule(tmp_path)
    monkeypatch.setattr(tree_walk, "usable", lambda descriptor: False)
    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(OpenedTree, "open", open_)
    gc.collect()
    gc.disable()
    try:
        findings, _ = looked_at(walk_rule, 1)
        left = [item for item in gc.get_objects() if isinstance(item, (OSError, tree_walk._Directory))]
    finally:
        gc.enable()
    assert findings.unreadable == 5
    assert left == []


def test_slow_lookups_are_made_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a millisecond or more, however busy the machine is."""
    grow(tmp_path / "tree", 37, directories=30, files=400)
    real, threads = batch_stat.BatchStat._look, set()

    def look(self: Any, descriptors: list[int], names: list[bytes], places: list[Any]) -> list[int]:
        threads.add(threading.current_thread().name)
        time.sleep(0.001 * len(names))
        return real(self, descriptors, names, places)

    monkeypatch.setattr(batch_stat.BatchStat, "_look", look)
    findings, _ = looked_at(rule(tmp_path / "tree"), 16)
    assert len(threads) > 2
    assert not any(thread.name in threads - {"MainThread"} for thread in threading.enumerate())
    assert histogram(findings) == histogram_of(listed_inodes(tmp_path / "tree"))


def test_the_first_who_may_not_ask_for_o_noatime_does_not_spoil_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread learns between the call and its error that it is refused."""
    (tmp_path / "inner").mkdir()
    tree = OpenedTree(str(tmp_path))
    real = os.open

    def refuse(path: str, flags: int, **how: Any) -> int:
        if flags & os.O_NOATIME:
            tree._no_atime = 0
            raise PermissionError(errno.EPERM, "Operation not permitted")
        return real(path, flags, **how)

    monkeypatch.setattr(os, "open", refuse)
    os.close(tree.open("inner"))
    tree.close()


# Owners and projects.


def test_projects_by_directory(tmp_path: Path) -> None:
    for path in ("climate/a/b", "physics", "none"):
        (tmp_path / "p" / path).mkdir(parents=True)
    (tmp_path / "p" / "climate" / "a" / "b" / "file").write_bytes(bytes(7))
    (tmp_path / "p" / "README").write_bytes(bytes(3))
    (tmp_path / "p" / "none").rename(tmp_path / "p" / os.fsdecode(b"\xff"))
    findings = scanned(tmp_path, projects=ProjectRule((f"{tmp_path}/p/{{project}}",)))
    sums: dict[Any, int] = {}
    for row in records(findings):
        if row["histogram"] == "size":
            sums[row["project"], row["inode_type"]] = sums.get((row["project"], row["inode_type"]), 0) + row["count"]
    assert sums == {
        (None, "dir"): 2, (None, "file"): 1,  # a file beside the projects is in none
        ("climate", "dir"): 3, ("climate", "file"): 1, ("physics", "dir"): 1, ("\\xff", "dir"): 1,
    }  # fmt: skip


def test_projects_by_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory's id is its own and that of the files in it; without one, the rule for directories counts."""
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    ids = {(tmp_path / "a").stat().st_ino: 4001, (tmp_path / "b").stat().st_ino: 4002}

    def ioctl(descriptor: int, request: int, answer: bytes) -> bytes:
        assert (request, len(answer)) == (0x801C581F, 28)
        inode = os.fstat(descriptor).st_ino
        if inode == tmp_path.stat().st_ino:
            raise OSError(errno.ENOTTY, "no project ids here")
        return struct.pack("=5I8x", 0, 0, 0, ids.get(inode, 0), 0)

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    projects = ProjectRule((f"{tmp_path}/{{project}}",), {"4001": "climate"})
    findings = walked(rule(tmp_path, projects=projects, project_ids=True))
    by_project = {row["project"] for row in records(findings) if row["inode_type"] == "file"}
    assert by_project == {"climate", "4002", "c"}
    assert {row["project"] for row in records(findings) if row["inode_type"] == "dir"} == {*by_project, None}


def test_an_owner_nobody_knows_is_a_number() -> None:
    assert inode_owners.owner_name(0) == "root"
    assert inode_owners.owner_name(3_987_654_321) == "3987654321"


@NEEDS_ROOT
def test_owners(tmp_path: Path) -> None:
    for uid in (0, 4_000_000_000):
        (tmp_path / str(uid)).write_bytes(bytes(10))
        os.chown(tmp_path / str(uid), uid, 0)
    owners = {
        row["owner"]: row["count"]
        for row in records(scanned(tmp_path))
        if row["histogram"] == "size" and row["bin"] == 16
    }
    assert owners == {"root": 1, "4000000000": 1}


# What is left out.


def test_exclusions(tmp_path: Path) -> None:
    for path in (".snapshot/old", "a/.snapshot", "a/b.tmp/c", "home/ada/cache/x", "home/ada/x"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "a" / "core.tmp").touch()
    findings = scanned(tmp_path, exclude=(".snapshot", "*.tmp", "/home/*/cache"))
    assert findings.excluded == 5
    assert findings.names == 5  # the root, a, home, home/ada, home/ada/x
    assert findings.snapshots == []


def test_directories_that_look_like_snapshots_are_named(tmp_path: Path) -> None:
    (tmp_path / ".zfs" / "snapshot").mkdir(parents=True)
    findings = scanned(tmp_path)
    assert [snapshot.path for snapshot in findings.snapshots] == [f"{tmp_path}/.zfs"]
    assert findings.names == 3


def test_another_file_system_inside_is_not_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mounted" / "inner").mkdir(parents=True)
    (tmp_path / "own").mkdir()
    real, inside = os.fstat, (tmp_path / "mounted").stat().st_ino

    def fstat(descriptor: int) -> os.stat_result:
        about = real(descriptor)
        if about.st_ino != inside:
            return about
        return os.stat_result((*about[:2], about.st_dev + 1, *about[3:]), {"st_blocks": about.st_blocks})

    monkeypatch.setattr(os, "fstat", fstat)
    findings = walked(rule(tmp_path))
    assert findings.names == 2
    assert [other_filesystem.path for other_filesystem in findings.other_filesystems] == [f"{tmp_path}/mounted"]
    assert walked(rule(tmp_path, cross_filesystems=True)).names == 4


def test_what_is_bound_from_the_same_file_system_is_not_counted_again(tmp_path: Path) -> None:
    (tmp_path / "bound" / "inner").mkdir(parents=True)
    findings = walked(rule(tmp_path, mount_points=frozenset({"bound"})))
    assert findings.names == 1
    assert [other_filesystem.path for other_filesystem in findings.other_filesystems] == [f"{tmp_path}/bound"]


# What cannot be read.


@NEEDS_ROOT
@pytest.mark.parametrize("lookups", [1, 8])
def test_an_unreadable_directory_is_named_and_counted_itself(public_path: Path, lookups: int) -> None:
    """As somebody who may not look into it."""
    tmp_path = public_path
    for name, mode in (("closed", 0o700), ("blind", 0o744), ("open", 0o755)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one").touch()
        (tmp_path / name / "two").touch()
        (tmp_path / name).chmod(mode)
    program = (
        "import os, sys, json\n"
        "from iolens.scan.walk import *\n"
        "from iolens.scan.journal import Progress\n"
        "from iolens.scan import inodes as lookups\n"
        "lookups.SLOW_S, lookups.TURN_S, lookups._ALONE = -1.0, 1e-9, 1\n"
        "root = sys.argv[1]\n"
        "rule = WalkRule(root, 0, os.stat(root).st_dev)\n"
        "os.setuid(65534)\n"
        "walk = TreeWalk(rule, Signals([0, 0], [0]), lookups=int(sys.argv[2]))\n"
        "found = [step.findings for step in walk.steps([''])]\n"
        "print(json.dumps([[one.names, one.unreadable, sorted(one.unreadable_places)] for one in found]))\n"
    )
    command = [sys.executable, "-c", program, tmp_path, str(lookups)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    ((names, unreadable, places),) = json.loads(done.stdout)
    assert names == 6  # the root, three directories, and the two files in the open one
    assert unreadable == 3
    assert places == [
        [f"{tmp_path}/blind", "2 of its entries: Permission denied"],
        [f"{tmp_path}/closed", "Permission denied"],
    ]


def test_a_directory_that_goes_away_has_vanished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    real = TreeWalk._push

    def push(self: TreeWalk, directory: str, names: list[str]) -> None:
        real(self, directory, names)
        if directory == "":
            (tmp_path / "b" / "file").unlink()
            (tmp_path / "b").rmdir()
            (tmp_path / "c").rename(tmp_path / "was-c")
            (tmp_path / "c").touch()  # a file now

    monkeypatch.setattr(TreeWalk, "_push", push)
    findings = walked(rule(tmp_path))
    assert (findings.names, findings.vanished, findings.unreadable) == (3, 2, 0)


def test_a_file_that_goes_away_has_vanished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (tmp_path / f"file-{number}").write_bytes(bytes(10))
    real = tree_walk.islice

    def islice(listing: Any, count: int) -> Any:
        batch = list(real(listing, count))
        (tmp_path / "file-3").unlink(missing_ok=True)
        return batch

    monkeypatch.setattr(tree_walk, "islice", islice)
    findings = walked(rule(tmp_path))
    assert (findings.names, findings.vanished, findings.unreadable) == (5, 1, 0)


def test_a_listing_that_breaks_off_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()

    def scandir(descriptor: int) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "scandir", scandir)
    findings = walked(rule(tmp_path))
    assert [tuple(unreadable_place) for unreadable_place in findings.unreadable_places] == [
        (str(tmp_path), "not listed to its end: Input/output error")
    ]
    assert findings.names == 1
    assert all(row["histogram"] != "width" for row in records(findings))


def test_more_unreadable_places_than_are_named_are_still_counted() -> None:
    findings = Findings(InodeCounts(0))
    for number in range(1500):
        findings.cannot_read(f"/{number}", "Permission denied")
    assert (findings.unreadable, len(findings.unreadable_places)) == (1500, 1000)


@pytest.mark.parametrize("in_batches", [True, False])
def test_files_above_4_eib_are_counted(endless_path: Path, monkeypatch: pytest.MonkeyPatch, in_batches: bool) -> None:
    """Sparse, as anybody may make them: three of the largest there can be, one just above 4 EiB, and a small one."""
    real = tree_walk.usable
    monkeypatch.setattr(tree_walk, "usable", lambda descriptor: in_batches and real(descriptor))
    sizes = [LARGEST, LARGEST, LARGEST, 2**62 + 1, 3]
    for place, size in enumerate(sizes):
        with (endless_path / str(place)).open("wb") as stream:
            stream.truncate(size)
    os.link(endless_path / "2", endless_path / "linked")
    files = [row for row in records(walked(rule(endless_path))) if row["inode_type"] == "file"]
    for name in ("size", "atime", "mtime"):
        mine = [row for row in files if row["histogram"] == name]
        assert (sum(row["count"] for row in mine), sum(row["bytes"] for row in mine)) == (5, sum(sizes)), name
        assert all(0 <= row["bytes"] <= LARGEST for row in mine)


def test_a_size_that_cannot_be_is_reported_and_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"x")
    whole = EntryStats.rows

    def wrong(self: EntryStats) -> Any:
        rows = whole(self)
        rows["size"][rows["size"] == 1] = -1
        return rows

    monkeypatch.setattr(tree_walk, "usable", lambda descriptor: False)
    monkeypatch.setattr(EntryStats, "rows", wrong)
    result = walked(rule(tmp_path))
    assert result.unreadable == 1
    assert "1 inodes of an impossible size, such as -1 bytes" in result.unreadable_places[0].reason


def test_inode_numbers_of_64_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two inodes that a signed or a rounded number would mix up."""
    for number, inode in enumerate((2**64 - 1, 2**64 - 2, 2**64 - 1)):
        columns = {"device": 0, "links": 2, "size": 5, "allocated": 512, "atime": 0, "mtime": number}
        about = os.stat_result((0o100644, inode, 1, 2, 0, 0, 5, 0, number, 0), {"st_blocks": 1})
        assert batch_stat._fields([about])[1].view(np.uint64).tolist() == [inode]
        if number == 0:
            findings = Findings(InodeCounts(0))
        code = findings.counts.code("ada", None, "file")
        findings.links.add(rows_of({**columns, "inode": [inode], "code": code}), findings.counts.groups)
    assert findings.settle() == (2, 3)


# While files come and go.


def churn(root: Path, stop: Any) -> None:
    draw = random.Random(7)
    number = 0
    while not stop.is_set():
        number += 1
        place = root / f"d{draw.randrange(30)}"
        inner = place / f"directory-{number}"
        inner.mkdir()
        for path in (place / f"passing-{number}", inner / "file"):
            path.write_bytes(bytes(3))
        passed = (place / f"passing-{number}").rename(place / f"passed-{number}")
        (inner / "file").unlink()
        inner.rmdir()
        if number % 2:
            passed.unlink()


@pytest.mark.usefixtures("in_flight")
def test_files_that_stay_are_counted_exactly_once_with_lookups_in_flight(tmp_path: Path) -> None:
    count_while_others_come_and_go(tmp_path)


def test_files_that_stay_are_counted_exactly_once_while_others_come_and_go(tmp_path: Path) -> None:
    count_while_others_come_and_go(tmp_path)


def count_while_others_come_and_go(tmp_path: Path) -> None:
    for directory in range(30):
        (tmp_path / f"d{directory}").mkdir()
        for number in range(200):
            (tmp_path / f"d{directory}" / f"stays-{number}").write_bytes(bytes(1000))
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    busy = context.Process(target=churn, args=(tmp_path, stop))
    busy.start()
    try:
        for _ in range(8):
            findings = scanned(tmp_path)
            stayed = [
                row["count"]
                for row in records(findings)
                if (row["histogram"], row["inode_type"], row["bin"]) == ("size", "file", 1024)
            ]
            assert stayed == [6000]  # all others are 3 bytes long
            assert findings.unreadable == 0
    finally:
        stop.set()
        busy.join()
    assert busy.exitcode == 0


# Steps, sharing, and the throttle.


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def now(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.mark.parametrize("rate", [3.0, 250.0, 40_000.0])
def test_the_throttle_holds(rate: float) -> None:
    clock = Clock()
    shared = SimpleNamespace(value=0.0)
    workers = [ScanPace(rate, shared, nullcontext(), clock.now, clock.sleep) for _ in range(3)]
    taken = 0
    for turn in range(300):
        worker = workers[turn % 3]
        assert worker.chunk <= max(1, rate * 0.05)
        worker.take(worker.chunk)
        taken += worker.chunk
        assert taken <= (clock.now_s - 100.0) * rate + worker.chunk + 1e-6
    assert taken >= (clock.now_s - 100.0) * rate * 0.99


def test_an_idle_throttle_saves_nothing_up() -> None:
    clock = Clock()
    pace = ScanPace(10.0, SimpleNamespace(value=0.0), nullcontext(), clock.now, clock.sleep)
    pace.take(1)
    clock.now_s += 1000.0
    pace.take(1)
    began = clock.now_s
    for _ in range(10):
        pace.take(1)
    assert clock.now_s - began == pytest.approx(1.0)


def test_a_throttled_walk_asks_for_every_entry(tmp_path: Path) -> None:
    grow(tmp_path / "tree", 3)
    clock = Clock()
    pace = ScanPace(100.0, SimpleNamespace(value=0.0), nullcontext(), clock.now, clock.sleep)
    findings = walked(rule(tmp_path / "tree"), pace=pace, now=clock.now)
    names = listed_inodes(tmp_path / "tree")
    directories = sum(name.kind == "dir" for name in names)
    # Each entry when it is listed, each directory again when it is opened; the root is listed nowhere.
    assert (clock.now_s - 100.0) * 100 == pytest.approx(findings.names - 1 + directories, abs=pace.chunk)
    assert histogram(findings) == histogram_of(names)


@pytest.mark.parametrize("directories", [1, 16])
def test_steps_add_up_and_what_is_unfinished_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directories: int
) -> None:
    """Every step as small as can be, with others asking for work all the time: nothing is lost, nothing twice."""
    monkeypatch.setattr(tree_walk, "DIRECTORIES", directories)
    monkeypatch.setattr(tree_walk, "ROWS", 5)  # many directories are larger
    grow(tmp_path / "tree", 5, directories=80)
    signals = Signals([1, 0], [0])
    progress = Progress(Findings(InodeCounts(NOW_US)), {"": None})
    waiting = [""]
    walk = TreeWalk(rule(tmp_path / "tree"), signals, step_s=0.0, share_s=0.0)
    steps = 0
    while waiting:
        given, waiting = waiting, []
        for step in walk.steps(given):
            assert set(step.done) <= set(progress.unfinished)
            assert not set(step.discovered) & set(progress.unfinished) - set(step.done)
            progress.take(step)
            assert set(step.given) <= set(progress.unfinished)
            waiting += step.given
            steps += 1
    assert steps > 40 // min(directories, 4)
    assert not progress.unfinished
    assert histogram(progress.findings) == histogram_of(listed_inodes(tmp_path / "tree"))


def test_threads_of_the_caller_are_respected(tmp_path: Path) -> None:
    """Where others run in this process, the scan's processes are started afresh instead of forked."""
    grow(tmp_path / "tree", 6)
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        assert histogram(scanned(tmp_path / "tree")) == histogram_of(listed_inodes(tmp_path / "tree"))
    finally:
        done.set()
        other.join()


@pytest.mark.usefixtures("forked")
def test_a_process_that_dies_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.setattr(TreeWalk, "_visit", lambda self, directory: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(IolensError, match="ended unasked"):
        scanned(tmp_path)


# The journal.


def order_of(root: Path, **more: Any) -> ScanOrder:
    return ScanOrder(str(root), NOW_US, **more)


def test_a_scan_broken_off_goes_on(tmp_path: Path) -> None:
    grow(tmp_path / "tree", 8, directories=100)
    order = order_of(tmp_path / "tree")
    journal = Journal(tmp_path / "state")
    progress = new_progress(order)
    journal.begin(order.plain(), progress)

    def interrupt(advance: Any) -> None:
        if turns < 6:
            os.kill(os.getpid(), signal.SIGTERM if turns % 2 else signal.SIGINT)

    turns = 0
    while True:
        try:
            run_scan(order, progress, workers=2, journal=journal, step_s=0.0, tell=interrupt)
            break
        except Interrupted:
            turns += 1
            journal.close()
            journal = Journal(tmp_path / "state")
            assert journal.order() == json.loads(json.dumps(order.plain()))
            progress = journal.progress()
            journal.begin(order.plain(), progress)
    assert turns > 1
    assert histogram(progress.findings) == histogram_of(listed_inodes(tmp_path / "tree"))
    journal.discard()
    assert not (tmp_path / "state").exists()


@pytest.mark.usefixtures("in_flight")
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_scan_broken_off_with_lookups_in_flight_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: signal.Signals
) -> None:
    """The signal comes when lookups have been made in threads; no process is left, and the sums are the same."""
    grow(tmp_path / "tree", 38, directories=60, files=900)
    real, threaded = batch_stat.BatchStat._look, multiprocessing.RawValue("q", 0)
    before = set(threading.enumerate())

    def look(self: Any, descriptors: list[int], names: list[bytes], places: list[Any]) -> list[int]:
        threaded.value |= threading.current_thread() is not threading.main_thread()
        time.sleep(0.002 * len(names))
        return real(self, descriptors, names, places)

    monkeypatch.setattr(batch_stat.BatchStat, "_look", look)
    monkeypatch.setattr("iolens.scan.workers.LOOK_S", 0.005)
    order = order_of(tmp_path / "tree")
    journal = Journal(tmp_path / "state")
    progress = new_progress(order)
    journal.begin(order.plain(), progress)

    def interrupt(advance: Any) -> None:
        if threaded.value:
            os.kill(os.getpid(), kind)

    with pytest.raises(Interrupted):
        run_scan(order, progress, workers=2, journal=journal, step_s=0.0, tell=interrupt)
    assert multiprocessing.active_children() == []
    assert set(threading.enumerate()) <= before
    journal.close()
    journal = Journal(tmp_path / "state")
    progress = journal.progress()
    assert progress.unfinished
    run_scan(order, progress, workers=2)
    assert histogram(progress.findings) == histogram_of(listed_inodes(tmp_path / "tree"))
    journal.discard()


@pytest.mark.parametrize("cut", [1, 7, 40])
def test_a_cut_line_is_as_if_the_step_had_not_been(tmp_path: Path, cut: int) -> None:
    grow(tmp_path / "tree", 9)
    order = order_of(tmp_path / "tree")
    journal = Journal(tmp_path / "state")
    progress = new_progress(order)
    journal.begin(order.plain(), progress)
    run_scan(order, progress, workers=2, journal=journal, step_s=0.0)
    lines = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(b"".join(lines[:-2]) + lines[-2][:-cut])
    progress = journal.progress()
    journal.begin(order.plain(), progress)
    run_scan(order, progress, workers=2, journal=journal)
    assert histogram(progress.findings) == histogram_of(listed_inodes(tmp_path / "tree"))
    journal.close()


@pytest.mark.parametrize("places", [[0], [1], [2], [-1], [2, 2, -1], [0, 1, 2, 3, -2]])
def test_a_line_that_is_there_twice_counts_once(tmp_path: Path, places: list[int]) -> None:
    """Beside itself or at the end; the scan goes on to the same sums."""
    grow(tmp_path / "tree", 9)
    order = order_of(tmp_path / "tree")
    journal = Journal(tmp_path / "state")
    progress = new_progress(order)
    journal.begin(order.plain(), progress)
    run_scan(order, progress, workers=2, journal=journal, step_s=0.0)
    expected = histogram(progress.findings)
    lines = journal.path.read_bytes().splitlines(keepends=True)[:-1]  # broken off before the last step
    beside = list(lines)
    for place in sorted((place % len(lines) for place in places), reverse=True):
        beside.insert(place + 1, lines[place])
    for content in (beside, [*lines, *(lines[place] for place in places)]):
        journal.path.write_bytes(b"".join(content))
        progress = journal.progress()
        run_scan(order, progress, workers=2)
        assert histogram(progress.findings) == expected
    assert expected == histogram_of(listed_inodes(tmp_path / "tree"))
    journal.close()


def test_a_line_that_is_missing_or_another_of_the_same_number_is_refused(tmp_path: Path) -> None:
    grow(tmp_path / "tree", 9)
    order = order_of(tmp_path / "tree")
    journal = Journal(tmp_path / "state")
    progress = new_progress(order)
    journal.begin(order.plain(), progress)
    run_scan(order, progress, workers=2, journal=journal, step_s=0.0)
    lines = journal.path.read_bytes().splitlines(keepends=True)
    other = json.dumps(json.loads(lines[2]) | {"done": []}).encode() + b"\n"
    for content, place in (([*lines[:2], *lines[3:]], 3), ([*lines[:4], other, *lines[4:]], 5)):
        journal.path.write_bytes(b"".join(content))
        with pytest.raises(InputError, match=rf"journal:{place}: a line with the number"):
            journal.progress()
    journal.close()


@pytest.mark.parametrize(
    "wrong", [b"{}\n", b"[]\n", b"rubbish\n", b'{"done":[],"found":[],"findings":[{}],"piece":null}\n']
)
def test_a_damaged_journal_is_refused_with_its_line(tmp_path: Path, wrong: bytes) -> None:
    order = order_of(tmp_path)
    journal = Journal(tmp_path / "state")
    journal.begin(order.plain(), new_progress(order))
    with journal.path.open("ab") as stream:
        stream.write(wrong + b'{"done":[],"found":[],"findings":[],"piece":null}\n')
    with pytest.raises(InputError, match=r"journal:3"):
        journal.progress()
    journal.close()


def test_a_journal_of_another_version_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.path.write_text('{"iolens_scan_journal": 1, "order": {}}\n')
    with pytest.raises(InputError, match="not a journal of this version"):
        journal.order()
    journal.close()


def test_only_one_scan_keeps_its_progress_in_a_place(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(IolensError, match="another scan"):
        Journal(tmp_path)
    journal.close()
    Journal(tmp_path).close()


def test_a_long_journal_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolens.scan.journal.COMPACT_BYTES", 20_000)
    monkeypatch.setattr("iolens.scan.journal.DIRECTORIES_PER_LINE", 7)
    monkeypatch.setattr("iolens.scan.findings.LINKS_PER_PIECE", 7)
    grow(tmp_path / "tree", 10, directories=150)
    order = order_of(tmp_path / "tree")
    journal = Journal(tmp_path / "state")
    progress = new_progress(order)
    journal.begin(order.plain(), progress)
    began: list[int] = []
    real = Journal.begin
    monkeypatch.setattr(
        Journal, "begin", lambda self, *args: (began.append(len(args[1].unfinished)), real(self, *args))
    )
    run_scan(order, progress, workers=2, journal=journal, step_s=0.0)
    assert began
    again = journal.progress()
    assert not again.unfinished
    assert histogram(again.findings) == histogram_of(listed_inodes(tmp_path / "tree"))
    assert again.findings.names == progress.findings.names
    journal.close()


KILLED = """
import sys
from pathlib import Path
from iolens.scan.journal import Journal
from iolens.scan.workers import ScanOrder, new_progress, run_scan
order = ScanOrder(sys.argv[1], int(sys.argv[3]))
journal = Journal(Path(sys.argv[2]))
progress = journal.progress() if journal.order() else new_progress(order)
journal.begin(order.plain(), progress)
print(len(progress.unfinished), flush=True)
run_scan(order, progress, workers=2, journal=journal, step_s=0.0, max_rate=float(sys.argv[4]))
print("done", flush=True)
"""


def test_killed_at_any_time_it_goes_on_to_the_same_sums(tmp_path: Path) -> None:
    """kill -9 of the scan, not of its processes: they see that nobody wants them any more."""
    grow(tmp_path / "tree", 11, directories=150, files=400)
    command = [sys.executable, "-c", KILLED, str(tmp_path / "tree"), str(tmp_path / "state"), str(NOW_US)]
    draw = random.Random(1)
    for _ in range(4):
        running = subprocess.Popen([*command, "700"], stdout=subprocess.PIPE, text=True)
        assert running.stdout is not None
        assert int(running.stdout.readline()) > 0
        wanted = 3 + draw.randrange(12)
        for _ in range(2000):  # until some steps more are written
            lines = (tmp_path / "state" / "journal").read_bytes().count(b"\n")
            if lines >= wanted or running.poll() is not None:
                break
            time.sleep(0.005)
        walking = psutil.Process(running.pid).children() if running.poll() is None else []
        running.kill()
        running.wait()
        assert psutil.wait_procs(walking, timeout=60)[1] == []
        running.stdout.close()
    journal = Journal(tmp_path / "state")
    before = journal.progress()
    assert before.findings.names > 0
    journal.close()
    done = subprocess.run([*command, "1e9"], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.endswith("done\n")
    journal = Journal(tmp_path / "state")
    progress = journal.progress()
    assert not progress.unfinished
    assert histogram(progress.findings) == histogram_of(listed_inodes(tmp_path / "tree"))
    journal.close()


# Parts and their sums.


@pytest.mark.parametrize(("of", "depth"), [(2, 1), (3, 2), (5, 3)])
def test_parts_add_up_to_the_whole(tmp_path: Path, of: int, depth: int) -> None:
    """Hard links between the parts count once; every part has something."""
    grow(tmp_path / "tree", 12, directories=60, files=500)
    whole = Findings(InodeCounts(NOW_US))
    for number in range(1, of + 1):
        part = scanned(tmp_path / "tree", part=ScanPart(number, of, depth))
        assert part.names > 0
        part.settle_complete()
        for piece in part.plain():  # as they are saved
            whole.add(from_plain(NOW_US, json.loads(json.dumps(piece))))
    names = listed_inodes(tmp_path / "tree")
    assert whole.names == len(names)
    assert histogram(whole) == histogram_of(names)


def test_an_inode_of_two_projects_is_of_the_first_whoever_sees_it_first(tmp_path: Path) -> None:
    for name in ("physics", "climate"):
        (tmp_path / name).mkdir()
    (tmp_path / "physics" / "file").write_bytes(bytes(9))
    os.link(tmp_path / "physics" / "file", tmp_path / "climate" / "same")
    os.link(tmp_path / "physics" / "file", tmp_path / "outside")
    for workers in (1, 2):
        findings = scanned(tmp_path, workers, projects=ProjectRule((f"{tmp_path}/{{project}}",)))
        assert {row["project"] for row in records(findings) if row["inode_type"] == "file"} == {"climate"}


links = st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["a", "b", None])), max_size=40)


@given(links, st.lists(st.integers(0, 3), min_size=40, max_size=40))
@settings(max_examples=60)
def test_linked_inodes_in_any_order_and_any_parts(names: list[tuple[int, str | None]], dealt: list[int]) -> None:
    parts = [Findings(InodeCounts(0)) for _ in range(4)]
    for (inode, project), place in zip(names, dealt, strict=False):
        part = parts[place]
        columns = {"device": 0, "inode": [inode], "links": 50, "size": inode, "allocated": 0, "atime": 0, "mtime": 0}
        code = part.counts.code("ada", project, "file")
        part.links.add(rows_of({**columns, "code": code}), part.counts.groups)
    whole = Findings(InodeCounts(0))
    for part in parts:
        whole.add(part)
    assert whole.settle() == (len({inode for inode, _ in names}), len(names))
    expected = {
        inode: min(
            (project for item, project in names if item == inode), key=lambda entry: (entry is None, entry or "")
        )
        for inode, _ in names
    }
    result = [(row["project"], row["count"]) for row in records(whole) if row["histogram"] == "mtime"]
    assert dict(result) == {item: list(expected.values()).count(item) for item in expected.values()}


# Mounts.

MOUNTINFO = rb"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /lustre rw - lustre 10.0.0.1@tcp,10.0.0.2@tcp:10.0.0.3@tcp:/scratch rw,flock
31 22 0:41 / /mnt/my\040home rw - nfs4 server:/export/home rw
32 30 0:42 / /lustre/inner/tmp rw - tmpfs tmpfs rw
33 22 0:43 / /gpfs/work rw - gpfs work1 rw
34 22 0:44 /sub /lustre2 rw - lustre mgs@o2ib:/home/sub rw
not a line
35 22 0:45 / /lustre rw - lustre 10.0.0.1@tcp:/scratch2 rw
"""


def test_what_a_file_system_is_called(tmp_path: Path) -> None:
    (tmp_path / "mountinfo").write_bytes(MOUNTINFO)
    known = mounts(tmp_path / "mountinfo")
    assert len(known) == 7
    names = {
        path: filesystem_name(path, known).name
        for path in ("/lustre/a/b", "/lustre2", "/mnt/my home/ada", "/gpfs/work", "/lustre/inner/tmp", "/lustre/inner")
    }
    assert names == {
        "/lustre/a/b": "scratch2",  # mounted over the first
        "/lustre2": "home", "/mnt/my home/ada": "my home", "/gpfs/work": "work1", "/lustre/inner/tmp": "tmp",
        "/lustre/inner": "scratch2",
    }  # fmt: skip
    assert filesystem_name("/usr", known) == (os.uname().nodename, "this host: /usr lies on its root file system")
    assert filesystem_name("/usr", []).name == os.uname().nodename
    assert mount_points_below("/lustre", known) == ["inner/tmp"]
    assert mount_points_below("/", known) == ["gpfs/work", "lustre", "lustre/inner/tmp", "lustre2", "mnt/my home"]


def test_the_mounts_of_this_machine() -> None:
    result = mount_of("/proc/self", mounts())
    assert result == Mount("/proc", "proc", result.source if result else "")
    assert mounts(Path("/nowhere")) == []


def test_a_journal_of_an_earlier_release_goes_on(tmp_path: Path) -> None:
    """Its lines, as the release before wrote them: a directory done, another to do, a hard-linked inode met once."""
    links = {"device": [0], "inode": [2**64 - 1], "links": [2], "seen": [1], "code": [0], "size": [5],
             "allocated": [512], "atime": [10], "mtime": [20]}  # fmt: skip
    first = {"groups": [["ada", None, "file"]], "sums": [[0, "size", 3, 2, 8, 1024]], "names": 3}
    findings = [first, {"groups": [["ada", None, "file"]], "links": links}]
    lines = [
        {"iolens_scan_journal": 2, "order": {"time_us": 0}, "scan": "s", "unfinished": [""], "number": 0},
        {"done": [""], "found": ["a"], "findings": findings, "piece": None, "number": 1},
    ]
    (tmp_path / "journal").write_text("".join(json.dumps(line) + "\n" for line in lines))
    journal = Journal(tmp_path)
    progress = journal.progress()
    journal.close()
    assert (list(progress.unfinished), progress.findings.names) == (["a"], 3)
    assert progress.findings.settle() == (1, 1)
    assert sum(item.inodes for key, item in progress.findings.counts.sums.items() if key[1] == "size") == 3
