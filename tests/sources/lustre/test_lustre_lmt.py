"""The same numbers as LMT's own parser prints for the same trees (`outputs/*.exp`, chaos/lmt)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iolens.records import Note, Problem, Row, Sample
from iolens.schema import SIZE_BINS
from iolens.sources.lustre.histograms import DISK_IO_SIZE, SECTIONS
from iolens.sources.lustre.lustre_proc import SOURCE
from iolens.sources.reading.options import ReadOptions

VERSIONS = ["1.8.3", "2.0.0.1", "2.0.50.zfs", "2.0.56", "2.10.8"]
# The order of LMT's metric string; each operation is count;sum;sum of squares.
OPERATIONS = (
    "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getxattr", "process_config", "connect",
    "reconnect", "disconnect", "statfs", "create", "destroy", "setattr", "getattr", "llog_init", "notify", "quotactl",
)  # fmt: skip


RENAMED = {"obd_ping": "ping", "set_info_async": "set_info"}


class Tree:
    """One of LMT's trees: what we read, and what LMT printed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (capture,) = SOURCE.captures([root], ReadOptions())
        self.items = list(capture.items())
        assert not [item for item in self.items if isinstance(item, Problem) and not isinstance(item, Note)]

    def counters(self, table: str) -> dict[str, dict[str, int]]:
        result = (item for item in self.items if isinstance(item, Sample) and item.table == table)
        return {item.target: dict(item.sets[""].counters) for item in result}

    def rows(self, table: str) -> dict[object, dict[str, object]]:
        result = (item for item in self.items if isinstance(item, Row) and item.table == table)
        return {item.values["target"]: dict(item.values) for item in result}

    def printed(self, test: str) -> list[str]:
        return (self.root / "outputs" / f"{test}.exp").read_text().splitlines()

    def metric(self, kind: str) -> list[str]:
        (line,) = (line for line in self.printed("t10") if line.startswith(f"{kind}: "))
        return line.removesuffix(";").split(";")[4:]


@pytest.fixture(params=VERSIONS)
def tree(request: pytest.FixtureRequest, shared_data: Path) -> Tree:
    return Tree(shared_data / f"lustre-server-proc/lmt-{request.param}")


Histogram = dict[str, int]


def printed_histograms(lines: list[str]) -> list[dict[str, Histogram]]:
    """What LMT printed for each OST: histograms of `read:<bin>` and `write:<bin>`, non-zero bins only."""
    records: list[dict[str, Histogram]] = []
    title = ""
    for line in lines:
        text = line.removeprefix("tbrw_stats: ")
        if row := re.fullmatch(r"(\d+): (\d+), (\d+)", text):
            counts = {f"read:{row[1]}": int(row[2]), f"write:{row[1]}": int(row[3])}
            records[-1][title] |= {name: count for name, count in counts.items() if count}
            continue
        title = SECTIONS[text]
        if title == "pages_per_bulk":
            records.append({})
        records[-1][title] = {}
    return records


def outside_summed(sizes: Histogram) -> Histogram:
    """Bins below 8 B and above 64 MiB taken together, as `target_sizes` has them."""
    summed: Histogram = {}
    for name, count in sizes.items():
        direction, _, label = name.partition(":")
        name = f"{direction}_ios_{label}" if int(label) in SIZE_BINS else f"{direction}_ios_outside"
        summed[name] = summed.get(name, 0) + count
    return summed


def test_t03_histograms(tree: Tree) -> None:
    theirs = printed_histograms(tree.printed("t03"))
    for histograms in theirs:
        histograms[DISK_IO_SIZE] = outside_summed(histograms[DISK_IO_SIZE])
    sizes = tree.counters("target_sizes")
    ours = [
        {name: dict(result.counters) for name, result in sample.sets.items()}
        | {DISK_IO_SIZE: {name: count for name, count in sizes[sample.target].items() if count}}
        for sample in tree.items
        if isinstance(sample, Sample) and sample.table == "target_histograms"
    ]
    assert len(ours) == len(theirs)
    assert all(histograms in ours for histograms in theirs)
    assert all(histograms in theirs for histograms in ours)


def test_t05_bytes_and_operations(tree: Tree) -> None:
    """Every counter that LMT prints is in one of our tables, with the same number and sum."""
    io, metadata, others = (tree.counters(table) for table in ("target_io", "metadata_ops", "server_ops"))
    compared = 0
    for line in tree.printed("t05"):
        match = re.fullmatch(r"tstats: (\S+): (\w+)='(\d+) samples \[\w+\](?: \d+ \d+ (\d+).*)?'", line)
        if match is None:
            continue
        target, name, samples, total = match.groups()
        if target in io and name in ("read_bytes", "write_bytes"):
            assert io[target][name] == int(total)
            assert io[target][name.replace("bytes", "ops")] == int(samples)
            compared += 1
        elif target in metadata and (column := RENAMED.get(name, name)) in metadata[target]:
            assert metadata[target][column] == int(samples)
            compared += 1
        else:
            # LMT takes the beginning away, and of a name that occurs twice the last.
            ours = next(item for item in (f"obd_{name}", f"mds_{name}", name) if item in others[target])
            assert others[target][ours] == int(samples)
            if total is not None:
                factor = 1_000_000 if "[sec]" in line else 1
                assert (others[target].get(f"{ours}:us") or others[target][f"{ours}:total"]) == int(total) * factor
            compared += 1
    assert compared >= 8
    assert compared == sum(" samples [" in line for line in tree.printed("t05"))


def test_t06_recovery(tree: Tree) -> None:
    states = tree.rows("target_state")
    theirs: dict[str, dict[str, str]] = {}
    for line in tree.printed("t06"):
        if match := re.fullmatch(r"trecov: (\S+): (\w+):='(.*)'", line):
            theirs.setdefault(match[1], {})[match[2]] = match[3]
    assert theirs.keys() <= states.keys()
    for target, said in theirs.items():
        state = states[target]
        assert state["recovery_status"] == said["status"]
        assert state["recovery_start"] == (
            int(said["recovery_start"]) * 1_000_000 if "recovery_start" in said else None
        )
        assert state["recovery_duration_s"] == (
            float(said["recovery_duration"]) if "recovery_duration" in said else None
        )
        assert state["recovery_remaining_s"] == (float(said["time_remaining"]) if "time_remaining" in said else None)
        done, _, expected = said.get("completed_clients", "").partition("/")
        assert state["completed_clients"] == (int(done) if done else None)
        if expected:
            assert state["expected_clients"] == int(expected)


def test_t10_ost_metrics(tree: Tree) -> None:
    fields, width = tree.metric("ost"), 15
    for start in range(0, len(fields), width):
        target, *numbers = fields[start : start + 14]
        io, full = tree.counters("target_io")[target], tree.rows("target_capacity")[target]
        files_free, files_total, kib_free, kib_total, read, written, _, exports, *rest = map(int, numbers)
        assert (full["free_inodes"], full["total_inodes"]) == (files_free, files_total)
        assert (full["free_bytes"], full["total_bytes"]) == (kib_free * 1024, kib_total * 1024)
        assert (io["read_bytes"], io["write_bytes"]) == (read, written)
        state = tree.rows("target_state")[target]
        assert state["exports"] == exports
        locks = [state[name] for name in ("locks", "lock_grants_per_s", "lock_cancels_per_s")]
        assert locks == rest[:3] or locks == [None] * 3  # the namespace has no target's name in 2.0.50
        counts = tree.counters("server_ops")[target]
        assert [counts.get(name, 0) for name in ("connect", "reconnect")] == rest[3:]


def test_t10_mdt_metrics(tree: Tree) -> None:
    target, *numbers = tree.metric("mdt")
    files_free, files_total, kib_free, kib_total = map(int, numbers[:4])
    full = tree.rows("target_capacity")[target]
    assert (full["free_inodes"], full["total_inodes"]) == (files_free, files_total)
    assert (full["free_bytes"], full["total_bytes"]) == (kib_free * 1024, kib_total * 1024)
    ours, triplets = tree.counters("metadata_ops")[target], list(map(int, numbers[5:]))
    for position, operation in enumerate(OPERATIONS):
        count, total, _ = triplets[3 * position : 3 * position + 3]
        assert ours.get(operation, 0) == count
        assert ours.get(f"{operation}_us", 0) == total


def test_t11_version(tree: Tree) -> None:
    (line,) = tree.printed("t11")
    (version,) = {str(row["version"]) for row in tree.rows("target_state").values()}
    numbers = [*version.partition("_")[0].split("."), "0"]
    assert re.findall(r"(?:major|minor|patch|fix): (\d+)", line) == numbers[:4]
