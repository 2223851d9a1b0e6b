"""The files of a Lustre server: where each version keeps them, and whole trees of real servers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iolens.errors import InputError
from iolens.records import Item, Note, Problem, Row, Sample
from iolens.schema import size_column
from iolens.sources import recognise
from iolens.sources.lustre.lustre_proc import SOURCE, read_tree
from iolens.sources.reading.options import ReadOptions

S = 1_000_000
T0 = 1_600_000_000
TREES = "lustre-server-proc"
REAL_TREES = {
    "lmt-1.8.3": (2, 1), "lmt-2.0.0.1": (3, 1), "lmt-2.0.50.zfs": (1, 1), "lmt-2.0.56": (3, 1), "lmt-2.10.8": (1, 1),
    "lmt-2.12.9_12": (3, 12), "hpe-2.10.1": (2, 1),
}  # fmt: skip


def stats(time: int, written: int) -> str:
    return (
        f"snapshot_time             {time}.000000000 secs.nsecs\n"
        f"write_bytes               {written} samples [bytes] 1 1 {written}\n"
    )


def brw(time: int, writes: int) -> str:
    return (
        f"snapshot_time:            {time}.000000000 secs.nsecs\n"
        f"start_time:               {time - 100}.000000000 secs.nsecs\n"
        "elapsed_time:             100.000000000 secs.nsecs\n\n"
        "                           read      |     write\n"
        "disk I/O size          ios   % cum % |  ios         % cum %\n"
        f"1M:                      0   0   0   | {writes} 100 100\n"
    )


def plant(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def tree_of_2_15(root: Path, time: int = T0, written: int = 7) -> Path:
    return plant(
        root,
        {
            "proc/fs/lustre/obdfilter/fs-OST0000/stats": stats(time, written),
            "proc/fs/lustre/obdfilter/fs-OST0000/recovery_status": "status: INACTIVE\n",
            "sys/fs/lustre/obdfilter/fs-OST0000/kbytestotal": "100\n",
            "sys/fs/lustre/obdfilter/fs-OST0000/kbytesfree": "40\n",
            "sys/fs/lustre/obdfilter/fs-OST0000/num_exports": "3\n",
            "sys/kernel/debug/lustre/osd-ldiskfs/fs-OST0000/brw_stats": brw(time, 5),
            "sys/kernel/debug/lustre/osd-ldiskfs/MGS/brw_stats": brw(time, 1),
            "sys/fs/lustre/version": "2.15.4\n",
        },
    )


def items(paths: Sequence[Path], options: ReadOptions | None = None) -> list[Item]:
    return [item for capture in SOURCE.captures(paths, options or ReadOptions()) for item in capture.items()]


def of(result: Sequence[Item], table: str) -> list[Sample]:
    return [item for item in result if isinstance(item, Sample) and item.table == table]


def rows(result: Sequence[Item], table: str) -> list[Row]:
    return [item for item in result if isinstance(item, Row) and item.table == table]


def problems(result: Sequence[Item]) -> list[Problem]:
    """What was not understood; what is left out by rule is no problem."""
    return [item for item in result if isinstance(item, Problem) and not isinstance(item, Note)]


def notes(result: Sequence[Item]) -> list[str]:
    return [item.reason for item in result if isinstance(item, Note)]


def test_the_layout_of_2_15(tmp_path: Path) -> None:
    result = items([tree_of_2_15(tmp_path)])
    assert problems(result) == []
    assert of(result, "target_io")[0].sets[""].counters["write_bytes"] == 7
    sizes = of(result, "target_sizes")
    assert [(sample.target, sample.sets[""].start_us) for sample in sizes] == [("fs-OST0000", (T0 - 100) * S)]
    (row,) = rows(result, "target_capacity")
    assert (row.values["used_bytes"], row.values["time"]) == (61440, T0 * S)
    (state,) = rows(result, "target_state")
    assert (state.values["version"], state.values["exports"], state.values["recovery_status"]) == (
        "2.15.4",
        3,
        "INACTIVE",
    )


def without_notes(results: list[Item]) -> list[Item]:
    """Notes tell the root, which differs."""
    return [item for item in results if not isinstance(item, Note)]


def test_copies_of_sysfs_padded_with_zeros_say_the_same(tmp_path: Path) -> None:
    """`tar` and `cp` of /sys write as many bytes as stat tells, 4,096 for each file: the rest of it is zeros."""
    plain, padded = tree_of_2_15(tmp_path / "plain"), tree_of_2_15(tmp_path / "padded")
    for path in (padded / "sys").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().ljust(4096, b"\0"))
    assert problems(items([padded])) == []
    assert without_notes(items([padded])) == without_notes(items([plain]))


def test_every_row_and_sample_has_its_target(tmp_path: Path) -> None:
    for item in items([tree_of_2_15(tmp_path)]):
        if isinstance(item, Row):
            assert (item.values["filesystem"], item.values["target"], item.values["target_kind"]) == (
                "fs",
                "fs-OST0000",
                "ost",
            )


def test_a_target_found_at_two_paths_is_read_once(tmp_path: Path) -> None:
    tree_of_2_15(tmp_path)
    plant(
        tmp_path,
        {
            "proc/fs/lustre/obdfilter/fs-OST0000/brw_stats": brw(T0, 4),
            "proc/fs/lustre/osd-ldiskfs/fs-OST0000/brw_stats": brw(T0, 3),
            "sys/kernel/debug/lustre/obdfilter/fs-OST0000/stats": stats(T0, 99),
        },
    )
    result = items([tmp_path])
    assert [sample.sets[""].counters[size_column("write", 1 << 20)] for sample in of(result, "target_sizes")] == [5]
    assert [sample.sets[""].counters["write_bytes"] for sample in of(result, "target_io")] == [7]


def test_the_time_is_the_newest_snapshot_or_the_one_reported(tmp_path: Path) -> None:
    tree_of_2_15(tmp_path)
    plant(tmp_path, {"proc/fs/lustre/mdt/fs-MDT0000/md_stats": f"snapshot_time {T0 + 3}.0 secs.usecs\n"})
    assert {sample.time_us for sample in items([tmp_path]) if isinstance(sample, Sample)} == {(T0 + 3) * S}
    reported = items([tmp_path], ReadOptions(at=datetime.fromtimestamp(T0 + 60, UTC)))
    assert {sample.time_us for sample in reported if isinstance(sample, Sample)} == {(T0 + 60) * S}
    assert of(reported, "target_io")[0].snapshot_us == T0 * S


def test_several_roots_are_several_samples_in_order_of_time(tmp_path: Path) -> None:
    roots = [tree_of_2_15(tmp_path / str(k), T0 + 10 * k, k) for k in (2, 0, 1)]
    result = of(items(roots), "target_io")
    assert [(sample.time_us, sample.sets[""].counters["write_bytes"]) for sample in result] == [
        ((T0 + 10 * k) * S, k) for k in range(3)
    ]


def test_the_identity_is_of_the_content_and_the_time_reported(tmp_path: Path) -> None:
    def identity(path: Path, options: ReadOptions | None = None) -> str:
        (capture,) = SOURCE.captures([path], options or ReadOptions())
        return capture.identity

    item, same = tree_of_2_15(tmp_path / "one"), tree_of_2_15(tmp_path / "same")
    other = tree_of_2_15(tmp_path / "other", written=8)
    assert identity(item) == identity(same)
    assert len({identity(item), identity(other), identity(item, ReadOptions(at=datetime.fromtimestamp(T0, UTC)))}) == 3


def test_a_service_is_not_a_target(tmp_path: Path) -> None:
    tree_of_2_15(tmp_path)
    plant(tmp_path, {"proc/fs/lustre/mds/MDS/mdt/stats": stats(T0, 1), "proc/fs/lustre/mds/MDS/stats": stats(T0, 1)})
    assert of(items([tmp_path]), "metadata_ops") == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    tree_of_2_15(tmp_path)
    (tmp_path / "proc/fs/lustre/obdfilter/fs-OST0000/stats").chmod(0)
    result = items([tmp_path])
    assert len(problems(result)) == 1
    assert len(of(result, "target_sizes")) == 1


def test_a_directory_in_place_of_a_file_is_reported(tmp_path: Path) -> None:
    tree_of_2_15(tmp_path)
    (tmp_path / "proc/fs/lustre/obdfilter/fs-OST0001/stats").mkdir(parents=True)
    result = items([tmp_path])
    assert [problem.place.endswith("fs-OST0001/stats") for problem in problems(result)] == [True]
    assert len(of(result, "target_io")) == 1


def test_a_file_that_vanished_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    tree_of_2_15(tmp_path)
    path = tmp_path / "proc/fs/lustre/obdfilter/fs-OST0000/stats"
    path.unlink()
    path.symlink_to(tmp_path / "gone")
    result = items([tmp_path])
    assert [problem.place for problem in problems(result)] == [str(path)]
    assert len(of(result, "target_sizes")) == 1


def test_a_root_with_nothing_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="proc/fs/lustre"):
        items([tmp_path])
    with pytest.raises(InputError):
        items([tmp_path / "absent"])


def test_a_tree_without_any_time_needs_one(tmp_path: Path) -> None:
    plant(tmp_path, {"sys/fs/lustre/obdfilter/fs-OST0000/kbytesfree": "40\n"})
    assert "--at" in problems(items([tmp_path]))[0].reason
    assert rows(items([tmp_path], ReadOptions(at=datetime.fromtimestamp(T0, UTC))), "target_capacity")


def test_an_agent_gives_the_tick(tmp_path: Path) -> None:
    result = list(read_tree(tree_of_2_15(tmp_path), (T0 + 5) * S))
    assert {item.time_us for item in result if isinstance(item, Sample)} == {(T0 + 5) * S}
    assert of(result, "target_io")[0].snapshot_us == T0 * S


def test_a_server_without_targets_gives_the_agent_nothing(tmp_path: Path) -> None:
    plant(tmp_path, {"sys/fs/lustre/version": "2.15.4\n"})
    assert list(read_tree(tmp_path, T0 * S)) == []


def test_the_agent_needs_only_the_standard_library() -> None:
    code = "import sys, iolens.sources.lustre.lustre_proc; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded).isdisjoint({"numpy", "pyarrow", "click", "duckdb", "deltalake", "zoneinfo"})


def test_it_is_recognised(tmp_path: Path) -> None:
    assert recognise(tree_of_2_15(tmp_path)).name == "lustre-proc"


def test_a_client_is_not_a_server(tmp_path: Path) -> None:
    plant(tmp_path, {"proc/fs/lustre/llite/fs-ffff8810/stats": stats(T0, 1)})
    assert not SOURCE.recognises(tmp_path, b"")


# Whole trees of real servers.


@pytest.mark.parametrize("name", REAL_TREES)
def test_real_trees_are_understood_to_the_last_line(shared_data: Path, name: str) -> None:
    root = shared_data / TREES / name
    osts, mdts = REAL_TREES[name]
    result = items([root])
    assert problems(result) == []
    assert len(of(result, "target_io")) == osts
    assert len(of(result, "metadata_ops")) == mdts
    assert len({sample.time_us for sample in result if isinstance(sample, Sample)}) == 1
    assert {row.values["target_kind"] for row in rows(result, "target_capacity")} == {"ost", "mdt"}
    assert recognise(root).name == "lustre-proc"


def test_telegrafs_target_needs_its_file_system(shared_data: Path) -> None:
    root = shared_data / TREES / "telegraf-2.12"
    assert "--filesystem" in problems(items([root]))[0].reason
    (sample,) = of(items([root], ReadOptions(filesystem="work")), "target_sizes")
    assert (sample.filesystem, sample.target) == ("work", "OST0001")
    assert sample.sets[""].counters["write_ios_outside"] == 327301
    assert sample.sets[""].counters["read_ios_1048576"] == 43866371


def test_a_combined_server_of_2_10_1(shared_data: Path) -> None:
    result = items([shared_data / TREES / "hpe-2.10.1"])
    jobs = {sample.target: sample.sets for sample in of(result, "job_io")}
    assert jobs["lustrefs-OST0000"]["24"].counters["write_bytes"] == 215147593728
    assert {sample.target for sample in of(result, "target_sizes")} == {
        "lustrefs-OST0000",
        "lustrefs-OST0002",
        "lustrefs-MDT0000",
    }
