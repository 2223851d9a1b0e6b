"""The agent for PCP without PCP: namespace, units, instances, what cannot be read, imports, installation."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import pytest

from iolens.agent.exporter.reading import MetricCollector, MetricReading
from iolens.agent.pcp.__main__ import parsed_settings
from iolens.agent.pcp.domain_agent import PcpSettings, ServedMetrics, agent_words, collectors, write_installation
from iolens.agent.pcp.readings import MOST_REMEMBERED, InstanceNumbers, MountPlaces, Values
from iolens.errors import UsageError
from iolens.sources.pcp.lustre_metrics import (
    BYTES,
    CLIENT,
    COUNT,
    COUNTER,
    DISCRETE,
    DOMAIN,
    GROUPS,
    INSTANT,
    METRICS,
    MICROSECONDS,
    NO_UNITS,
    PER_SECOND,
    MetricGroup,
)
from tests.agent.server import Server
from tests.cli.command import iolens
from tests.conftest import REPOSITORY
from tests.sources.lustre.client_trees import MOUNT, counters, plant, tree_2_10, tree_2_15
from tests.sources.pcp_served import served, values_of

SOURCES = REPOSITORY / "src"
# Numbers are part of every archive ever written: a new group is a new line here, and no line ever changes.
NUMBERS = {
    "agent.reading": [1], "client": [10, 12], "client.text": [11], "client.metadata": [13], "client.other": [14],
    "client.read_ahead": [15], "client.call_size": [16], "client.osc.rpcs": [20], "client.osc.in_flight": [21],
    "client.osc.offset": [22], "client.osc.latency": [23], "client.osc.requests": [24], "client.mdc.rpcs": [30],
    "client.osc.now": [25], "client.mdc.now": [39],
    "client.mdc.in_flight": [31], "client.mdc.offset": [32], "client.mdc.latency": [33], "client.mdc.requests": [34],
    "client.mdc.modify_in_flight": [35], "client.mdc.metadata": [36], "client.ldlm.pool": [37],
    "client.ldlm.service": [38], "target.text": [40], "target": [41], "target.metadata": [42], "target.other": [43],
    "target.osd": [44], "target.service": [45], "target.capacity": [46], "target.state": [47],
    "target.brw.disk_io_size": [51], "target.brw.pages_per_bulk": [52], "target.brw.discontiguous_pages": [53],
    "target.brw.discontiguous_blocks": [54], "target.brw.disk_fragmented_ios": [55],
    "target.brw.disk_ios_in_flight": [56], "target.brw.io_time_ms": [57], "target.brw.block_maps_ms": [58],
    "target.brw.disk_ios_in_flight_pow2": [59],
    "job": [70, 72], "job.metadata": [71], "job.text": [73], "job.size": [74], "job.size_text": [75],
}  # fmt: skip


def test_numbers_never_change() -> None:
    assert DOMAIN == 398
    numbers: dict[str, list[int]] = {}
    for group in GROUPS:
        numbers.setdefault(group.name, []).append(group.number)
    assert numbers == NUMBERS
    assert len({metric.item for metric in METRICS.values()}) == len(METRICS) == 143
    assert all(metric.item < 1024 for metric in METRICS.values())
    assert [leaf.key for leaf in next(group for group in GROUPS if group.number == 12).leaves] == [
        "read_bytes", "read_ops", "write_bytes", "write_ops",
    ]  # fmt: skip


def test_every_metric_has_a_name_a_line_and_a_text_that_pcp_can_show() -> None:
    for name, metric in METRICS.items():
        assert re.fullmatch(r"iolens(\.[a-z][a-z0-9_]*)+", name)
        assert 10 < len(metric.leaf.oneline) < 100
        assert not metric.leaf.oneline.endswith(".")
        assert metric.text.startswith(f"{metric.leaf.oneline}.\n")
        assert "An instance is " in metric.text
    names = list(METRICS)
    assert not [name for name in names for other in names if other.startswith(f"{name}.")], (
        "a metric has metrics below it"
    )


def test_counters_count_bytes_operations_or_time_and_what_is_true_now_is_instant() -> None:
    for name, metric in METRICS.items():
        leaf = metric.leaf
        if leaf.semantics == COUNTER:
            assert leaf.units in (BYTES, COUNT, MICROSECONDS), name
        assert (leaf.units == BYTES) == (name.endswith((".bytes", ".page_size")))
        assert name.endswith(("time", "start_time")) or leaf.units != MICROSECONDS
    assert {METRICS[name].leaf.semantics for name in METRICS if ".client.osc.rpcs" in name} == {COUNTER}
    assert METRICS["iolens.target.capacity.free.bytes"].leaf.semantics == INSTANT
    assert METRICS["iolens.client.mount"].leaf.semantics == DISCRETE


UNITS = {BYTES: "bytes", COUNT: "count", MICROSECONDS: "µs", PER_SECOND: "count/s", NO_UNITS: "none"}
SEMANTICS = {COUNTER: "counter", INSTANT: "instant", DISCRETE: "discrete"}


def page_row(group: MetricGroup) -> str:
    """How docs/pcp.md describes a group."""
    kinds: dict[str, list[str]] = {}
    for leaf in group.leaves:
        kinds.setdefault(f"{SEMANTICS[leaf.semantics]}, {UNITS[leaf.units]}", []).append(f"`{leaf.name}`")
    shown = "; ".join(f"{', '.join(names)}: {kind}" for kind, names in kinds.items())
    first = group.leaves[0].oneline
    what = first.removesuffix(", reads").removesuffix(": how many")
    meaning = f"{what}. {group.about}" if what != first or len(group.leaves) == 1 else group.about
    return f"| `iolens.{group.name}.` | {shown} | {group.instances} | {meaning} |"


def test_the_page_describes_every_metric_as_it_is() -> None:
    _, _, section = (REPOSITORY / "docs" / "pcp.md").read_text().partition("\n## Metrics\n")
    assert [row for row in section.splitlines() if row.startswith("| `")] == [page_row(group) for group in GROUPS]


# --- instances ---


def test_numbers_of_instances_follow_from_their_names() -> None:
    numbers = InstanceNumbers()
    assert numbers.of("lake-OST0000::4") == zlib.crc32(b"lake-OST0000::4") & 0x7FFFFFFF
    assert InstanceNumbers().of("lake-OST0000::4") == numbers.of("lake-OST0000::4")


def test_of_two_names_with_one_number_one_takes_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zlib, "crc32", lambda _: 0xFFFFFFFF)
    numbers = InstanceNumbers()
    assert [numbers.of(name) for name in ("a", "b", "a", "c")] == [0x7FFFFFFF, 0, 0x7FFFFFFF, 1]


def test_jobs_of_years_are_forgotten() -> None:
    numbers = InstanceNumbers()
    first = numbers.of("lake-OST0000::1")
    for job in range(MOST_REMEMBERED + 1):
        numbers.of(f"lake-OST0000::{job}")
    numbers.forget_all_but({"lake-OST0000::1"})
    assert numbers == InstanceNumbers({"lake-OST0000::1": first}, {first})


def test_a_mount_keeps_its_place() -> None:
    places = MountPlaces()
    places.update({"lake": {"b"}})
    places.update({"lake": {"a", "b"}, "pool": {"z"}})
    assert places.places == {"lake": {"b": 1, "a": 2}, "pool": {"z": 1}}
    places.update({"lake": {"a", "c"}})
    assert places.places == {"lake": {"a": 2, "c": 1}}


def test_instances_change_only_when_they_do(tmp_path: Path) -> None:
    root = tree_2_10(tmp_path)
    metrics = ServedMetrics(collectors(PcpSettings(root, interval_s=0.0), print), timeout_s=30.0)
    metrics.refresh(CLIENT)
    assert metrics.changed
    metrics.changed.clear()
    metrics.refresh(CLIENT)
    assert metrics.changed == set()
    (stats,) = root.rglob("llite/*/stats")
    stats.write_text(stats.read_text() + "mkdir                     2 samples [regs]\n")
    metrics.refresh(CLIENT)
    assert metrics.changed == {13}
    assert values_of(metrics)["iolens.client.metadata.count"]["lake::mkdir"] == 2


def test_rpcs_in_flight_now_are_instants(tmp_path: Path) -> None:
    root = tree_2_15(tmp_path)
    (rpcs,) = root.rglob("osc/*/rpc_stats")
    rpcs.write_text(rpcs.read_text().replace("read RPCs in flight:  0", "read RPCs in flight:  5"))
    values = values_of(served(PcpSettings(root)))
    shown = {name.rpartition(".")[2]: value for name, value in values.items() if ".osc.now." in name}
    assert shown == {
        "read_rpcs": {"lake-OST0000": 5}, "write_rpcs": {"lake-OST0000": 1}, "dio_rpcs": {"lake-OST0000": 0},
        "pending_read_pages": {"lake-OST0000": 0}, "pending_write_pages": {"lake-OST0000": 0},
    }  # fmt: skip
    assert values["iolens.client.mdc.now.modify_rpcs"] == {"lake-MDT0000": 0}
    assert METRICS["iolens.client.osc.now.read_rpcs"].leaf.semantics == INSTANT


def test_sizes_of_the_ios_of_jobs_are_served_where_the_version_counts_them(tmp_path: Path) -> None:
    server = Server(tmp_path, osts=1, jobs=4)
    server.work(5)
    assert "iolens.job.size.write" not in values_of(served(PcpSettings(tmp_path)))
    server.job_sizes = True
    server.work(2)
    metrics = values_of(served(PcpSettings(tmp_path, jobs=2)))
    assert len(metrics["iolens.job.write.bytes"]) == 2
    jobs = [name for name in metrics["iolens.job.write.bytes"] if "OST" in name]
    assert metrics["iolens.job.size.write"] == {f"{job}::1048576": 7 for job in jobs}
    assert metrics["iolens.job.size.read"] == {f"{job}::1048576": 0 for job in jobs}
    assert metrics["iolens.job.size_text.counters"] == dict.fromkeys(jobs, 1)


def test_the_busiest_jobs_are_served_and_the_others_counted(tmp_path: Path) -> None:
    server = Server(tmp_path, osts=1, jobs=7)
    server.work()
    metrics = values_of(served(PcpSettings(tmp_path, jobs=3)))
    assert len(metrics["iolens.job.write.bytes"]) == 3
    assert metrics["iolens.job.listed"] == {"scratch-OST0000": 7, "scratch-MDT0000": 0}
    assert metrics["iolens.job.left_out"] == {"scratch-OST0000": 4, "scratch-MDT0000": 0}
    assert "iolens.job.listed" not in values_of(served(PcpSettings(tmp_path, jobs=0)))


# --- what cannot be read ---


def own(metrics: ServedMetrics) -> dict[str, dict[str, int]]:
    values = values_of(metrics)
    return {key: values[f"iolens.agent.reading.{key}"] for key in ("success", "problems")}


def test_a_root_that_is_not_there_costs_its_values_and_is_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    metrics = ServedMetrics(collectors(PcpSettings(tmp_path / "none", interval_s=0.0), said.append), timeout_s=30.0)
    for _ in range(3):
        metrics.refresh(0)
    nothing = dict.fromkeys(("client", "target", "job"), 0)
    assert own(metrics) == {"success": nothing, "problems": dict.fromkeys(nothing, 1)}
    assert len(said) == 3
    assert all("no such directory" in line for line in said)
    assert values_of(metrics).keys() == {f"iolens.agent.reading.{key}" for key in ("success", "problems", "time")}


def test_a_node_without_lustre_has_nothing_and_no_trouble(tmp_path: Path) -> None:
    assert own(served(PcpSettings(tmp_path)))["success"] == {"client": 1, "target": 1, "job": 1}


def test_a_text_that_is_not_understood_costs_its_own_values(tmp_path: Path) -> None:
    root = tree_2_15(tmp_path)
    (rpcs,) = root.rglob("osc/*/rpc_stats")
    rpcs.write_bytes(b"\xff\xfe nothing of ours\n")
    plant(root, {f"sys/kernel/debug/lustre/llite/lake-{MOUNT}/read_ahead_stats": "hits x samples [pages]\n"})
    metrics = served(PcpSettings(root))
    values = values_of(metrics)
    assert "iolens.client.osc.rpcs.read" not in values
    assert values["iolens.client.read.bytes"] == {"lake": 9000}
    assert own(metrics)["problems"]["client"] >= 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_a_problem(tmp_path: Path) -> None:
    root = tree_2_15(tmp_path)
    (stats,) = root.rglob("llite/*/stats")
    stats.chmod(0)
    assert own(served(PcpSettings(root)))["problems"]["client"] >= 1


def test_a_directory_in_place_of_a_file_is_not_read(tmp_path: Path) -> None:
    root = tree_2_15(tmp_path)
    (rpcs,) = root.rglob("osc/*/rpc_stats")
    rpcs.unlink()
    rpcs.mkdir()
    assert values_of(served(PcpSettings(root)))["iolens.client.read.bytes"] == {"lake": 9000}


def test_a_counter_that_no_metric_has_is_a_problem(tmp_path: Path) -> None:
    root = plant(tmp_path, {
        f"llite/lake-{MOUNT}/stats": counters("snapshot_time             1700000000.1 secs.nsecs\n",
                                              "teleport                  3 samples [regs]"),
    })  # fmt: skip
    assert own(served(PcpSettings(root)))["problems"]["client"] == 1


def test_a_reading_that_hangs_is_waited_for_once_and_comes_back() -> None:
    go_on = threading.Event()

    def read() -> MetricReading[Values]:
        go_on.wait(30)
        return MetricReading({"iolens.client.read.bytes": {"lake": 7}})

    said: list[str] = []
    metrics = ServedMetrics({CLIENT: MetricCollector("client", read, 0.0, said.append)}, timeout_s=0.05)
    metrics.refresh(CLIENT)
    metrics.timeout_s = 60.0  # a second wait would be a minute
    metrics.refresh(CLIENT)
    assert own(metrics)["success"] == {"client": 0}
    assert "iolens.client.read.bytes" not in values_of(metrics)
    assert [line.split(" after")[0] for line in said] == ["client: no answer"]
    go_on.set()
    deadline = time.monotonic() + 60
    while values_of(metrics).get("iolens.client.read.bytes") != {"lake": 7}:
        assert time.monotonic() < deadline
        metrics.refresh(CLIENT)
    assert own(metrics)["success"] == {"client": 1}


# --- the system's Python ---

LOADED = """
import json, sys
sys.path.append(sys.argv[1])
import iolens.agent.pcp.__main__
own = [module.__file__ for name, module in sys.modules.items() if name.split(".")[0] == "iolens"]
others = {name.split(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - {"iolens", "__main__"}
print(json.dumps([own, sorted(others)]))
"""


def loaded() -> tuple[list[str], list[str]]:
    """Files of ours and names of others that the agent imports, in a Python without any installed package."""
    command = [sys.executable, "-I", "-S", "-c", LOADED, str(SOURCES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    own_files, others = json.loads(done.stdout)
    return own_files, others


def test_the_agent_needs_only_the_standard_library() -> None:
    own_files, others = loaded()
    assert others == []
    assert str(SOURCES / "iolens/sources/lustre/lustre_client_proc.py") in own_files


def test_what_the_agent_imports_is_written_as_python_3_9_reads_it() -> None:
    for file in loaded()[0]:
        ast.parse(Path(file).read_text(), file, feature_version=(3, 9))


# --- installation ---


def test_settings_come_through_the_script(tmp_path: Path) -> None:
    settings = PcpSettings(tmp_path, 401, 7, 0.25, 60.0, "lake", "-")
    assert parsed_settings(agent_words(settings)) == settings
    assert parsed_settings([]) == PcpSettings()


def test_what_is_installed(tmp_path: Path) -> None:
    folder = tmp_path / "pmda"
    done = iolens("export", "pcp", "--install", folder, "--domain", 401, "--root", "/copy")
    assert done.code == 0, done.err
    written = {path.name: path for path in folder.iterdir()}
    assert set(done.out.split()) == set(map(str, written.values()))
    assert written.keys() == {"pmdaiolens.python", "root", "pmcd.conf", "Install", "Remove"}
    assert written["root"].read_text() == "root {\n\tiolens\t401:*:*\n}\n"
    line = f"iolens\t401\tpipe\tbinary\t/usr/bin/python3 {folder}/pmdaiolens.python\n"
    assert written["pmcd.conf"].read_text() == line
    assert all(os.access(written[name], os.X_OK) for name in ("pmdaiolens.python", "Install", "Remove"))
    script = written["pmdaiolens.python"].read_text()
    ast.parse(script)
    assert "'--root', '/copy', '--domain', '401'" in script
    assert f"sys.path.append({str(SOURCES)!r})" in script
    for name in ("Install", "Remove"):
        checked = subprocess.run(["sh", "-n", str(written[name])], capture_output=True, text=True, check=False)
        assert checked.stderr == ""
        assert f"\npmda{name}\n" in written[name].read_text()


def test_the_agent_installs_itself_where_there_is_no_command(tmp_path: Path) -> None:
    agent = [sys.executable, "-I", "-S", "-c", "import sys; sys.path.append(sys.argv.pop(1)); "
             "from iolens.agent.pcp.__main__ import main; main()", str(SOURCES), "--install"]  # fmt: skip
    subprocess.run([*agent, str(tmp_path / "light"), "--jobs", "7"], check=True, capture_output=True, timeout=60)
    write_installation(tmp_path / "full", PcpSettings(jobs=7))
    for name in ("pmdaiolens.python", "root", "Install"):
        assert (tmp_path / "light" / name).read_text() == (tmp_path / "full" / name).read_text()
    refused = subprocess.run([*agent, str(tmp_path / "a b")], check=False, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"iolens: --install {tmp_path}/a b: pmcd.conf has no way")


@pytest.mark.parametrize(
    ("directory", "domain", "reason"),
    [
        ("with blank", 398, "no way to write a path with blanks"),
        ("pmda", 511, "PCP knows 1 to 510"),
        ("pmda", 0, "510"),
    ],
)
def test_what_pcp_could_not_read_is_not_written(tmp_path: Path, directory: str, domain: int, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        write_installation(tmp_path / directory, PcpSettings(domain=domain))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"--install .*/file/pmda: Not a directory"):
        write_installation(tmp_path / "file" / "pmda", PcpSettings())
