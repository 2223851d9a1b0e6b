"""What a Lustre client looks like to Prometheus: names of other exporters, sums over a mount, a reboot, damage."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from iolens.agent.exporter.clients import CounterPlace
from iolens.agent.exporter.metrics import OPENMETRICS, TEXT
from iolens.simulator.activity import Activity
from iolens.simulator.client_counters import CLIENT_VERSIONS
from iolens.simulator.client_tree import ClientTree, SimulatedClients
from iolens.simulator.workload import SIZES, load_workload
from tests.agent.exposition import Samples, exporter, matching, only, parsed
from tests.sources.lustre.client_trees import tree_2_15

START = 1350900000
TARGETS = ["scratch-OST0000", "scratch-OST0001", "scratch-OST0002", "scratch-MDT0000"]
NAME = 'a"}:# x.stats.{b\\'
MOST_SERIES = 400  # of a mount, as docs/prometheus.md promises


def clients(root: Path, version: str = "2.15", page_bytes: int = 4096, osts: int = 3) -> SimulatedClients:
    activity = Activity(load_workload("scratch"), osts, 5)
    return SimulatedClients(
        root, activity, 1, 1, start_s=START, versions=(version,), page_sizes=(page_bytes,), uptime_s=300
    )


def page(tree: ClientTree, **settings: object) -> Samples:
    return parsed(exporter(tree.root, **settings).page(TEXT).body)


def mount_labels(tree: ClientTree) -> Mapping[str, str]:
    return {"component": "client", "filesystem": "scratch", "target": f"scratch-{tree.mount}"}


def moved_bytes(tree: ClientTree, direction: int, ost: int | None = None) -> int:
    """By applications, caches included; to an OST, by RPCs."""
    counts = tree.counters.calls_by_size()[direction] if ost is None else tree.counters.rpcs[direction, :, ost]
    return int(sum(size * count for size, count in zip(SIZES, counts.tolist(), strict=True)))


@pytest.mark.parametrize("version", CLIENT_VERSIONS)
def test_bytes_calls_and_rpcs_are_those_of_the_node(tmp_path: Path, version: str) -> None:
    (tree,) = clients(tmp_path, version).trees
    samples, mount = page(tree), mount_labels(tree)
    calls = tree.counters.calls()
    for number, direction in enumerate(("read", "write")):
        moved, count = moved_bytes(tree, number), int(tree.counters.rpcs[number].sum())
        assert count > 1000
        assert only(samples, f"lustre_{direction}_bytes_total", operation=direction, **mount) == moved
        called = int(tree.counters.calls_by_size()[number].sum())
        assert only(samples, f"lustre_{direction}_samples_total", operation=direction, **mount) == called
        carried = sum(moved_bytes(tree, number, ost) for ost in range(tree.counters.rpcs.shape[2]))
        assert (
            only(samples, f"lustre_client_osc_{direction}_bytes_total", fs="scratch", target=mount["target"]) == carried
        )
        assert sum(matching(samples, "lustre_pages_per_rpc_total", operation=direction, **mount)) == count
        assert sum(matching(samples, "lustre_rpcs_in_flight", operation=direction, type="osc", **mount)) == count
        assert sum(matching(samples, "lustre_rpcs_offset", operation=direction, **mount)) == count
        assert only(samples, "lustre_client_osc_stats_total", operation=f"ost_{direction}") == count
    for name in ("open", "close", "getattr", "statfs"):
        assert only(samples, "lustre_stats_total", operation=name, **mount) == calls[name] > 0
    assert only(samples, "lustre_client_mdc_md_stats_requests_total", operation="close") == calls["close"]
    assert only(samples, "iolens_scrape_success", collector="clients") == 1
    assert only(samples, "iolens_scrape_problems", collector="clients") == 0
    assert list(matching(samples, "iolens_target_info")) == []  # a mount that is gone is no missing target
    assert sum(component == ("component", "client") for _, pairs in samples for component in pairs) < MOST_SERIES


@pytest.mark.parametrize("page_bytes", [4096, 65536])
def test_the_size_of_an_rpc_is_pages_times_page_size(tmp_path: Path, page_bytes: int) -> None:
    (tree,) = clients(tmp_path, page_bytes=page_bytes).trees
    samples, mount = page(tree), mount_labels(tree)
    assert only(samples, "iolens_client_page_bytes", **mount) == page_bytes
    reads = dict(zip(SIZES, tree.counters.rpcs[0].sum(axis=1).tolist(), strict=True))
    for bound in (65536, 1 << 20):
        below = only(samples, "iolens_client_rpc_size_bytes_bucket", direction="read", le=f"{bound}.0", **mount)
        assert below == sum(count for size, count in reads.items() if size <= bound)
    largest = only(samples, "lustre_pages_per_rpc_total", operation="read", size=str((1 << 20) // page_bytes), **mount)
    assert largest == reads[1 << 20]


def test_targets_have_series_of_their_own_when_asked_for(tmp_path: Path) -> None:
    (tree,) = clients(tmp_path).trees
    summed, single = page(tree), page(tree, client_targets=True)
    for ost in range(3):
        target = f"scratch-OST{ost:04x}-osc-{tree.mount}"
        assert only(single, "lustre_client_osc_write_bytes_total", target=target) == moved_bytes(tree, 1, ost) > 0
        rpcs = int(tree.counters.rpcs[1, :, ost].sum())
        for name in ("lustre_pages_per_rpc_total", "lustre_rpcs_in_flight", "lustre_rpcs_offset"):
            assert sum(matching(single, name, target=target, operation="write")) == rpcs
    mdc = f"scratch-MDT0000-mdc-{tree.mount}"
    assert only(single, "lustre_client_mdc_stats_total", target=mdc, operation="mds_close") > 0
    for name in ("lustre_pages_per_rpc_total", "lustre_client_osc_stats_total", "lustre_stats_total"):
        assert sum(matching(single, name)) == sum(matching(summed, name))
    assert only(single, "lustre_read_bytes_total", **mount_labels(tree)) == moved_bytes(tree, 0)


def test_a_reboot_begins_new_series(tmp_path: Path) -> None:
    simulated = clients(tmp_path)
    (tree,) = simulated.trees
    served = exporter(tree.root)
    before, old = parsed(served.page(TEXT).body), dict(mount_labels(tree))
    simulated.reboot(tree.name)
    simulated.advance_to(START + 60, TARGETS)
    after = parsed(served.page(TEXT).body)
    assert only(before, "lustre_write_bytes_total", **old) > moved_bytes(tree, 1) > 0
    assert list(matching(after, "lustre_write_bytes_total", **old)) == []
    assert only(after, "lustre_write_bytes_total", **mount_labels(tree)) == moved_bytes(tree, 1)


def test_a_counter_that_steps_back_by_itself_is_held(tmp_path: Path) -> None:
    """Prometheus would take it for a reset, and count all its opens since the mount once more."""
    (tree,) = clients(tmp_path).trees
    served = exporter(tree.root)
    before = only(parsed(served.page(TEXT).body), "lustre_stats_total", operation="open")
    path = next(tree.root.rglob("llite/*/stats"))
    path.write_text(path.read_text().replace(f"{int(before)} samples", f"{int(before) - 1} samples"))
    path.write_text(path.read_text().replace(f"{START}.", f"{START + 5}."))
    assert only(parsed(served.page(TEXT).body), "lustre_stats_total", operation="open") == before


def test_a_file_that_is_damaged_is_counted_and_the_rest_served(tmp_path: Path) -> None:
    (tree,) = clients(tmp_path).trees
    path = next(tree.root.rglob("osc/*OST0001*/rpc_stats"))
    path.write_text(path.read_text().replace("pages per rpc", "sheets per rpc"))
    samples = page(tree)
    assert only(samples, "iolens_scrape_problems", collector="clients") == 1
    assert only(samples, "lustre_read_bytes_total", **mount_labels(tree)) == moved_bytes(tree, 0)


def test_both_formats_and_our_names_alone(tmp_path: Path) -> None:
    (tree,) = clients(tmp_path).trees
    served = exporter(tree.root)
    text, open_metrics = (parsed(served.page(kind).body, kind) for kind in (TEXT, OPENMETRICS))
    inherited = {name for name, _ in text if name.startswith("lustre_")}
    assert inherited == {name for name, _ in open_metrics if name.startswith("lustre_")}
    assert len(inherited) == 16
    assert {name for name, _ in page(tree, inherited=False) if name.startswith("lustre_")} == set()
    assert only(page(tree, inherited=False), "iolens_client_page_bytes") == 4096


def test_a_server_without_mounts_has_no_client(tmp_path: Path) -> None:
    simulated = clients(tmp_path / "clients")
    shutil.rmtree(simulated.trees[0].root / "proc/fs")
    shutil.rmtree(simulated.trees[0].root / "sys")
    samples = page(simulated.trees[0])
    assert only(samples, "iolens_scrape_success", collector="clients") == 1
    assert not any(("component", "client") in pairs for _, pairs in samples)


def test_a_name_that_means_harm_is_escaped(tmp_path: Path) -> None:
    (tree,) = clients(tmp_path).trees
    for directory in [path for path in tree.root.rglob(f"*{tree.mount}*") if path.is_dir()]:
        directory.rename(directory.with_name(directory.name.replace("scratch", NAME)))
    samples = page(tree, client_targets=True)
    assert only(samples, "iolens_scrape_success", collector="clients") == 1
    assert only(samples, "lustre_read_bytes_total", filesystem=NAME) == moved_bytes(tree, 0)
    osc = f"{NAME}-OST0001-osc-{tree.mount}"
    assert only(samples, "lustre_client_osc_stats_total", target=osc, operation="ost_read") > 0
    assert sum(matching(samples, "lustre_rpcs_in_flight", target=osc, operation="read")) > 0


def test_histograms_that_no_metric_is_for_are_left_out(tmp_path: Path) -> None:
    """Latencies of RPCs, and calls by size."""
    samples = parsed(exporter(tree_2_15(tmp_path / "node")).page(TEXT).body)
    assert only(samples, "lustre_stats_total", component="client", operation="open") == 20
    assert only(samples, "iolens_scrape_problems", collector="clients") == 0


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("llite.stats@ff01", CounterPlace("llite", "", "stats", "ff01")),
        ("osc.fs-OST0000.rpc_stats@ff01", CounterPlace("osc", "fs-OST0000", "rpc_stats", "ff01")),
        ("osc.fs-OST0000.rpc_stats.offset_pages@", CounterPlace("osc", "fs-OST0000", "rpc_stats", "")),
        ("ldlm_cbd@", CounterPlace("ldlm_cbd", "", "", "")),
    ],
)
def test_names_of_counter_sets(name: str, place: CounterPlace) -> None:
    assert CounterPlace.of(name) == place
