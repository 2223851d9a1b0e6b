"""What a server did beside bytes and metadata, its queues and locks, and clients of Lustre 2.0: into the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iolens.records import Item, Note, Problem, Row, Sample
from iolens.sources.lustre.lustre_lctl import SOURCE as LCTL
from iolens.sources.lustre.lustre_proc import SOURCE as PROC
from iolens.sources.lustre.lustre_proc import read_tree
from iolens.sources.reading.options import ReadOptions
from iolens.store.ingest import Tally
from iolens.store.store import Store

S = 1_000_000
T0 = 1_600_000_000
MDT, OST = "proc/fs/lustre/mdt/fs-MDT0000", "proc/fs/lustre/obdfilter/fs-OST0000"
SERVICE_OF_2_0 = {"req_waittime": (100, "usec", 9000), "mds_getattr": (40, "usec", 4000), "mds_statfs": (3, "usec", 60)}
Counts = dict[str, int | tuple[int, str, int]]


def stats(second: int, counts: Counts, start: int | None = None) -> str:
    """`name: samples` or `name: (samples, unit, sum)`."""
    lines = [f"snapshot_time             {T0 + second}.000000000 secs.nsecs"]
    if start is not None:
        lines.append(f"start_time                {T0 + start}.000000000 secs.nsecs")
    for name, count in counts.items():
        number, unit, total = (count, "reqs", None) if isinstance(count, int) else count
        values = "" if total is None else f" 0 9 {total} 99"
        lines.append(f"{name:<25} {number} samples [{unit}]{values}")
    return "\n".join(lines) + "\n"


def plant(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def items(root: Path, **options: Any) -> list[Item]:
    return [item for capture in PROC.captures([root], ReadOptions(**options)) for item in capture.items()]


def problems(results: list[Item]) -> list[str]:
    return [item.reason for item in results if isinstance(item, Problem) and not isinstance(item, Note)]


def load(store: Store, *roots: Path) -> Tally:
    return store.ingest(PROC.captures(list(roots), ReadOptions()), "lustre-proc")


def rows(store: Store, table: str) -> list[dict[str, Any]]:
    handle = store.tables.load(table)
    result = [] if handle is None else handle.to_pyarrow_table().to_pylist()
    return sorted(result, key=lambda row: (row["target"], row["time"], row.get("operation", ""), row.get("bin", 0)))


class TestClientsOfLustre20:
    """Operations of an MDT are in exports/NID/stats alone; md_stats has the requests of the service."""

    def tree(self, root: Path, second: int, clients: dict[str, Counts], own: Counts | None = None) -> Path:
        files = {f"{MDT}/exports/{nid}/stats": stats(second, counts) for nid, counts in clients.items()}
        return plant(root, {f"{MDT}/md_stats": stats(second, SERVICE_OF_2_0 if own is None else own), **files})

    def test_they_add_up(self, tmp_path: Path) -> None:
        clients: dict[str, Counts] = {
            "10.0.0.1@tcp": {"open": 100, "close": 90},
            "10.0.0.2@o2ib": {"open": 7, "link": 1},
        }
        (sample,) = [item for item in items(self.tree(tmp_path, 0, clients)) if isinstance(item, Sample)
                     and item.table == "metadata_ops"]  # fmt: skip
        total: dict[str, int] = {}
        for entry in sample.sets.values():
            for name, count in entry.counters.items():
                total[name] = total.get(name, 0) + count
        assert (total["open"], total["close"], total["link"], total["mkdir"]) == (107, 90, 1, 0)
        assert (total["getattr"], total["statfs"]) == (40, 3)

    def test_what_both_count_counts_once(self, tmp_path: Path) -> None:
        result = items(self.tree(tmp_path, 0, {"10.0.0.1@tcp": {"getattr": 38}}))
        (sample,) = [item for item in result if isinstance(item, Sample) and item.table == "metadata_ops"]
        assert {name: item.counters.get("getattr") for name, item in sample.sets.items()} == {
            "": None,
            "10.0.0.1@tcp": 38,
        }

    @pytest.mark.parametrize("own", ["", "requests", "nothing"])
    def test_whatever_the_mdt_itself_shows(self, tmp_path: Path, own: str) -> None:
        """No md_stats, one with requests of the service, one without any counter."""
        for n in range(2):
            root = self.tree(
                tmp_path / str(n), 5 * n, {"10.0.0.1@tcp": {"open": 10 + 7 * n}}, {} if own == "nothing" else None
            )
            if not own:
                (root / f"{MDT}/md_stats").unlink()
        store = Store(tmp_path / "store")
        load(store, tmp_path / "0", tmp_path / "1")
        assert [row["open"] for row in rows(store, "metadata_ops")] == [7]

    def test_clients_that_come_and_go(self, tmp_path: Path) -> None:
        """No reset, no negative traffic: b goes with its 50 opens, c comes with 4, b is back from zero with 3."""
        a, b, c = "10.0.0.1@tcp", "10.0.0.2@tcp", "10.0.0.3@tcp"
        seen: list[dict[str, Counts]] = [
            {a: {"open": 1000}, b: {"open": 50, "close": 50}},
            {a: {"open": 1010}, b: {"open": 55, "close": 51}},
            {a: {"open": 1015}},
            {a: {"open": 1016}, c: {"open": 4, "mkdir": 2}},
            {a: {"open": 1016}, b: {"open": 3, "close": 1}, c: {"open": 5, "mkdir": 2}},
        ]
        store = Store(tmp_path / "store")
        tally = load(store, *(self.tree(tmp_path / str(n), 5 * n, item) for n, item in enumerate(seen)))
        result = rows(store, "metadata_ops")
        assert [(row["open"], row["close"], row["mkdir"], row["after_reset"]) for row in result] == [
            (15, 1, 0, False), (5, 0, 0, False), (5, 0, 2, False), (4, 1, 0, False),
        ]  # fmt: skip
        assert (tally.resets, tally.glitches, {row["duration_s"] for row in result}) == (0, 0, {5.0})

    def test_a_server_that_was_restarted_is_a_reset(self, tmp_path: Path) -> None:
        a, b = "10.0.0.1@tcp", "10.0.0.2@tcp"
        seen: list[dict[str, Counts]] = [
            {a: {"open": 1000, "close": 9}, b: {"open": 50, "close": 50}},
            {a: {"open": 10, "close": 8}, b: {"open": 5, "close": 5}},
        ]
        own: list[Counts] = [{"req_waittime": 100, "mds_statfs": 80}, {"req_waittime": 2, "mds_statfs": 1}]
        store = Store(tmp_path / "store")
        tally = load(store, *(self.tree(tmp_path / str(n), 5 * n, item, own[n]) for n, item in enumerate(seen)))
        assert [(row["open"], row["statfs"], row["after_reset"]) for row in rows(store, "metadata_ops")] == [
            (15, 1, True)
        ]
        assert tally.resets == 2  # the MDT's operations, and its requests

    def test_a_store_that_never_read_clients_does_not_take_them_for_new(self, tmp_path: Path) -> None:
        store = Store(tmp_path / "store")
        bare = plant(tmp_path / "0", {f"{MDT}/md_stats": stats(0, SERVICE_OF_2_0)})
        second = self.tree(tmp_path / "1", 5, {"10.0.0.1@tcp": {"open": 10**6}})
        third = self.tree(tmp_path / "2", 10, {"10.0.0.1@tcp": {"open": 10**6 + 7}})
        load(store, bare, second, third)
        assert [row["open"] for row in rows(store, "metadata_ops")] == [0, 7]

    def test_without_one_client_the_sum_is_unknown(self, tmp_path: Path) -> None:
        root = self.tree(tmp_path, 0, {"10.0.0.1@tcp": {"open": 5}, "10.0.0.2@tcp": {"open": 6}})
        cut = root / f"{MDT}/exports/10.0.0.2@tcp/stats"
        cut.write_text(cut.read_text()[:-4])
        result = items(root)
        assert not [item for item in result if isinstance(item, Sample) and item.table == "metadata_ops"]
        assert any("the sum over clients is unknown" in reason for reason in problems(result))

    def test_where_the_mdt_counts_itself_clients_are_not_even_opened(self, tmp_path: Path) -> None:
        root = self.tree(tmp_path, 0, {"10.0.0.1@tcp": {"open": 5}}, {"open": 9, "close": 8})
        (root / f"{MDT}/exports/10.0.0.1@tcp/stats").write_text("rubbish")
        result = items(root)
        (sample,) = [item for item in result if isinstance(item, Sample) and item.table == "metadata_ops"]
        assert (list(sample.sets), sample.sets[""].counters["open"], problems(result)) == ([""], 9, [])
        assert "mdt.*.exports.*.stats" in str(result[-1])

    def test_as_lctl_prints_them(self, tmp_path: Path) -> None:
        store = Store(tmp_path / "store")
        path = tmp_path / "lctl.txt"
        texts = [
            f"mdt.fs-MDT0000.md_stats=\n{stats(second, SERVICE_OF_2_0)}"
            f"mdt.fs-MDT0000.exports.10.0.0.1@tcp.stats=\n{stats(second, {'open': 3 * second})}"
            f"mdt.fs-MDT0000.exports.10.0.0.2@tcp.stats=\n{stats(second, {'open': second})}"
            for second in (0, 5, 10)
        ]
        path.write_text("".join(texts))
        store.ingest(LCTL.captures([path], ReadOptions()), "lustre-lctl")
        assert [row["open"] for row in rows(store, "metadata_ops")] == [20, 20]


class TestServerOps:
    def tree(self, root: Path, second: int, factor: int, *, host: str | None = None, ost: str = OST) -> Path:
        """An OST with ten statfs and one destroy of 70 us per factor, and a service with a queue of two."""
        files = {
            f"{ost}/stats": stats(second, {
                "write_bytes": (5, "bytes", 4096 * factor), "statfs": (10 * factor, "usecs", 50 * factor),
                "destroy": (factor, "usecs", 70 * factor), "ping": 3,
            }),
            "proc/fs/lustre/ost/OSS/ost_io/stats": stats(second, {
                "req_waittime": (7 * factor, "usec", 210 * factor), "req_qdepth": (7 * factor, "reqs", 14 * factor),
                "req_timeout": (7 * factor, "sec", 9 * factor), "ost_write": (6 * factor, "usec", 600 * factor),
            }),
            "sys/fs/lustre/ldlm/namespaces/filter-fs-OST0000_UUID/lock_count": f"{100 + factor}\n",
            "sys/fs/lustre/ldlm/namespaces/filter-fs-OST0000_UUID/pool/grant_rate": "17\n",
            "sys/fs/lustre/ldlm/namespaces/filter-fs-OST0009_UUID/lock_count": "5\n",
        }  # fmt: skip
        if host is not None:
            files["proc/sys/kernel/hostname"] = f"{host}\n"
        return plant(root, files)

    def test_only_what_moved_is_a_row(self, tmp_path: Path) -> None:
        store = Store(tmp_path / "store")
        load(store, *(self.tree(tmp_path / str(n), 5 * n, 1 + n) for n in range(3)))
        result = [
            (row["target"], row["operation"], row["target_kind"], row["count"], row["sum_us"], row["total"])
            for row in rows(store, "server_ops")
            if row["time"].timestamp() == T0 + 5
        ]
        service = "fs-OST0000:ost_io"
        assert result == [
            ("fs-OST0000", "destroy", "ost", 1, 70, None), ("fs-OST0000", "statfs", "ost", 10, 50, None),
            (service, "ost_write", "service", 6, 600, None), (service, "req_qdepth", "service", 7, None, 14),
            (service, "req_timeout", "service", 7, 9 * S, None), (service, "req_waittime", "service", 7, 210, None),
        ]  # fmt: skip
        assert len(rows(store, "server_ops")) == 12

    def test_a_service_is_no_target_and_an_ost_no_mdt(self, tmp_path: Path) -> None:
        store = Store(tmp_path / "store")
        load(store, *(self.tree(tmp_path / str(n), 5 * n, 1 + n) for n in range(3)))
        assert store.targets_by_filesystem() == {"fs": {"fs-OST0000"}}
        assert rows(store, "metadata_ops") == []

    def test_an_mds_of_2_12_shows_its_requests(self, tmp_path: Path) -> None:
        for n in range(2):
            requests: Counts = {"req_waittime": (n, "usecs", 7 * n), "mds_reint_open": n}
            plant(tmp_path / str(n), {
                f"{MDT}/md_stats": stats(5 * n, {"open": n}),
                "proc/fs/lustre/mds/MDS/mdt/stats": stats(5 * n, requests),
            })  # fmt: skip
        store = Store(tmp_path / "store")
        load(store, tmp_path / "0", tmp_path / "1")
        assert [(row["target"], row["operation"], row["count"]) for row in rows(store, "server_ops")] == [
            ("fs-MDT0000:mdt", "mds_reint_open", 1), ("fs-MDT0000:mdt", "req_waittime", 1),
        ]  # fmt: skip
        assert [row["open"] for row in rows(store, "metadata_ops")] == [1]

    def test_two_servers_of_one_file_system_are_distinguished(self, tmp_path: Path) -> None:
        """By the host where it is reported, else by their targets; after a failover a server has another name."""
        other = OST.replace("0000", "0001")
        item, two = (
            self.tree(tmp_path / "1", 0, 100, host="oss1"),
            self.tree(tmp_path / "2", 0, 3, host="oss2", ost=other),
        )
        names = {sample.target for root in (item, two) for sample in items(root)
                 if isinstance(sample, Sample) and sample.labels.get("target_kind") == "service"}  # fmt: skip
        assert names == {"oss1:ost_io", "oss2:ost_io"}
        both = self.tree(tmp_path / "3", 5, 3, ost=other)
        plant(both, {f"{OST}/stats": stats(5, {"write_bytes": (1, "bytes", 1)})})
        (service,) = {item.target for item in items(both) if isinstance(item, Sample) and "ost_io" in item.target}
        assert service == "fs-OST0000+1:ost_io"

    def test_locks(self, tmp_path: Path) -> None:
        result = items(self.tree(tmp_path, 0, 4))
        (state,) = [item.values for item in result if isinstance(item, Row) and item.table == "target_state"]
        assert (state["locks"], state["lock_grants_per_s"], state["lock_timeouts"]) == (104, 17, None)
        notes = [item.reason for item in result if isinstance(item, Note)]
        assert notes == ["left out: locks of fs-OST0009, which is not on this server"]

    @pytest.mark.parametrize("text", ["many\n", "", "12 13\n"])
    def test_locks_that_are_no_number_are_reported(self, tmp_path: Path, text: str) -> None:
        root = self.tree(tmp_path, 0, 4)
        (root / "sys/fs/lustre/ldlm/namespaces/filter-fs-OST0000_UUID/lock_count").write_text(text)
        assert len(problems(items(root))) == 1

    def test_the_agent_does_not_open_them_between_slow_ticks(self, tmp_path: Path) -> None:
        from iolens.sources.lustre.parameters import SLOW_LEAVES

        root = self.tree(tmp_path, 0, 4)
        for name in (
            "proc/fs/lustre/ost/OSS/ost_io/stats",
            "sys/fs/lustre/ldlm/namespaces/filter-fs-OST0000_UUID/lock_count",
        ):
            (root / name).write_text("rubbish")
        assert problems(list(read_tree(root, T0 * S, None, SLOW_LEAVES))) == []
        assert len(problems(list(read_tree(root, T0 * S)))) == 2


class TestJobs:
    def text(self, second: int, factor: int) -> str:
        return (
            f"obdfilter.fs-OST0000.stats=\n{stats(second, {'write_bytes': (1, 'bytes', 1)})}"
            "obdfilter.fs-OST0000.job_stats=\njob_stats:\n- job_id: a.1\n"
            f"  snapshot_time:   {T0 + second}.000000000 secs.nsecs\n"
            f"  start_time:      {T0 - 50}.000000000 secs.nsecs\n"
            f"  read_bytes:  {{ samples: {factor}, unit: bytes, min: 1, max: 9, sum: {4096 * factor}, sumsq: 1,"
            f" hist: {{ 4K: {factor} }} }}\n"
            f"  write_bytes: {{ samples: 0, unit: bytes, min: 0, max: 0, sum: 0, sumsq: 0, hist: {{  }} }}\n"
            f"  read:        {{ samples: {factor}, unit: usecs, min: 1, max: 9, sum: {30 * factor}, sumsq: 1 }}\n"
            f"  write:       {{ samples: 0, unit: usecs, min: 0, max: 0, sum: 0, sumsq: 0 }}\n"
            f"  punch:       {{ samples: 2, unit: usecs, min: 1, max: 9, sum: {5 * factor}, sumsq: 1 }}\n"
        )

    def test_times_and_sizes(self, tmp_path: Path) -> None:
        path = tmp_path / "lctl.txt"
        path.write_text(self.text(0, 10) + self.text(5, 13))
        store = Store(tmp_path / "store")
        store.ingest(LCTL.captures([path], ReadOptions()), "lustre-lctl")
        (row,) = rows(store, "job_io")
        assert {name: row[name] for name in ("read_ops", "read_us", "write_us", "punch", "punch_us", "open_us")} == {
            "read_ops": 3, "read_us": 90, "write_us": 0, "punch": 0, "punch_us": 15, "open_us": None,
        }  # fmt: skip
        (sizes,) = rows(store, "job_sizes")
        assert (sizes["job_id"], sizes["direction"], sizes["bin"], sizes["count"]) == ("a.1", "read", 4096, 3)
        assert sizes["target_kind"] == "ost"
