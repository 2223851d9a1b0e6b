"""Lustre in PCP archives: what `iolens export pcp` served comes back as the samples that the files give."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iolens.agent.pcp.domain_agent import PcpSettings
from iolens.api.stored_job import report_of_nodes
from iolens.records import Item, Note, Problem, Row, Sample
from iolens.sources.lustre import lustre_client_proc, lustre_proc
from iolens.sources.pcp.lustre_metrics import METRICS
from iolens.sources.reading.options import ReadOptions
from iolens.units import from_epoch_us
from tests.agent.server import Server
from tests.sources.lustre.client_trees import MOUNT, T0, TREES, plant, rpc_stats, tree_2_15
from tests.sources.lustre.test_lustre_client_proc import ENZO_READS, ENZO_WRITES, OTHER_MOUNT, enzo_node
from tests.sources.pcp_served import archive, pmid, served, values_of
from tests.sources.pcp_writer import U64, S, Writer, units
from tests.sources.stored import ingest, items_of, problems_of, stored

CLIENT_TABLES = {
    "client_io": ("node", "read_bytes", "write_bytes", "read_ops", "write_ops", "after_reset"),
    "client_rpcs": ("node", "target", "direction", "pages", "page_bytes", "rpcs", "after_reset"),
    "client_metadata": ("node", "operation", "count", "sum_us", "after_reset"),
    "client_histograms": ("node", "target", "histogram", "direction", "bin", "count", "after_reset"),
    "client_ops": ("node", "target", "operation", "count", "sum_us", "total", "after_reset"),
}
SERVER_TABLES = {
    "target_io": ("target", "target_kind", "read_bytes", "write_bytes", "write_ops", "after_reset"),
    "target_sizes": ("target", "write_ios_1048576", "read_ios_4096", "write_ios_outside"),
    "target_histograms": ("target", "histogram", "direction", "bin", "count"),
    "metadata_ops": ("target", "open", "open_us", "close", "rename"),
    "job_io": ("target", "job_id", "write_bytes", "write_ops", "read_bytes"),
}


def plain(items: Sequence[Item], node: str | None = None) -> list[Any]:
    """Samples and rows without their times, in any order; `node` in place of the client's name."""
    result: list[Any] = []
    for item in items:
        if isinstance(item, Sample):
            target = node if node is not None and item.table.startswith("client_") else item.target
            sets = {name: (dict(now.counters), now.start_us) for name, now in item.sets.items()}
            result.append((item.table, item.filesystem, target, dict(item.labels), sets))
        elif isinstance(item, Row) and item.table == "target_capacity":
            result.append((item.table, {k: v for k, v in item.values.items() if k != "time" and v is not None}))
    return sorted(result, key=str)


def sets_are_whole(items: Sequence[Item]) -> bool:
    return all(now.complete for item in items if isinstance(item, Sample) for now in item.sets.values())


def refused(items: Sequence[Item]) -> list[str]:
    return [str(item) for item in items if isinstance(item, Problem) and not isinstance(item, Note)]


def same_as_files(root: Path, folder: Path, files: Iterator[Item], filesystem: str | None = None) -> list[Item]:
    base = archive(folder / "archive", [(1000, served(PcpSettings(root, filesystem=filesystem)))], host="n1")
    back = items_of("pcp", base, ReadOptions(filesystem=filesystem))
    assert refused(back) == []
    assert plain(back, "n1") == plain(list(files), "n1") != []
    assert sets_are_whole(back)
    return back


@pytest.mark.parametrize("version", TREES)
def test_clients_of_every_version_come_back_as_their_files_say(tmp_path: Path, version: str) -> None:
    root = TREES[version](tmp_path / "root")
    back = same_as_files(root, tmp_path, lustre_client_proc.read_tree(root, 1))
    assert problems_of(back) == []
    assert {item.table for item in back if isinstance(item, Sample)} == set(CLIENT_TABLES)


@pytest.mark.parametrize("name", ["google-2.14.0", "google-2.16.0_ddn56b", "hpe-2.10.1", "pcp-qa"])
def test_real_clients_come_back(shared_data: Path, tmp_path: Path, name: str) -> None:
    root = shared_data / "lustre-client-proc" / name
    same_as_files(root, tmp_path, lustre_client_proc.read_tree(root, 1))


@pytest.mark.parametrize("name", ["lmt-1.8.3", "lmt-2.0.50.zfs", "lmt-2.10.8", "lmt-2.12.9_12", "hpe-2.10.1"])
def test_real_servers_come_back(shared_data: Path, tmp_path: Path, name: str) -> None:
    root = shared_data / "lustre-server-proc" / name
    files = [item for item in lustre_proc.read_tree(root, 1) if not _is_not_served(item)]
    back = [item for item in _back(root, tmp_path) if not isinstance(item, Problem)]
    assert plain(back) == plain(files) != []


def _back(root: Path, folder: Path) -> list[Item]:
    return items_of("pcp", archive(folder / "archive", [(1000, served(PcpSettings(root, jobs=10_000)))], host="n1"))


def _is_not_served(item: Item) -> bool:
    """Sizes of a job's I/Os, and an MDT of 2.0 that counts by client."""
    is_sample = isinstance(item, Sample)
    return is_sample and (item.table == "job_sizes" or (item.table == "metadata_ops" and set(item.sets) != {""}))


def test_a_server_with_jobs_comes_back(tmp_path: Path) -> None:
    server = Server(tmp_path / "root")
    server.work(3)
    back = same_as_files(server.root, tmp_path, lustre_proc.read_tree(server.root, 1))
    tables = {item.table for item in back if isinstance(item, Sample)}
    assert tables == set(SERVER_TABLES)
    (state,) = [row for row in back if isinstance(row, Row) and row.values["target"] == "scratch-OST0000"
                and row.table == "target_state"]  # fmt: skip
    assert (state.values["exports"], state.values["locks"]) == (7, None)


def through_both(
    tmp_path: Path, roots: Sequence[tuple[Path, int]], tables: dict[str, tuple[str, ...]], host: str, filesystem: str
) -> None:
    """Files and archive into stores of their own: the same rows but for their times, and some in each table."""
    samples = [(second, served(PcpSettings(root))) for root, second in roots]
    base = archive(tmp_path / "archive", samples, host=host)
    source = "lustre-client-proc" if set(tables) & set(CLIENT_TABLES) else "lustre-proc"
    ingest(tmp_path / "files", source, [root for root, _ in roots], ReadOptions())
    assert ingest(tmp_path / "pcp", "pcp", [base], ReadOptions()).refused == 0
    for table, columns in tables.items():
        rows = stored(tmp_path / "files", filesystem, table, *columns)
        assert rows, table
        assert stored(tmp_path / "pcp", filesystem, table, *columns) == rows, table


def moving_client(root: Path, number: int, mount: str = MOUNT, start: int = T0 - 500) -> Path:
    """A client of 2.15 whose counters grow with the number, in every text."""
    tree_2_15(root, T0 + 60 * number, 20 + 3 * number, mount, start)
    for path in root.rglob("*stats"):
        if mount in str(path) or "services" in str(path):
            path.write_text("\n".join(_grown(line, number) for line in path.read_text().split("\n")))
    return root


def _grown(line: str, number: int) -> str:
    """A counter, or a row of a histogram: what had counted counts more."""
    if " samples [" in line:
        return re.sub(r" (\d+) samples", lambda match: f" {int(match[1]) + number} samples", line)
    label, bar, _ = line.partition(":\t")
    if not bar or not label.isdecimal():
        return line
    return re.sub(r"((?:\t|\|) +)([1-9]\d*)", lambda match: f"{match[1]}{int(match[2]) + number}", line)


def test_intervals_of_a_client_are_those_of_its_files(tmp_path: Path) -> None:
    roots = [(moving_client(tmp_path / str(number), number), 1000 + 60 * number) for number in range(3)]
    through_both(tmp_path, roots, CLIENT_TABLES, "n215", "lake")
    opens = [count for _, operation, count, _, _ in stored(tmp_path / "pcp", "lake", "client_metadata",
             *CLIENT_TABLES["client_metadata"]) if operation == "open"]  # fmt: skip
    assert opens == [4, 4]


def test_a_remount_is_a_reset_though_the_counters_have_overtaken(tmp_path: Path) -> None:
    roots = [(moving_client(tmp_path / "0", 0), 1000), (moving_client(tmp_path / "1", 1, OTHER_MOUNT, T0 + 30), 1060)]
    through_both(tmp_path, roots, CLIENT_TABLES, "n215", "lake")
    assert stored(tmp_path / "pcp", "lake", "client_io", "read_bytes", "after_reset") == [(9000, True)]


def test_a_second_mount_has_a_place_of_its_own_and_adds_up(tmp_path: Path) -> None:
    roots = []
    for number in range(2):
        root = moving_client(tmp_path / str(number), number)
        roots.append((moving_client(root, number, OTHER_MOUNT), 1000 + 60 * number))
    metrics = values_of(served(PcpSettings(roots[0][0])))
    assert set(metrics["iolens.client.read.bytes"]) == {"lake", "lake#2"}
    assert "lake-OST0000#2::1" in metrics["iolens.client.osc.rpcs.read"]
    through_both(tmp_path, roots, CLIENT_TABLES, "n215", "lake")


def test_counters_that_begin_at_nothing_are_counted_from_there(tmp_path: Path) -> None:
    """A text that had counted nothing is known to be there: what its first RPCs moved is in the first interval."""
    head = "snapshot_time:         {}.5 (secs.usecs)\n"
    roots = []
    for number in range(2):
        root = plant(tmp_path / str(number), {
            "etc/hostname": "n1\n",
            f"proc/fs/lustre/osc/lake-OST0000-osc-{MOUNT}/rpc_stats": rpc_stats(
                head.format(T0 + 60 * number), (5 * number, 0), (0, 7 * number)),
        })  # fmt: skip
        roots.append((root, 1000 + 60 * number))
    through_both(tmp_path, roots, {"client_rpcs": CLIENT_TABLES["client_rpcs"]}, "n1", "lake")
    assert stored(tmp_path / "pcp", "lake", "client_rpcs", "direction", "pages", "rpcs") == [
        ("read", 1, 5), ("write", 2, 7),
    ]  # fmt: skip


def test_a_metric_that_is_logged_late_counts_from_there_on(tmp_path: Path) -> None:
    """Without all its counters a set is not whole: what one moved before it was logged belongs to no interval."""
    samples = [(1000 + 60 * n, served(PcpSettings(moving_client(tmp_path / str(n), n)))) for n in range(4)]
    samples[0][1].values[METRICS["iolens.client.osc.rpcs.write"].item] = {}
    samples[0][1].values[METRICS["iolens.client.metadata.count"].item] = {}
    back = tmp_path / "pcp"
    ingest(back, "pcp", [archive(tmp_path / "archive", samples, host="n215")], ReadOptions())
    rpcs = stored(back, "lake", "client_rpcs", "direction", "pages", "rpcs")
    assert [count for direction, _, count in rpcs if direction == "write"] == [1] * 4
    assert [count for direction, _, count in rpcs if direction == "read"] == [1] * 6
    opened = stored(back, "lake", "client_metadata", "operation", "count")
    assert [count for operation, count in opened if operation == "open"] == [4, 4]
    notes = problems_of(items_of("pcp", tmp_path / "archive"))
    assert notes == [
        f"not all counters of {table} were logged: the first value of one only begins its series"
        for table in ("client_metadata", "client_rpcs")
    ]


def test_without_the_texts_what_is_logged_still_counts(tmp_path: Path) -> None:
    logged = {name: metric for name, metric in METRICS.items() if name.startswith("iolens.client.osc.rpcs")}
    samples = [(1000 + 60 * n, served(PcpSettings(moving_client(tmp_path / str(n), n)))) for n in range(2)]
    base = archive(tmp_path / "archive", samples, host="n215", logged=logged)
    ingest(tmp_path / "pcp", "pcp", [base], ReadOptions())
    rows = stored(tmp_path / "pcp", "lake", "client_rpcs", "direction", "pages", "page_bytes", "rpcs")
    assert rows == [("read", 1, 4096, 1), ("read", 4, 4096, 1), ("write", 1, 4096, 1), ("write", 2, 4096, 1)]
    assert "iolens.client.page_size was not logged: 4096 bytes assumed for lake" in problems_of(items_of("pcp", base))


def test_intervals_of_a_server_are_those_of_its_files(tmp_path: Path) -> None:
    roots = []
    for number in range(3):
        server = Server(tmp_path / str(number))
        server.work(3 + number * number, now=T0 + 60.0 * number)
        roots.append((server.root, T0 + 60 * number))
    through_both(tmp_path, roots, SERVER_TABLES, "oss1", "scratch")
    capacity = stored(tmp_path / "pcp", "scratch", "target_capacity", "target", "used_bytes", "free_inodes")
    assert capacity == stored(tmp_path / "files", "scratch", "target_capacity", "target", "used_bytes", "free_inodes")


def job_stats(root: Path, time: int, jobs: dict[str, int]) -> Path:
    """An OST of a version that does not say when a job began."""
    entries = "".join(
        f"- job_id:          {job}\n  snapshot_time:   {time}\n"
        f"  write_bytes:     {{ samples: 1, unit: bytes, min: 1, max: 1, sum: {moved} }}\n"
        for job, moved in jobs.items()
    )
    return plant(root, {
        "proc/fs/lustre/obdfilter/lake-OST0000/stats": f"snapshot_time {time}.5 secs.usecs\n",
        "proc/fs/lustre/obdfilter/lake-OST0000/job_stats": f"job_stats:\n{entries}",
    })  # fmt: skip


def jobs_stored(tmp_path: Path, most: int) -> list[tuple[Any, ...]]:
    samples = []
    for number, jobs in enumerate([{"a": 100, "b": 50}, {"a": 110, "b": 60, "c": 500}, {"a": 110, "b": 60, "c": 700}]):
        root = job_stats(tmp_path / str(number), T0 + 60 * number, jobs)
        samples.append((1000 + 60 * number, served(PcpSettings(root, jobs=most))))
    ingest(tmp_path / "pcp", "pcp", [archive(tmp_path / "archive", samples)], ReadOptions())
    return stored(tmp_path / "pcp", "lake", "job_io", "job_id", "write_bytes")


def test_a_job_that_is_new_has_moved_all_it_shows_if_all_jobs_were_served(tmp_path: Path) -> None:
    assert jobs_stored(tmp_path, 10) == [("a", 10), ("b", 10), ("c", 200), ("c", 500)]


def test_a_job_that_was_left_out_before_only_begins(tmp_path: Path) -> None:
    """Its place among the busiest came later than its bytes: they belong to no interval."""
    assert jobs_stored(tmp_path, 1) == [("c", 200)]


@pytest.mark.parametrize(
    "job", ["rm -rf.0", "50%::x", "a::b", "ünïcode", 'say "hi"', "x:", ":x", "%41", "#2", "", "%blank"]
)
def test_any_name_of_a_job_comes_back(tmp_path: Path, job: str) -> None:
    root = job_stats(tmp_path / "root", T0, {job: 7})
    metrics = served(PcpSettings(root))
    (instance,) = values_of(metrics)["iolens.job.write.bytes"]
    assert instance.split() == [instance]
    assert instance.isascii()
    back = items_of("pcp", archive(tmp_path / "archive", [(1000, metrics)]))
    (jobs,) = [item for item in back if isinstance(item, Sample) and item.table == "job_io"]
    assert {name: dict(now.counters) for name, now in jobs.sets.items()} == {job: {"write_bytes": 7, "write_ops": 1}}


def test_instances_that_nobody_served_are_counted(tmp_path: Path) -> None:
    writer = Writer(host="n1")
    metric = METRICS["iolens.client.osc.rpcs.read"]
    writer.describe(pmid(metric), metric.name, U64, units(count=1))
    writer.names(1000 * S, {1: "nonsense", 2: "lake-OST0000::1", 3: "::", 4: "::::"})
    writer.values(1000 * S, {pmid(metric): {1: 5, 2: 2**63, 3: 1, 4: 1, 9: 1}})
    back = items_of("pcp", writer.write(tmp_path / "archive"))
    assert [item for item in back if isinstance(item, Sample)] == []
    assert sorted(problems_of(back)) == [
        "1 values left out: '::' names no instance of iolens.client.osc.rpcs.read",
        "1 values left out: '::::' names no instance of iolens.client.osc.rpcs.read",
        "1 values left out: 'nonsense' names no instance of iolens.client.osc.rpcs.read",
        "1 values left out: instances that have no name",
        "1 values left out: what no counter can have",
    ]


def test_a_metric_that_is_described_otherwise_is_refused(tmp_path: Path) -> None:
    writer = Writer(host="n1")
    writer.describe(5, "iolens.client.read.bytes", U64, units(count=1))
    back = items_of("pcp", writer.write(tmp_path / "archive"))
    assert "iolens.client.read.bytes is not what iolens export pcp serves: not read" in problems_of(back)


def test_disks_and_lustre_of_one_archive_are_both_read_and_nothing_is_said_twice(tmp_path: Path) -> None:
    writer = Writer(host="n1").disks()
    metric = METRICS["iolens.client.read.bytes"]
    writer.describe(pmid(metric), metric.name, U64, units(space=1), domain=7)
    writer.names(1000 * S, {1: "sda"})
    writer.names(1000 * S, {1: "lake"}, domain=7)
    for second in (1000, 1060):
        writer.sample(second * S, {1: second})
        writer.values(second * S + 1000, {pmid(metric): {1: second}})
    writer.mark(1061 * S)
    base = writer.write(tmp_path / "archive")
    ingest(tmp_path / "store", "pcp", [base], ReadOptions())
    assert stored(tmp_path / "store", "n1", "target_io", "target", "read_ops") == [("n1:sda", 60)]
    assert stored(tmp_path / "store", "lake", "client_io", "node", "read_bytes") == [("n1", 60)]
    assert len([reason for reason in problems_of(items_of("pcp", base)) if "1 marks" in reason]) == 1


def test_the_tables_of_the_paper_through_archives_of_4_nodes(tmp_path: Path) -> None:
    """SPEC N, Tables I and II, spread over 4 nodes and 60 OSTs; and the job report is the one through files."""
    bases, roots = [], []
    for node in range(4):
        samples = [(T0 + 600 * ended, served(PcpSettings(enzo_node(tmp_path / f"{node}-{ended}", node, bool(ended)))))
                   for ended in (0, 1)]  # fmt: skip
        bases.append(archive(tmp_path / f"archive{node}", samples, host=f"r1i0n{node}"))
        roots += [tmp_path / f"{node}-{ended}" for ended in (0, 1)]
    ingest(tmp_path / "store", "pcp", bases, ReadOptions())
    rpcs: Counter[tuple[str, int]] = Counter()
    for direction, pages, count in stored(tmp_path / "store", "nbp1", "client_rpcs", "direction", "pages", "rpcs"):
        rpcs[direction, pages * 4] += count
    assert [rpcs["read", 4 << power] for power in range(9)] == list(ENZO_READS)
    assert [rpcs["write", 4 << power] for power in range(9)] == list(ENZO_WRITES)
    operations: Counter[str] = Counter()
    for name, count in stored(tmp_path / "store", "nbp1", "client_metadata", "operation", "count"):
        operations[name] += count
    assert operations == {"open": 5303, "close": 5769, "getattr": 12460}
    moved = stored(tmp_path / "store", "nbp1", "client_io", "node", "read_bytes", "write_bytes")
    assert [node for node, _, _ in moved] == [f"r1i0n{node}" for node in range(4)]
    assert [sum(column) for column in list(zip(*moved, strict=True))[1:]] == [54 * 10**9, 56 * 10**9]
    ingest(tmp_path / "files", "lustre-client-proc", roots, ReadOptions())
    window = from_epoch_us((T0 - 600) * S), from_epoch_us((T0 + 1200) * S)
    reports = [report_of_nodes(str(tmp_path / name), None, "r1i0n[0-3]", window) for name in ("store", "files")]
    assert reports[0] == replace(reports[1], notes=reports[0].notes)
    assert reports[0].missing_nodes == ()
    assert reports[0].filesystems[0].metadata["open"] == 5303
