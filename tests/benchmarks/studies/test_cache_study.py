"""The cache study: files on both sides of memory, and a control group of version 1 or 2 that limits it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from iolens.benchmarks.studies import cache_study
from iolens.benchmarks.studies.cache_study import PREFIX, CacheParameters, NoMemoryLimit, memory_limit
from iolens.benchmarks.studies.plan import StudyPlan, new_folder
from iolens.benchmarks.studies.run import check_study, run_study
from iolens.errors import UsageError
from iolens.sources.benchmarks.study_runs import StudyJournal
from iolens.units import GIB, KIB, MIB
from tests.benchmarks.studies.made_studies import NO_LIMITS, made_place


def cgroup_tree(root: Path, version: int, controllers: str = "cpu memory pids") -> Path:
    """What the kernel shows of groups, where one can be made as a directory."""
    if version == 1:
        (root / "memory").mkdir(parents=True)
        (root / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
        return root / "memory"
    root.mkdir(exist_ok=True)
    (root / "cgroup.subtree_control").write_text(controllers + "\n")
    return root


@pytest.mark.parametrize(("version", "file"), [(1, "memory.limit_in_bytes"), (2, "memory.max")])
def test_a_group_has_the_limit_and_takes_its_member(tmp_path: Path, version: int, file: str) -> None:
    parent = cgroup_tree(tmp_path / "cgroup", version)
    with memory_limit(512 * MIB, tmp_path / "cgroup") as join:
        (group,) = parent.glob(f"{PREFIX}*")
        assert (group / file).read_text() == "536870912\n"
        (group / "cgroup.procs").touch()
        join()
        assert (group / "cgroup.procs").read_text() == f"{os.getpid()}\n"
        for path in group.iterdir():  # the kernel's own files go with their group
            path.unlink()
    assert list(parent.glob(f"{PREFIX}*")) == []


def test_every_group_has_a_name_of_its_own(tmp_path: Path) -> None:
    parent = cgroup_tree(tmp_path, 2)
    with memory_limit(1, tmp_path), memory_limit(1, tmp_path):
        assert len(list(parent.glob(f"{PREFIX}*"))) == 2


@pytest.mark.parametrize("controllers", ["", "cpu pids", "memory_pressure"])
def test_a_hierarchy_without_memory_is_said(tmp_path: Path, controllers: str) -> None:
    cgroup_tree(tmp_path, 2, controllers)
    with pytest.raises(NoMemoryLimit, match="has no memory controller"), memory_limit(1, tmp_path):
        pass


def test_no_hierarchy_at_all_is_said(tmp_path: Path) -> None:
    with pytest.raises(NoMemoryLimit, match="has no memory controller"), memory_limit(1, tmp_path / "none"):
        pass


def test_a_group_that_may_not_be_made_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cgroup_tree(tmp_path, 2)

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", denied)
    with pytest.raises(NoMemoryLimit, match=r"no control group can be made in .*: Permission denied"):
        memory_limit(1, tmp_path).__enter__()


def plan(folder: Path, parameters: CacheParameters, repeats: int = 1) -> StudyPlan:
    return StudyPlan("c", "cache", (made_place(folder),), parameters, repeats, NO_LIMITS)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> int:
    """A machine of 1 MiB."""
    monkeypatch.setattr(cache_study, "memory_bytes", lambda: MIB)
    return MIB


def sizes(plan: StudyPlan) -> list[int]:
    return [point.values["size"] for point in cache_study.KIND.points(plan)]


def test_files_are_a_quarter_and_three_times_of_memory_in_whole_blocks(tmp_path: Path, memory: int) -> None:
    assert sizes(plan(tmp_path, CacheParameters(512 * MIB))) == [128 * MIB, 1536 * MIB]
    assert sizes(plan(tmp_path, CacheParameters(None, block_bytes=4 * KIB))) == [256 * KIB, 3 * MIB]
    assert sizes(plan(tmp_path, CacheParameters(10 * KIB, block_bytes=KIB))) == [2 * KIB, 30 * KIB]
    assert sizes(plan(tmp_path, CacheParameters(GIB, 16 * MIB, 2 * GIB))) == [16 * MIB, 2 * GIB]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (
            CacheParameters(MIB, 2 * MIB, 4 * MIB),
            "one file must be smaller than memory and one larger: 2 MiB, 1 MiB, 4",
        ),
        (CacheParameters(8 * MIB, MIB, 4 * MIB), "one file must be smaller than memory and one larger"),
        (CacheParameters(8 * MIB, MIB + 1, 16 * MIB), "not a whole number of blocks"),
        (CacheParameters(KIB), "one file must be smaller|not a whole number"),
        (CacheParameters(0), "at least 1 byte"),
        (CacheParameters(block_bytes=0), "at least 1 byte"),
    ],
)
def test_files_that_are_not_on_both_sides_are_refused(
    tmp_path: Path, memory: int, parameters: CacheParameters, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        check_study(plan(tmp_path, parameters), StudyJournal())


def test_where_memory_cannot_be_limited_it_is_said_what_to_do(
    tmp_path: Path, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> Any:
        raise NoMemoryLimit("no control group can be made in /sys/fs/cgroup: Permission denied")

    monkeypatch.setattr(cache_study, "memory_limit", none)
    with pytest.raises(
        UsageError, match=r"Permission denied; without --memory the machine's 1 MiB count: --memory none"
    ):
        check_study(plan(tmp_path, CacheParameters(64 * MIB)), StudyJournal())


def test_without_a_limit_all_passes_over_both_files_are_measured(tmp_path: Path, memory: int) -> None:
    folder = new_folder(tmp_path / "study", plan(tmp_path, CacheParameters(None, block_bytes=64 * KIB), repeats=2))
    assert run_study(folder).is_whole
    journal = folder.journal()
    assert list(journal.rows) == [f"scratch/file={size}/{repeat}" for repeat in (0, 1) for size in ("256KiB", "3MiB")]
    for rows in journal.rows.values():
        passes = [(row["direction"], row.get("fsync"), row.get("page_cache")) for row in rows]
        assert passes == [
            ("write", False, None), ("write", True, None), ("read", None, "warm"), ("read", None, "dropped")
        ]  # fmt: skip
        assert {row["operations"] for row in rows} == {rows[0]["bytes"] // (64 * KIB)}
        assert {row["memory_bytes"] for row in rows} == {MIB}
        assert rows[1]["duration_s"] >= rows[0]["duration_s"]  # the fsync comes on top
    assert list((tmp_path / "scratch").iterdir()) == []


def test_the_passes_are_a_program_of_their_own(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "iolens.benchmarks.studies.cache_passes", tmp_path / "data", "8192", "4096"]
    printed = subprocess.run(list(map(str, words)), capture_output=True, check=True).stdout
    assert [done["calls"] for done in json.loads(printed)] == [2, 2, 2, 2]
