"""The files of a Lustre client: trees of every version, page sizes, mounts that come and go, and real captures."""

from __future__ import annotations

import shutil
import struct
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.errors import InputError
from iolens.records import Item, Note, Problem, Sample
from iolens.sources import get_source, recognise
from iolens.sources.lustre.lustre_client_proc import SOURCE, read_tree
from iolens.sources.lustre.parameters import page_size_of_node
from iolens.sources.lustre.rpc_stats import PAGES, parse_rpc_stats
from iolens.sources.lustre.stats import parse_stats
from iolens.sources.reading.options import ReadOptions
from iolens.store.store import Store
from tests.sources.lustre.client_trees import (
    ENZO_READS,
    ENZO_WRITES,
    MOUNT,
    T0,
    TREES,
    counters,
    enzo_node,
    plant,
    tree_2_5,
    tree_2_12,
    tree_2_15,
)
from tests.sources.lustre.test_lustre_proc import tree_of_2_15
from tests.sources.stored import ingest, stored

S = 1_000_000
OTHER_MOUNT = "ffff8800dddd0000"


def items(paths: Sequence[Path] | Path, options: ReadOptions | None = None, source: str = SOURCE.name) -> list[Item]:
    files = [paths] if isinstance(paths, Path) else paths
    captures = get_source(source).captures(files, options or ReadOptions())
    return [item for capture in captures for item in capture.items()]


def sample(result: Sequence[Item], table: str) -> Sample:
    (only,) = [item for item in result if isinstance(item, Sample) and item.table == table]
    return only


def counted(result: Sequence[Item], table: str) -> dict[str, int]:
    """All counters of the table, whatever text they are from."""
    return {name: value for part in sample(result, table).sets.values() for name, value in part.counters.items()}


def problems(result: Sequence[Item]) -> list[str]:
    return [str(item) for item in result if isinstance(item, Problem) and not isinstance(item, Note)]


def notes(result: Sequence[Item]) -> str:
    return "\n".join(item.reason for item in result if isinstance(item, Note))


def settings(**given: Any) -> ReadOptions:
    return ReadOptions(settings=given)


@pytest.mark.parametrize("version", TREES)
def test_every_version_is_read_with_nothing_left_over(tmp_path: Path, version: str) -> None:
    root = TREES[version](tmp_path)
    assert recognise(root).name == "lustre-client-proc"
    result = items(root)
    assert problems(result) == []
    assert sample(result, "client_io").target == "n" + version.replace(".", "")
    assert (sample(result, "client_io").filesystem, sample(result, "client_io").time_us // S) == ("lake", T0)
    assert counted(result, "client_io")["read_bytes"] == 9000
    assert counted(result, "client_metadata")["open"] == 20
    rpcs = counted(result, "client_rpcs")
    assert (rpcs["lake-OST0000:read:1"], rpcs["lake-OST0000:read:4"]) == (3, 1)
    assert counted(result, "client_histograms")["lake-OST0000:rpcs_in_flight:read:1"] == 4
    assert sample(result, "client_rpcs").labels == {"page_bytes": "65536" if version == "2.12" else "4096"}


def test_what_each_text_becomes(tmp_path: Path) -> None:
    result = items(tree_2_15(tmp_path))
    assert counted(result, "client_io") == {"read_bytes": 9000, "read_ops": 6, "write_bytes": 16000, "write_ops": 4}
    metadata = counted(result, "client_metadata")
    assert (metadata["getattr"], metadata["open:us"], metadata["statfs"]) == (70, 80, 2)
    others = counted(result, "client_ops")
    assert others["llite:read:us"] == 30
    assert (others["read_ahead:hits"], others["read_ahead:readahead_to_eof"]) == (12, 2)
    assert (others["lake-OST0000:ost_read:us"], others["lake-OST0000:read_bytes:total"]) == (200, 28672)
    assert (others["lake-MDT0000:revalidate_lock"], others["ldlm_cbd:ldlm_bl_callback"]) == (12, 9)
    histograms = counted(result, "client_histograms")
    assert histograms["lake-OST0000:rpc_latency_us:write:1024"] == 3
    assert histograms["lake-MDT0000:modify_rpcs_in_flight:modify:1"] == 5
    assert histograms["llite:call_size_bytes:read:8192"] == 6
    assert {part.start_us for part in sample(result, "client_io").sets.values()} == {(T0 - 500) * S}
    assert "extents_stats_per_process, call sizes of 1 processes" in notes(result)


def test_names_of_read_ahead_are_those_of_today_and_locks_are_counted(tmp_path: Path) -> None:
    others = counted(items(TREES["2.10"](tmp_path)), "client_ops")
    assert others["read_ahead:readpage_not_consecutive"] == 3
    assert others["read_ahead:readahead_to_eof"] == 2
    assert others["lake-OST0000:lock_pool_grant"] == 7
    assert (others["lake-MDT0000:mds_getattr"], others["lake-MDT0000:intent_lock"]) == (5, 12)


def test_an_unknown_row_is_named_with_its_line_and_the_others_count(tmp_path: Path) -> None:
    root = tree_2_5(tmp_path)
    path = root / f"proc/fs/lustre/llite/lake-{MOUNT}/stats"
    path.write_text(path.read_text() + "teleport                  3 samples [regs]\n")
    result = items(root)
    assert problems(result) == [f"{path}:8: counter 'teleport' is not known and was left out"]
    assert counted(result, "client_metadata")["open"] == 20


def test_what_is_no_counter_is_named_as_left_out(tmp_path: Path) -> None:
    root = plant(tree_2_12(tmp_path), {"sys/fs/lustre/osc/lake-OST0000-osc-MDT0000/stats": "snapshot_time 1.0 secs\n"})
    said = notes(items(root))
    assert "osc.*.{max_pages_per_rpc, stats}" in said


# --- page size ---


def test_64_kib_pages_are_seen_in_the_bytes_of_rpcs(tmp_path: Path) -> None:
    assert "page size 65536 bytes, by the bytes of osc.*.stats" in notes(items(tree_2_12(tmp_path)))


def test_a_page_size_that_cannot_be_is_refused(tmp_path: Path) -> None:
    result = items(tree_2_12(tmp_path), settings(page_size=4096))
    assert sample(result, "client_rpcs").labels == {"page_bytes": "65536"}
    (problem,) = problems(result)
    assert "page size 4096 bytes (given) cannot be: osc.*.stats have 65536 per page; 65536 is used" in problem


def test_a_page_size_that_agrees_needs_no_word(tmp_path: Path) -> None:
    result = items(tree_2_12(tmp_path), settings(page_size=65536))
    assert (problems(result), "page size" in notes(result)) == ([], False)


def test_a_page_size_that_cannot_be_checked_says_so(tmp_path: Path) -> None:
    root = tree_2_12(tmp_path)
    (root / f"sys/kernel/debug/lustre/osc/lake-OST0000-osc-{MOUNT}/stats").unlink()
    assert "page size 4096 bytes, assumed: could not be checked" in notes(items(root))
    assert "page size 65536 bytes (given): could not be checked" in notes(items(root, settings(page_size=65536)))


def test_bytes_of_llite_are_never_the_measure(tmp_path: Path) -> None:
    """They include cache hits: 100 times the bytes of the RPCs change nothing."""
    root = tree_2_5(tmp_path)
    path = root / f"proc/fs/lustre/llite/lake-{MOUNT}/stats"
    path.write_text(path.read_text().replace("9000", "900000000"))
    assert sample(items(root), "client_rpcs").labels == {"page_bytes": "4096"}


def test_bytes_of_other_rpcs_are_no_measure(tmp_path: Path) -> None:
    """`rpc_stats` was cleared and `stats` was not: the two do not count the same RPCs."""
    root = tree_2_5(tmp_path)
    path = root / f"proc/fs/lustre/osc/lake-OST0000-osc-{MOUNT}/stats"
    path.write_text(path.read_text().replace("4 samples", "4000 samples").replace(" 3 samples", " 3000 samples"))
    assert "could not be checked" in notes(items(root))


def test_the_page_size_is_read_from_the_node(tmp_path: Path) -> None:
    root = tree_2_12(tmp_path / "auxv")
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/auxv").write_bytes(struct.pack("<6Q", 3, 64, 6, 65536, 0, 0))
    assert (page_size_of_node(root) or (0,))[0] == 65536
    assert "page size" not in notes(items(root))
    other = plant(tmp_path / "smaps", {"proc/self/smaps": "Size: 4 kB\nKernelPageSize:        64 kB\n"})
    assert (page_size_of_node(other) or (0,))[0] == 65536
    assert page_size_of_node(tmp_path) is None
    assert page_size_of_node(Path("/")) is not None


@pytest.mark.parametrize("wrong", [0, 5000, "4096", True, 1 << 40])
def test_a_page_size_that_is_none_is_a_wrong_question(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(InputError, match="is no page size"):
        items(tree_2_5(tmp_path), settings(page_size=wrong))


def test_an_unknown_setting_is_a_wrong_question(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown setting sources.lustre-client-proc.pagesize"):
        items(tree_2_5(tmp_path), settings(pagesize=4096))


# --- in the store ---


def test_two_samples_become_intervals(tmp_path: Path) -> None:
    roots = [tree_2_15(tmp_path / f"{n}", T0 + 60 * n, 20 + n * 5) for n in range(2)]
    rpcs = roots[1] / f"sys/kernel/debug/lustre/osc/lake-OST0000-osc-{MOUNT}/rpc_stats"
    rpcs.write_text(rpcs.read_text().replace("4:\t\t         1 ", "4:\t\t         8 "))
    tally = ingest(tmp_path / "store", SOURCE.name, roots, ReadOptions())
    assert tally.refused == 0
    assert stored(tmp_path / "store", "lake", "client_metadata", "node", "operation", "count") == [("n215", "open", 5)]
    columns = ("node", "target", "direction", "pages", "page_bytes", "rpcs", "duration_s")
    assert stored(tmp_path / "store", "lake", "client_rpcs", *columns) == [
        ("n215", "lake-OST0000", "read", 4, 4096, 7, 60.0)
    ]
    assert stored(tmp_path / "store", "lake", "client_io", "node", "read_bytes", "write_ops") == [("n215", 0, 0)]
    assert ingest(tmp_path / "store", SOURCE.name, roots, ReadOptions()).rows == {}


def opens(store: Path) -> list[tuple[Any, ...]]:
    return stored(store, "lake", "client_metadata", "time", "operation", "count", "after_reset")


def test_a_remount_is_a_reset_even_when_the_counters_have_overtaken(tmp_path: Path) -> None:
    """The new mount opened 50 files: 50 is what moved, not 50 - 20."""
    roots = [tree_2_5(tmp_path / "a"), tree_2_5(tmp_path / "b", T0 + 60, 50, OTHER_MOUNT)]
    tally = ingest(tmp_path / "store", SOURCE.name, roots, ReadOptions())
    assert tally.resets > 0
    moved = {name: (count, reset) for _, name, count, reset in opens(tmp_path / "store")}
    assert moved["open"] == (50, True)
    assert moved["getattr"] == (70, True)
    ingest(tmp_path / "store", SOURCE.name, [tree_2_5(tmp_path / "c", T0 + 120, 53, OTHER_MOUNT)], ReadOptions())
    assert [row[1:] for row in opens(tmp_path / "store") if row[0] == datetime.fromtimestamp(T0 + 120, UTC)] == [
        ("open", 3, False)
    ]


def test_two_mounts_of_a_file_system_add_up_and_one_that_goes_takes_nothing_away(tmp_path: Path) -> None:
    for number, (first, second) in enumerate([(20, 100), (21, 103), (25, None)]):
        root = tree_2_5(tmp_path / f"{number}", T0 + 60 * number, first)
        if second is not None:
            tree_2_5(root, T0 + 60 * number, second, OTHER_MOUNT)
        ingest(tmp_path / "store", SOURCE.name, [root], ReadOptions())
    assert [(count, reset) for _, name, count, reset in opens(tmp_path / "store")] == [(4, False), (4, False)]


def test_a_mount_that_cannot_be_read_for_once_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    """Its file is empty in the second sample: the third counts from the first, not from zero."""
    roots = [tree_2_5(tmp_path / f"{n}", T0 + 60 * n, 20 + n) for n in range(3)]
    (roots[1] / f"proc/fs/lustre/llite/lake-{MOUNT}/stats").write_text("")
    result = items(roots[1])
    assert any(
        "llite.lake-ffff8800a1b2c000.stats cannot be read, so this sample of client_io" in p for p in problems(result)
    )
    for root in roots:
        ingest(tmp_path / "store", SOURCE.name, [root], ReadOptions())
    assert [(name, count) for _, name, count, _ in opens(tmp_path / "store")] == [("open", 2)]


def test_a_late_sample_is_placed(tmp_path: Path) -> None:
    roots = [tree_2_5(tmp_path / f"{n}", T0 + 60 * n, 20 + n * n) for n in range(3)]
    options = ReadOptions(interval_s=60)
    for root in (roots[0], roots[2]):
        ingest(tmp_path / "store", SOURCE.name, [root], options)
    late = Store(tmp_path / "store").ingest(SOURCE.captures([roots[1]], options), SOURCE.name, rebuild=True)
    assert late.unplaced == 0
    assert [(name, count) for _, name, count, _ in opens(tmp_path / "store")] == [("open", 1), ("open", 3)]
    assert len(stored(tmp_path / "store", "lake", "client_io", "time")) == 2


def test_a_node_is_no_target(tmp_path: Path) -> None:
    ingest(tmp_path / "store", SOURCE.name, [tree_2_5(tmp_path / "a")], ReadOptions())
    frame = Store(tmp_path / "store").tables.load("batches")
    assert frame is not None
    assert frame.to_pyarrow_table().column("filesystems").to_pylist() == ['{"lake": []}']


# --- the same as text ---


def as_lctl(root: Path) -> str:
    """The tree as `lctl get_param` prints it."""
    lines = []
    for path in sorted(root.rglob("*")):
        parts = path.parts
        if path.is_file() and "lustre" in parts:
            name = ".".join(parts[len(parts) - parts[::-1].index("lustre") :])
            lines.append(f"{name}=\n{path.read_text()}")
    return "".join(lines)


@pytest.mark.parametrize("version", TREES)
def test_lctl_text_gives_the_same(tmp_path: Path, version: str) -> None:
    root = TREES[version](tmp_path / "root")
    text = tmp_path / "node.txt"
    text.write_text(as_lctl(root))
    assert recognise(text).name == "lustre-lctl"
    ours, theirs = items(root), items(text, settings(node="n1"), "lustre-lctl")
    assert problems(theirs) == []
    for table in ("client_io", "client_rpcs", "client_metadata", "client_histograms", "client_ops"):
        assert sample(theirs, table).target == "n1"
        assert counted(theirs, table) == counted(ours, table)


def test_a_text_without_its_name_is_read_when_the_mount_is_given(tmp_path: Path) -> None:
    text = tmp_path / "stats.txt"
    text.write_text((tree_2_5(tmp_path / "root") / f"proc/fs/lustre/llite/lake-{MOUNT}/stats").read_text())
    result = items(text, ReadOptions(filesystem="lake", target=f"lake-{MOUNT}"), "lustre-lctl")
    assert (problems(result), counted(result, "client_metadata")["open"]) == ([], 20)
    assert "called 'stats'; set node of [sources.lustre-lctl]" in notes(result)


# --- odd roots ---


def test_a_copy_of_the_lustre_directory_alone(tmp_path: Path) -> None:
    tree_2_5(tmp_path / "root")
    shutil.copytree(tmp_path / "root/proc/fs/lustre", tmp_path / "n9")
    result = items(tmp_path / "n9")
    assert (problems(result), sample(result, "client_io").target) == ([], "n9")
    assert "nothing names the node: called 'n9'" in notes(result)


def test_a_server_that_has_mounts_is_a_server_unless_asked(tmp_path: Path) -> None:
    root = tree_2_15(tree_of_2_15(tmp_path))
    assert recognise(root).name == "lustre-proc"
    assert counted(items(root), "client_metadata")["open"] == 20


def test_a_root_without_a_client_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file of a Lustre client"):
        items(tmp_path)


def test_a_live_node_with_nothing_mounted_gives_nothing(tmp_path: Path) -> None:
    assert list(read_tree(tmp_path, T0 * S)) == []
    assert {item.table for item in read_tree(tree_2_5(tmp_path), T0 * S) if isinstance(item, Sample)} == {
        "client_io", "client_rpcs", "client_metadata", "client_histograms", "client_ops",
    }  # fmt: skip


# --- rows and sections that are damaged ---


def test_a_damaged_row_costs_its_section_alone() -> None:
    good = (
        b"snapshot_time: 1.0 (secs.nsecs)\n\n"
        b"\t\t\tread\t\t\twrite\npages per rpc         rpcs   % cum % | rpcs   % cum %\n1:\t\t 5 100 100 | 0 0 0\n\n"
        b"\t\t\tread\t\t\twrite\noffset   rpcs   % cum % | rpcs   % cum %\n0: 5 100 100 | 0 0 0\n"
    )
    whole = parse_rpc_stats(good, "f")
    assert (whole.problems, whole.sections) == ([], {PAGES: {"read:1": 5}, "offset_pages": {"read:0": 5}})
    spoilt = parse_rpc_stats(good.replace(b"1:\t\t 5", b"1:\t\t x"), "f")
    assert list(spoilt.sections) == ["offset_pages"]
    assert str(spoilt.problems[0]).startswith("f:4: section 'pages' refused: row not understood")
    cut = parse_rpc_stats(good[:-12], "f")
    assert list(cut.sections) == [PAGES]
    unknown = parse_rpc_stats(good.replace(b"offset ", b"colour "), "f")
    assert "unknown section 'colour" in str(unknown.problems[0])
    assert list(unknown.sections) == [PAGES]


# --- real captures ---


@pytest.mark.parametrize("name", ["google-2.14.0", "google-2.16.0_ddn56b", "hpe-2.10.1", "pcp-qa"])
def test_real_trees_are_read_with_nothing_dropped_in_silence(shared_data: Path, name: str) -> None:
    root = shared_data / "lustre-client-proc" / name
    assert recognise(root).name == "lustre-client-proc"
    result = items(root)
    assert problems(result) == []
    assert any(isinstance(item, Sample) for item in result)


def test_64_kib_pages_of_a_real_client(shared_data: Path) -> None:
    result = items(shared_data / "lustre-client-proc/google-2.16.0_ddn56b")
    assert sample(result, "client_rpcs").labels == {"page_bytes": "65536"}
    given = items(shared_data / "lustre-client-proc/google-2.16.0_ddn56b", settings(page_size=4096))
    assert "page size 4096 bytes (given) cannot be" in problems(given)[0]


@pytest.mark.parametrize("tree", ["google-2.16.0_ddn56b", "hpe-2.10.1/proc/fs/lustre"])
def test_rpc_stats_agree_with_stats_beside_them(shared_data: Path, tree: str) -> None:
    compared = 0
    for path in sorted((shared_data / "lustre-client-proc" / tree / "osc").glob("*-osc-ffff*/rpc_stats")):
        bins = parse_rpc_stats(path.read_bytes(), "f").sections[PAGES]
        counts = parse_stats((path.parent / "stats").read_bytes(), "f").counts
        for direction in ("read", "write"):
            rpcs = sum(count for name, count in bins.items() if name.startswith(direction))
            printed = counts.get(f"{direction}_bytes")
            assert rpcs == pytest.approx(printed.samples if printed else 0, abs=16)  # read one after the other
            compared += rpcs > 0
    assert compared >= 1


def test_a_real_client_of_36_million_opens(shared_data: Path) -> None:
    result = items(shared_data / "lustre-lctl/get_param/llite_client.txt", None, "lustre-lctl")
    assert problems(result) == []
    assert counted(result, "client_metadata")["open"] == 35_955_554
    assert sample(result, "client_metadata").filesystem == "ai400x2"
    assert counted(result, "client_ops")["ldlm_cbd:ldlm_bl_callback"] == 41_083_956


@pytest.mark.parametrize("family", ["llite", "osc", "mdc"])
def test_real_texts_of_2_16(shared_data: Path, family: str, tmp_path: Path) -> None:
    mount = {"llite": "lustre", "osc": "lustre-OST0001-osc", "mdc": "lustre-MDT0000-mdc"}[family] + "-ffff8b904341d000"
    text = (shared_data / f"lustre-lctl/datadog-2.16/client_{family}_stats.txt").read_text()
    (tmp_path / "node.txt").write_text(f"{family}.{mount}.stats=\n{text}")
    result = items(tmp_path / "node.txt", None, "lustre-lctl")
    assert problems(result) == []
    assert sample(result, "client_ops").sets


def test_hand_made_files_of_an_exporter(shared_data: Path, tmp_path: Path) -> None:
    """They have no `|` between reads and writes, and count pages under offset."""
    folder = shared_data / "lustre-client-proc/yuuki-testdata"
    devices = {"llite": f"y-{MOUNT}", "osc": f"y-OST0000-osc-{MOUNT}", "mdc": f"y-MDT0000-mdc-{MOUNT}"}
    for family, device in devices.items():
        for leaf in ("stats", "rpc_stats"):
            if (folder / family / f"{leaf}.txt").exists():
                plant(tmp_path, {f"{family}/{device}/{leaf}": (folder / family / f"{leaf}.txt").read_text()})
    plant(tmp_path, {"ldlm/services/ldlm_cbd/stats": (folder / "ldlm/ldlm_cbd_stats.txt").read_text()})
    result = items(tmp_path)
    assert problems(result) == []
    assert counted(result, "client_rpcs")["y-OST0000:write:16"] == 100
    assert counted(result, "client_ops")["ldlm_cbd:ldlm_gl_callback"] == 99914


def test_opens_and_rpcs_of_many_nodes_are_apart(tmp_path: Path) -> None:
    roots = []
    for node in ("n1", "n2"):
        for number in range(2):
            root = tree_2_5(tmp_path / f"{node}-{number}", T0 + 60 * number, 20 + 3 * number)
            roots.append(plant(root, {"proc/sys/kernel/hostname": f"{node}\n"}))
    ingest(tmp_path / "store", SOURCE.name, roots, ReadOptions())
    assert stored(tmp_path / "store", "lake", "client_metadata", "node", "count") == [("n1", 3), ("n2", 3)]


def test_a_text_that_has_not_counted_yet(tmp_path: Path) -> None:
    root = plant(tmp_path, {f"llite/lake-{MOUNT}/stats": counters(f"snapshot_time             {T0}.1 secs.nsecs\n")})
    assert counted(items(root), "client_io") == {"read_bytes": 0, "read_ops": 0, "write_bytes": 0, "write_ops": 0}


def test_the_tables_of_the_paper_over_4_nodes_and_60_osts(tmp_path: Path) -> None:
    roots = [enzo_node(tmp_path / f"{node}-{ended}", node, ended) for node in range(4) for ended in (False, True)]
    assert ingest(tmp_path / "store", SOURCE.name, roots, ReadOptions()).refused == 0
    rpcs: Counter[tuple[str, int]] = Counter()
    for direction, pages, count in stored(tmp_path / "store", "nbp1", "client_rpcs", "direction", "pages", "rpcs"):
        rpcs[direction, pages * 4] += count
    assert [rpcs["read", 4 << power] for power in range(9)] == list(ENZO_READS)
    assert [rpcs["write", 4 << power] for power in range(9)] == list(ENZO_WRITES)
    operations: Counter[str] = Counter()
    for name, count in stored(tmp_path / "store", "nbp1", "client_metadata", "operation", "count"):
        operations[name] += count
    assert operations == {"open": 5303, "close": 5769, "getattr": 12460}
    moved = stored(tmp_path / "store", "nbp1", "client_io", "read_bytes", "write_bytes")
    assert [sum(column) for column in zip(*moved, strict=True)] == [54 * 10**9, 56 * 10**9]
