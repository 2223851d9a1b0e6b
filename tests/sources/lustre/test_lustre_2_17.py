"""Lustre 2.17, as text of lctl, as a tree and on a client: what it prints anew, and in another way."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import iolens
from iolens.histogram_names import IN_FLIGHT, IN_FLIGHT_POW2, latency_size
from iolens.records import Item, Problem, Row, Sample
from iolens.sources import recognise
from iolens.sources.lustre import lustre_client_proc
from iolens.sources.lustre.lustre_lctl import SOURCE
from iolens.sources.lustre.lustre_proc import SOURCE as PROC
from iolens.sources.lustre.lustre_proc import read_tree
from iolens.sources.reading.options import ReadOptions
from tests.cli.command import iolens as command

CAPTURES = Path(__file__).parent / "captures-2.17"
NAME = re.compile(r"^([a-z][\w-]*(?:\.[^\s=]+)?)=", re.MULTILINE)
BRW = """snapshot_time:            1600000000.000000000 secs.nsecs
start_time:               1500000000.000000000 secs.nsecs
elapsed_time:             100000000.000000000 secs.nsecs

                           read      |     write
disk I/Os in flight    ios   % cum % |  ios         % cum %
1:                       9  90  90   |    9 100 100
2:                       1  10 100   |    0   0 100
"""
LATENCY = "io_latency_by_size:\nsnapshot_time:  1600000000.000000000\nrd_4K: { 64us: 41, }\nwr_4K: { uninit }\n"


def items_of(path: Path, options: ReadOptions = ReadOptions()) -> list[Item]:  # noqa: B008 (frozen)
    return [item for capture in SOURCE.captures([path], options) for item in capture.items()]


def samples_of(path: Path) -> dict[tuple[str, str], Sample]:
    return {(item.table, item.target): item for item in items_of(path) if isinstance(item, Sample)}


def written(folder: Path, text: str) -> Path:
    path = folder / "lctl.txt"
    path.write_text(text)
    return path


def plant(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def sets_in_flight(text: str, folder: Path) -> set[str]:
    sample = samples_of(written(folder, text))["target_histograms", "fs-OST0000"]
    return {name for name in sample.sets if latency_size(name) is None}


@pytest.mark.parametrize(
    ("before", "name"),
    [
        ("", IN_FLIGHT), ("version=2.15.5\n", IN_FLIGHT), ("version=2.17.50\n", IN_FLIGHT),
        ("version=2.17.51\n", IN_FLIGHT_POW2), ("version=2.18.0_ddn1\n", IN_FLIGHT_POW2),
        ("version=3.0\n", IN_FLIGHT_POW2),
        (f"osd-ldiskfs.fs-OST0000.io_latency_stats=\n{LATENCY}", IN_FLIGHT_POW2),
        (f"version=2.17.50\nosd-ldiskfs.fs-OST0000.io_latency_stats=\n{LATENCY}", IN_FLIGHT),
    ],
)  # fmt: skip
def test_one_and_two_in_flight_are_named_by_the_version(tmp_path: Path, before: str, name: str) -> None:
    """Those rows mean the same in every version; later rows do not, and go on under the same name."""
    assert sets_in_flight(f"{before}osd-ldiskfs.fs-OST0000.brw_stats=\n{BRW}", tmp_path) == {name}


def test_rows_tell_more_than_the_version(tmp_path: Path) -> None:
    """Vendors take later changes into earlier versions."""
    text = BRW.replace("2:  ", "4:  ")
    assert sets_in_flight(f"version=2.14.0_ddn1\nosd-ldiskfs.fs-OST0000.brw_stats=\n{text}", tmp_path) == {
        IN_FLIGHT_POW2
    }


def test_yaml_output_gives_the_same(tmp_path: Path) -> None:
    plain = (CAPTURES / "oss-1.txt").read_text()
    for yaml in (NAME.sub(r"\1: ", plain), NAME.sub(r"\1:", plain).replace("version:", "version: ")):
        path = written(tmp_path, yaml)
        assert recognise(path) is SOURCE
        known = CAPTURES / "oss-1.txt"
        same = [str(item).replace(str(path), "F") for item in items_of(path)]
        assert same == [str(item).replace(str(known), "F") for item in items_of(known)]


def test_lines_of_a_text_are_not_taken_for_names_of_yaml(tmp_path: Path) -> None:
    text = "obdfilter.fs-OST0000.recovery_status=\nstatus: COMPLETE\nrecovery_start: 1600000000\nversion: 7\nIR: OFF\n"
    (row,) = [item for item in items_of(written(tmp_path, text), ReadOptions(at=None)) if isinstance(item, Problem)]
    assert "--at" in row.reason


def test_every_brw_stats_twice_is_read_once(tmp_path: Path) -> None:
    """`symlink_brw_stats=1`: in lctl's text under two names, in a tree as a link."""
    once = (CAPTURES / "oss-1.txt").read_text()
    begin, end = once.index("osd-ldiskfs.lab-OST0002.brw_stats="), once.index("osd-ldiskfs.lab-OST0002.io_latency")
    twice = once + once[begin:end].replace("osd-ldiskfs", "obdfilter")
    assert samples_of(written(tmp_path, twice)) == samples_of(CAPTURES / "oss-1.txt")
    root = plant(tmp_path / "root", {"sys/kernel/debug/lustre/osd-ldiskfs/fs-OST0000/brw_stats": BRW})
    (root / "sys/kernel/debug/lustre/obdfilter/fs-OST0000").mkdir(parents=True)
    (root / "sys/kernel/debug/lustre/obdfilter/fs-OST0000/brw_stats").symlink_to(
        "../../osd-ldiskfs/fs-OST0000/brw_stats"
    )
    histograms = [item for item in read_tree(root, None) if isinstance(item, Sample)]
    assert [(sample.table, len(sample.sets)) for sample in histograms] == [("target_histograms", 1)]


def test_without_start_times_a_fall_is_a_reset(tmp_path: Path) -> None:
    """`enable_stats_header=0`."""
    for name in ("oss-1.txt", "oss-2.txt"):
        lines = (CAPTURES / name).read_text().splitlines(keepends=True)
        (tmp_path / name).write_text("".join(line for line in lines if not line.startswith(("start_time", "elapsed"))))
    for sample in samples_of(tmp_path / "oss-1.txt").values():
        assert {counters.start_us for counters in sample.sets.values()} == {None}
    done = command("ingest", tmp_path / "oss-2.txt", "--store", tmp_path / "store", "--at", "2026-09-21T15:14:20Z")
    assert done.code == 0, done.err
    earlier = (tmp_path / "oss-1.txt").read_text().replace("1790003600.5", "1790003720.5")
    done = command("ingest", written(tmp_path, earlier), "--store", tmp_path / "store")
    assert done.code in (0, 3), done.err
    latency = iolens.open(str(tmp_path / "store")).latency()
    assert latency.by_size
    assert all(line.ios > 0 for line in latency.by_size)


def test_new_operations_of_an_mdt_and_renames_are_counted_once() -> None:
    counters = samples_of(CAPTURES / "oss-1.txt")["metadata_ops", "lab-MDT0000"].sets[""].counters
    assert (counters["open"], counters["readpage"], counters["readpage_us"]) == (36190, 5170, 155100)
    assert (counters["rename"], counters["rename_trylocks"]) == (0, 722)
    assert "rename_trylocks" not in iolens.schema.SUMMED_OPERATIONS
    assert "readpage" in iolens.schema.SUMMED_OPERATIONS


def test_nodemaps_are_services_of_their_server(tmp_path: Path) -> None:
    sample = samples_of(CAPTURES / "oss-1.txt")["server_ops", "lab-MDT0000+1:nodemap.physics.dt_stats"]
    assert sample.labels == {"target_kind": "service"}
    assert dict(sample.sets[""].counters) == {"read_bytes": 12063, "read_bytes:total": 18765684736}
    text = "snapshot_time 1600000000.5 secs\nopen 5 samples [usecs] 1 2 9\n"
    root = plant(
        tmp_path / "root",
        {
            "sys/kernel/debug/lustre/mdt/fs-MDT0000/md_stats": text,
            "sys/kernel/debug/lustre/nodemap/bio/md_stats": text,
            "proc/sys/kernel/hostname": "mds1\n",
        },
    )
    (capture,) = PROC.captures([root], ReadOptions())
    targets = {item.target: item for item in capture.items() if isinstance(item, Sample)}
    assert targets.keys() == {"fs-MDT0000", "mds1:nodemap.bio.md_stats"}
    assert dict(targets["mds1:nodemap.bio.md_stats"].sets[""].counters) == {"open": 5, "open:us": 9}


def test_latencies_of_a_client(tmp_path: Path) -> None:
    device = "fs-OST0001-osc-ffff88105db50000"
    root = plant(
        tmp_path / "root",
        {
            f"sys/kernel/debug/lustre/osc/{device}/io_latency_stats": LATENCY,
            f"sys/kernel/debug/lustre/osc/{device}/stats": "snapshot_time 1600000000.0 secs\n",
        },
    )
    items = list(lustre_client_proc.read_tree(root, None))
    (sample,) = [item for item in items if isinstance(item, Sample) and item.table == "client_histograms"]
    (counters,) = [part.counters for part in sample.sets.values()]
    assert dict(counters) == {"fs-OST0001:io_latency_ns_from_4096:read:131072": 41}
    assert [str(item) for item in items if type(item) is Problem] == []


def test_an_mdt_times_its_ios_too(tmp_path: Path) -> None:
    path = written(tmp_path, f"osd-ldiskfs.fs-MDT0000.io_latency_stats=\n{LATENCY}")
    assert samples_of(path)["target_histograms", "fs-MDT0000"].labels == {"target_kind": "mdt"}


def test_a_bare_text_of_a_named_target(tmp_path: Path) -> None:
    """`lctl get_param -n`, twice one after the other."""
    later = LATENCY.replace("1600000000", "1600000060").replace("41", "43")
    path = written(tmp_path, f"\n{LATENCY}{later}")
    assert recognise(path) is SOURCE
    options = ReadOptions("fs", "fs-OST0000")
    samples = [item for item in items_of(path, options) if isinstance(item, Sample)]
    assert [sample.sets["io_latency_ns_from_4096"].counters for sample in samples] == [
        {"read:131072": 41},
        {"read:131072": 42},
    ]


def test_a_tree_and_the_text_of_lctl_give_the_same(tmp_path: Path) -> None:
    files = {
        "obdfilter.fs-OST0000.stats": "snapshot_time 1600000000.0 secs\nwrite_bytes 3 samples [bytes] 1 1 3\n",
        "osd-ldiskfs.fs-OST0000.brw_stats": BRW,
        "osd-ldiskfs.fs-OST0000.io_latency_stats": LATENCY,
    }
    text = written(tmp_path, "".join(f"{name}=\n{content}" for name, content in files.items()))
    base = "sys/kernel/debug/lustre"
    root = plant(tmp_path / "root", {f"{base}/{name.replace('.', '/')}": content for name, content in files.items()})
    (capture,) = PROC.captures([root], ReadOptions())
    of_tree = [item for item in capture.items() if isinstance(item, Sample | Row)]
    assert of_tree == [item for item in items_of(text) if isinstance(item, Sample | Row)]
    shutil.rmtree(root)


def test_the_two_snapshots_become_answers_by_size(tmp_path: Path) -> None:
    """Counts of the interval are differences of true counts: 17,968 of the 35,448 I/Os of 4 KiB."""
    store = tmp_path / "store"
    assert command("ingest", CAPTURES / "oss-1.txt", CAPTURES / "oss-2.txt", "--store", store).code == 0
    result = iolens.open(str(store)).latency()
    reads = {line.from_bytes: line for line in result.by_size if line.direction == "read"}
    assert len(result.by_size) == 22
    assert (reads[4096].below_bytes, reads[4096].ios) == (8192, 8998)
    assert (reads[4096].p50_ms, reads[4096].p99_ms, reads[4096].max_ms) == (0.262144, 0.262144, 0.524288)
    assert sum(line.ios for line in result.by_size if line.from_bytes == 4096) == 35448 - 17480
    assert (result.targets, result.coverage.targets_with_sizes, result.coverage.targets_without) == (1, 1, [])
    shown = command("latency", "--store", store)
    assert shown.code == 0
    assert "latency by size" in shown.out
    assert "No data in this window" not in shown.out
