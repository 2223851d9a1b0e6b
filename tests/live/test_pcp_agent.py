"""`iolens export pcp` under a real pmcd: what PCP's own tools print, and what pmlogger's archives give back."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from iolens.api.stored_job import report_of_nodes
from iolens.records import Note, Problem, Sample
from iolens.schema import SIZE_BINS
from iolens.sources.lustre.lustre_proc import read_tree
from iolens.sources.pcp.lustre_metrics import METRICS
from iolens.sources.reading.options import ReadOptions
from iolens.store.store import Store
from tests.agent.server import Server, SimulatedServer
from tests.live.pmcd import Pmcd, require_pcp
from tests.live.spark_cluster import ComponentMissing
from tests.sources.lustre.client_trees import T0, tree_2_15
from tests.sources.lustre.test_lustre_client_proc import ENZO_READS, ENZO_WRITES, enzo_node
from tests.sources.stored import ingest, items_of, stored

pytestmark = pytest.mark.live

UNITS = {((1, 0, 0), (0, 0, 0)): "byte", ((0, 1, 0), (0, 1, 0)): "microsec", ((0, 0, 1), (0, 0, 0)): "count",
         ((0, -1, 1), (0, 3, 0)): "count / sec", ((0, 0, 0), (0, 0, 0)): "none"}  # fmt: skip
SEMANTICS = {1: "counter", 3: "instant", 4: "discrete"}


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    try:
        require_pcp()
    except ComponentMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pmcd]:
    with Pmcd(tree_2_15(tmp_path_factory.mktemp("client"))) as pmcd:
        yield pmcd


def values(pmcd: Pmcd, metric: str) -> dict[str, int]:
    """`pminfo -f`: values by instance."""
    return {
        name: int(value) for name, value in re.findall(r'or "(.+)"\] value (\d+)', pmcd.run("pminfo", "-f", metric))
    }


def test_every_metric_is_described_as_it_is(client: Pmcd) -> None:
    """pminfo -d, -t and -T: type, semantics, units, the line and the text."""
    printed = client.run("pminfo", "-dtT", "iolens")
    blocks = {block.split()[0]: block for block in re.split(r"\n(?=iolens\.)", printed.strip())}
    assert blocks.keys() == METRICS.keys()
    for name, block in blocks.items():
        metric = METRICS[name]
        head, rest = block.split("\n", 1)
        assert head == f"{name} [{metric.leaf.oneline}]"
        assert "Data Type: 64-bit unsigned int  InDom: 398." in rest
        assert f"Semantics: {SEMANTICS[metric.leaf.semantics]}  Units: {UNITS[tuple(metric.leaf.units)]}\n" in rest
        assert rest.split("Help:\n")[1].strip() == metric.text.strip()


def test_tools_print_the_values_of_a_client(client: Pmcd) -> None:
    assert values(client, "iolens.client.osc.rpcs.write") == {
        "lake-OST0000::1": 2, "lake-OST0000::2": 1, "lake-OST0000::4": 0,
    }  # fmt: skip
    assert values(client, "iolens.client.osc.requests.bytes") == {
        "lake-OST0000::read_bytes": 28672, "lake-OST0000::write_bytes": 12388,
    }  # fmt: skip
    assert values(client, "iolens.client.metadata.count") == {
        "lake::open": 20, "lake::close": 18, "lake::getattr": 70, "lake::statfs": 2,
    }  # fmt: skip
    assert client.run("pmprobe", "-v", "iolens.client.page_size").split() == ["iolens.client.page_size", "1", "4096"]
    assert client.run("pmval", "-s", "1", "-r", "iolens.client.write.bytes").split()[-1] == "16000"
    shown = client.run("pmrep", "-s", "1", "--raw", "-o", "csv", "-i", "lake::open", "iolens.client.metadata.count")
    assert shown.splitlines()[0].endswith('"iolens.client.metadata.count-lake::open"')
    assert shown.splitlines()[1].endswith(",20")
    assert values(client, "iolens.agent.reading.problems") == {"client": 0, "target": 0, "job": 0}


def test_instances_have_the_same_names_and_numbers_after_a_restart(client: Pmcd) -> None:
    metrics = ("iolens.client.osc.rpcs.read", "iolens.client.metadata.count", "iolens.client.text.counters")
    with Pmcd(client.root) as again:
        for metric in metrics:
            first, second = (sorted(re.findall(r'inst \[(\d+) or "(.+)"\]', pmcd.run("pminfo", "-f", metric)))
                             for pmcd in (client, again))  # fmt: skip
            assert first == second != []


def test_another_domain_number(client: Pmcd) -> None:
    with Pmcd(client.root, "n1", "--domain", 401) as pmcd:
        assert "InDom: 401.12 " in pmcd.run("pminfo", "-d", "iolens.client.read.bytes")


def test_the_command_itself_becomes_the_agent(client: Pmcd) -> None:
    """As pmcd.conf may name it: asked as PCP's `Install` asks, it answers as the system's Python."""
    command = [sys.executable, "-m", "iolens.cli.main", "export", "pcp", "--root", str(client.root), "--domain", "402"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "PCP_PYTHON_PMNS": "root"},
    )  # fmt: skip
    assert done.stdout == "root {\n\tiolens\t402:*:*\n}\n"


def test_the_values_of_a_server_and_its_jobs(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.work(3)
    with Pmcd(tmp_path, "oss1", "--interval", "50ms", "--jobs-interval", "50ms") as pmcd:
        assert values(pmcd, "iolens.target.write.bytes") == {"scratch-OST0000": 3 << 20, "scratch-OST0001": 6 << 20}
        assert values(pmcd, "iolens.target.brw.disk_io_size.write")["scratch-OST0001::1048576"] == 6
        assert values(pmcd, "iolens.target.brw.pages_per_bulk.read")["scratch-OST0000::256"] == 3
        assert values(pmcd, "iolens.target.metadata.time")["scratch-MDT0000::open"] == 15
        assert values(pmcd, "iolens.target.state.exports") == {"scratch-OST0000": 7, "scratch-OST0001": 7}
        assert values(pmcd, "iolens.job.write.bytes")["scratch-OST0001::job.2"] == 6 << 20
        server.jobs = 5
        server.work(1)
        _soon(pmcd, "iolens.job.write.bytes", lambda shown: len(shown) == 10)
        _soon(pmcd, "iolens.target.write.bytes", lambda shown: shown["scratch-OST0000"] == 4 << 20)


def test_tools_print_what_the_simulator_left(tmp_path: Path) -> None:
    """A server of `iolens simulate lustre`: each value is the one its files show."""
    server = SimulatedServer(tmp_path / "root", "2.15", seed=7)
    with server.running() as process:
        server.wait_for_tree(process)
    with Pmcd(server.root, "oss1") as pmcd:
        samples = [item for item in read_tree(server.root, 1) if isinstance(item, Sample)]
        written = {item.target: item.sets[""].counters["write_bytes"] for item in samples if item.table == "target_io"}
        assert written == values(pmcd, "iolens.target.write.bytes")
        assert sum(written.values()) > 0
        sizes = {f"{item.target}::{size}": item.sets[""].counters[f"read_ios_{size}"] for item in samples
                 if item.table == "target_sizes" for size in (*SIZE_BINS, "outside")}  # fmt: skip
        assert sizes == values(pmcd, "iolens.target.brw.disk_io_size.read")
        largest = max(written, key=lambda target: written[target])
        shown = pmcd.run("pmval", "-s", "1", "-r", "-f", "0", "-i", largest, "iolens.target.write.bytes")
        assert shown.split()[-1] == str(written[largest])
        printed = pmcd.run("pmrep", "-s", "1", "--raw", "-o", "csv", "-i", largest, "iolens.target.write.bytes")
        assert printed.splitlines()[1].rpartition(",")[2] == str(written[largest])


def test_what_cannot_be_read_does_not_end_the_agent(tmp_path: Path) -> None:
    """Nothing there, then a client with a spoilt text, one that is gone, one that may not be read, one that hangs."""
    with Pmcd(tmp_path / "root", "n1", "--interval", "50ms") as pmcd:
        assert values(pmcd, "iolens.agent.reading.success") == {"client": 0, "target": 0, "job": 0}
        assert "no such directory" in pmcd.log
        root = tree_2_15(tmp_path / "root")
        assert _soon(pmcd, "iolens.client.read.bytes") == {"lake": 9000}
        (rpcs,) = root.rglob("osc/*/rpc_stats")
        whole = rpcs.read_text()
        rpcs.write_text(whole.replace("1:\t\t", "one:\t\t", 1))
        _soon(pmcd, "iolens.client.osc.rpcs.read", lambda shown: not shown)
        assert values(pmcd, "iolens.client.read.bytes") == {"lake": 9000}
        assert values(pmcd, "iolens.agent.reading.problems")["client"] >= 1
        rpcs.unlink()
        os.mkfifo(rpcs)  # opening it waits for who never comes: refused, not waited for
        assert _soon(pmcd, "iolens.client.read.bytes") == {"lake": 9000}
        rpcs.unlink()
        rpcs.write_text(whole)
        assert _soon(pmcd, "iolens.client.osc.rpcs.read")["lake-OST0000::1"] == 3


def _soon(pmcd: Pmcd, metric: str, is_right: Callable[[dict[str, int]], bool] = bool) -> dict[str, int]:
    """The values once they are right; a reading is served for at most 50 ms."""
    deadline = time.monotonic() + 60
    while not is_right(shown := values(pmcd, metric)):
        assert time.monotonic() < deadline, f"{metric}: {shown}"
        time.sleep(0.05)
    return shown


@contextmanager
def logging(pmcd: Pmcd, base: Path) -> Iterator[Callable[[], None]]:
    """pmlogger beside a block; what it gives waits until there are four records more, all later than the call."""
    volume = base.with_name(f"{base.name}.0")
    logger = pmcd.logger(base, "500 msec")

    def wait() -> None:
        for _ in range(4):
            size, deadline = volume.stat().st_size if volume.exists() else 0, time.monotonic() + 60
            while not volume.exists() or volume.stat().st_size <= size:
                assert time.monotonic() < deadline, f"pmlogger writes nothing: {pmcd.log}"
                time.sleep(0.02)

    try:
        yield wait
    finally:
        logger.process.terminate()
        logger.process.wait(60)


def refused(base: Path) -> list[str]:
    """Problems of an archive; on a busy machine pmlogger may be late and log twice, which is only a note."""
    return [str(item) for item in items_of("pcp", base) if isinstance(item, Problem) and not isinstance(item, Note)]


def test_the_tables_of_the_paper_through_pmcd_and_pmlogger_of_4_nodes(tmp_path: Path) -> None:
    """SPEC N, Tables I and II, over 4 nodes and 60 OSTs: the same rows as from the files, node by node."""
    bases = [tmp_path / f"archive{node}" for node in range(4)]
    roots = [enzo_node(tmp_path / f"{node}-{ended}", node, ended) for node in range(4) for ended in (False, True)]
    with ExitStack() as stack:
        waits = []
        for node, base in enumerate(bases):
            pmcd = stack.enter_context(Pmcd(enzo_node(tmp_path / f"live{node}", node, False), f"r1i0n{node}"))
            waits.append(stack.enter_context(logging(pmcd, base)))
        for wait in waits:
            wait()
        for node in range(4):
            enzo_node(tmp_path / f"live{node}", node, True)
        for wait in waits:
            wait()
    assert ingest(tmp_path / "pcp", "pcp", bases, ReadOptions()).refused == 0
    assert [problem for base in bases for problem in refused(base)] == []
    ingest(tmp_path / "files", "lustre-client-proc", roots, ReadOptions())
    for table, names in {
        "client_rpcs": ("node", "target", "direction", "pages", "page_bytes"),
        "client_metadata": ("node", "operation"),
        "client_histograms": ("node", "target", "histogram", "direction", "bin"),
    }.items():
        value = "rpcs" if table == "client_rpcs" else "count"
        through_pcp, through_files = (sums(tmp_path / store, table, names, value) for store in ("pcp", "files"))
        assert through_pcp == through_files
    for column in ("read_bytes", "write_bytes", "read_ops", "write_ops"):
        through_pcp, through_files = (
            sums(tmp_path / store, "client_io", ("node",), column) for store in ("pcp", "files")
        )
        assert through_pcp == through_files
    through_files_report = reported(tmp_path / "files", datetime.fromtimestamp(T0, UTC))
    assert reported(tmp_path / "pcp", datetime.now(UTC)) == through_files_report
    rpcs = sums(tmp_path / "pcp", "client_rpcs", ("direction", "pages"), "rpcs")
    assert [rpcs["read", 1 << power] for power in range(9)] == list(ENZO_READS)
    assert [rpcs["write", 1 << power] for power in range(9)] == list(ENZO_WRITES)
    assert sums(tmp_path / "pcp", "client_metadata", ("operation",), "count") == {
        ("open",): 5303, ("close",): 5769, ("getattr",): 12460,
    }  # fmt: skip


def reported(store: Path, about: datetime) -> list[object]:
    """What the job report says of each file system, but for how long it took."""
    window = about - timedelta(hours=1), about + timedelta(hours=1)
    report = report_of_nodes(str(store), None, "r1i0n[0-3]", window)
    assert report.missing_nodes == ()
    names = ("filesystem", "read_bytes", "write_bytes", "rpc_bytes_max", "rpc_sizes", "metadata", "small_rpc_pct")
    return [[getattr(part, name) for name in names] for part in report.filesystems]


def sums(store: Path, table: str, names: tuple[str, ...], value: str) -> dict[tuple[object, ...], int]:
    """What moved, over all intervals; nothing that did not."""
    counts: Counter[tuple[object, ...]] = Counter()
    for *key, count in stored(store, "nbp1", table, *names, value):
        counts[tuple(key)] += count
    return {key: count for key, count in counts.items() if count}


def test_an_archive_of_a_server_gives_its_targets(tmp_path: Path) -> None:
    server = Server(tmp_path / "root", job_sizes=True)
    server.work(3)
    with Pmcd(server.root, "oss1", "--interval", "50ms", "--jobs-interval", "50ms") as pmcd:
        assert values(pmcd, "iolens.job.size.write")["scratch-OST0001::job.2::1048576"] == 6
        base = tmp_path / "archive"
        with logging(pmcd, base) as wait:
            wait()
            server.work(5)
            wait()
    assert refused(base) == []
    ingest(tmp_path / "store", "pcp", [base], ReadOptions())
    store = tmp_path / "store"
    moved = Counter[str]()
    for target, written in stored(store, "scratch", "target_io", "target", "write_bytes"):
        moved[target] += written
    assert moved == {"scratch-OST0000": 5 << 20, "scratch-OST0001": 10 << 20}
    assert sum(count for (count,) in stored(store, "scratch", "target_sizes", "write_ios_1048576")) == 15
    assert sum(count for (count,) in stored(store, "scratch", "metadata_ops", "open")) == 5
    jobs = Counter[str]()
    for job, written in stored(store, "scratch", "job_io", "job_id", "write_bytes"):
        jobs[job] += written
    assert jobs == dict.fromkeys(("job.0", "job.1", "job.2"), 15 << 20)
    sizes = Counter[tuple[object, ...]]()
    for *key, count in stored(store, "scratch", "job_sizes", "job_id", "target", "direction", "bin", "count"):
        sizes[tuple(key)] += count
    assert sizes == {
        (f"job.{job}", f"scratch-OST000{ost}", "write", 1 << 20): 5 * (ost + 1) for job in range(3) for ost in range(2)
    }
    kinds = {kind for (kind,) in stored(store, "scratch", "target_capacity", "target_kind")}
    assert kinds == {"ost", "mdt"}
    assert Store(store).tables.load("target_state") is not None
