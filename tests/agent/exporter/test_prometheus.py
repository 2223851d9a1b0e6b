"""What a Lustre server looks like to Prometheus: FSU, the names operators use, resets, damage, and what it costs."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from iolens.agent.exporter.fsu import ChosenCalibration, TenMinutes, busy_seconds
from iolens.agent.exporter.lustre import LustreTargets
from iolens.agent.exporter.metrics import (
    METRICS,
    OPENMETRICS,
    OURS,
    TEXT,
    Lines,
    add,
    content_type,
    labels,
    render,
    takes_gzip,
)
from iolens.agent.exporter.readings import collectors
from iolens.agent.sampling.sampler import STATUS_FILE, Health
from iolens.config import DeviceRule
from iolens.models.transaction_time import GRACE_2012, CalibrationState, counter_costs, histogram_costs
from iolens.schema import size_column
from iolens.simulator.client_tree import SimulatedClients
from iolens.simulator.lustre_tree import Tree
from iolens.simulator.workload import load_workload
from tests.agent.exposition import Samples, exporter, matching, only, parsed
from tests.hostile_names import HOSTILE, SOURCES_OF_TROUBLE

MIB = 1 << 20
T0 = 1_600_000_000
OST = "scratch-OST0000"
DOCS = Path(__file__).parents[3] / "docs" / "prometheus.md"
MOST_SERIES_PER_TARGET = 700  # as docs/prometheus.md promises, jobs apart


def brw(second: float, sizes: dict[str, tuple[int, int]], start: int = T0 - 100, times: str = "") -> str:
    rows = "".join(f"{label}:\t{read} 0 0 | {write} 0 0\n" for label, (read, write) in sizes.items())
    return (
        f"snapshot_time: {second:.6f} secs.usecs\nstart_time: {start}.0 secs.usecs\n\n"
        f"            read      |     write\ndisk I/O size  ios % cum % | ios % cum %\n{rows}\n{times}"
    )


def stats(second: float, read: int, written: int, start: int = T0 - 100) -> str:
    return (
        f"snapshot_time {second:.6f} secs.usecs\nstart_time {start}.0 secs.usecs\n"
        f"read_bytes {read} samples [bytes] {MIB} {MIB} {read * MIB}\n"
        f"write_bytes {written} samples [bytes] 4096 4096 {written * 4096}\n"
    )


def plant(root: Path, target: str, *, brw_stats: str | None = None, stats: str | None = None) -> None:
    files = {
        f"sys/kernel/debug/lustre/osd-ldiskfs/{target}/brw_stats": brw_stats,
        f"proc/fs/lustre/obdfilter/{target}/stats": stats,
    }
    for name, text in files.items():
        if text is not None:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)


def page(root: Path, **settings: object) -> Samples:
    return parsed(exporter(root, **settings).page(TEXT).body)


def test_the_paper_s_second_has_an_fsu_of_20_93(tmp_path: Path) -> None:
    served = exporter(tmp_path, jobs=0)
    plant(tmp_path, OST, brw_stats=brw(T0, {"4K": (0, 0), "1M": (0, 0)}))
    before = parsed(served.page(TEXT).body)
    assert list(matching(before, "iolens_fsu_percent")) == []  # one reading is no interval

    plant(tmp_path, OST, brw_stats=brw(T0 + 1, {"4K": (0, 100), "1M": (50, 0)}))
    after = parsed(served.page(TEXT).body)
    labels = {"filesystem": "scratch", "target": OST, "component": "ost", "model": "histogram"}
    assert only(after, "iolens_fsu_percent", **labels) == pytest.approx(20.93, abs=0.005)
    assert only(after, "iolens_target_busy_seconds_total", **labels) == pytest.approx(0.2093, abs=0.00005)
    assert only(after, "iolens_target_busy_seconds_total", calibration="grace-2012") == pytest.approx(0.2093, abs=5e-5)
    assert only(after, "iolens_calibration_info", calibration="grace-2012", borrowed="true") == 1


def exported(root: Path, state: CalibrationState, *fsu_pct: float, tick_s: float = 60.0) -> Samples:
    """The page after readings of one OST with such FSU each, by writes of 4 KiB."""
    clock = [0.0]
    chosen = ChosenCalibration(GRACE_2012, borrowed=False, state=state)
    targets = LustreTargets.of(root, lambda _: chosen)
    targets.utilization.now_s = lambda: clock[0]
    done = 0.0
    for number, pct in enumerate((0.0, *fsu_pct)):
        done += tick_s * pct / 100 / GRACE_2012.write.seconds(4096)
        clock[0] = T0 + number * tick_s
        plant(root, OST, brw_stats=brw(clock[0], {"4K": (0, round(done))}))
        lines = targets.read().metrics
    return parsed(render([lines], TEXT))


@pytest.mark.parametrize(
    ("levels", "is_refuted"),
    [
        ([500.0] * 8, False),  # eight minutes
        ([20.0] * 9 + [1000.0] + [20.0] * 9, False),  # a minute of 1,000 %, a mean of 118
        ([119.0] * 20, False),
        ([50.0] * 5 + [130.0] * 10, True),
        ([130.0] * 10 + [5.0] * 60, True),  # once shown, an hour does not unsay it
    ],
)
@pytest.mark.parametrize("state", [CalibrationState.MEASURED, CalibrationState.ASSUMED])
def test_a_mean_over_ten_minutes_that_no_disk_can_do_refutes_the_calibration(
    tmp_path: Path, levels: list[float], is_refuted: bool, state: CalibrationState
) -> None:
    samples = exported(tmp_path, state, *levels)
    assert only(samples, "iolens_calibration_refuted", filesystem="scratch", model="histogram") == is_refuted
    has_ceiling = bool(list(matching(samples, "iolens_fsu_ceiling_percent")))
    assert has_ceiling is (state is CalibrationState.MEASURED and not is_refuted)


def test_ten_minutes_with_gaps_refute_nothing_below_nine_minutes_of_readings(tmp_path: Path) -> None:
    assert only(exported(tmp_path, CalibrationState.CLASS, 500.0, tick_s=530.0), "iolens_calibration_refuted") == 0
    assert only(exported(tmp_path, CalibrationState.CLASS, 500.0, tick_s=900.0), "iolens_calibration_refuted") == 1


def test_the_mean_is_that_of_the_osts(tmp_path: Path) -> None:
    """One of two OSTs alone does not refute, as in every answer about a file system; MDTs are left out."""
    means = TenMinutes()
    for minute in range(1, 11):
        means.add(60.0, 120.0)
        means.add(60.0, 6.0)
        means.end_reading(60.0 * minute)
    assert not means.is_refuting
    plant(tmp_path, "scratch-MDT0000", brw_stats=brw(T0, {"4K": (0, 0)}))
    targets = LustreTargets.of(tmp_path, lambda _: ChosenCalibration(GRACE_2012, borrowed=False))
    targets.read()
    plant(tmp_path, "scratch-MDT0000", brw_stats=brw(T0 + 600, {"4K": (0, 10**7)}))
    samples = parsed(render([targets.read().metrics], TEXT))
    assert only(samples, "iolens_fsu_percent", component="mdt") > 120
    assert only(samples, "iolens_calibration_refuted") == 0


def test_busy_seconds_never_fall_while_the_counts_grow() -> None:
    costs = histogram_costs(GRACE_2012)
    counters = {name: 10**15 + 7 * number for number, name in enumerate(costs)}
    last = busy_seconds(counters, costs)
    for name in costs:
        counters[name] += 1
        assert busy_seconds(counters, costs) >= last
        last = busy_seconds(counters, costs)


def test_a_device_s_busy_seconds_come_from_operations_and_bytes() -> None:
    counts = {"read_ops": 50, "read_bytes": 50 * MIB, "write_ops": 100, "write_bytes": 409_600, "busy_us": 5}
    assert busy_seconds(counts, counter_costs(GRACE_2012)) == pytest.approx(0.2093, abs=0.00005)


@pytest.mark.parametrize("version", ["1.8", "2.10", "2.12", "2.15"])
def test_every_version_in_both_formats(tmp_path: Path, version: str) -> None:
    tree = Tree(tmp_path / "root", version, load_workload("scratch"), start_s=T0, osts=3, mdts=1, seed=2)
    served = exporter(tree.root, interval_s=1e6)
    text = parsed(served.page(TEXT).body)
    openmetrics = parsed(served.page(OPENMETRICS).body, OPENMETRICS)
    own = re.compile("process_|iolens_scrape_")
    assert {key: value for key, value in text.items() if not own.match(key[0])} == {
        key: value for key, value in openmetrics.items() if not own.match(key[0])
    }
    assert text.keys() == openmetrics.keys()

    for number, target in enumerate(tree.names[:3]):
        counts = tree._osts[target].counts
        here = {"target": target, "component": "ost", "filesystem": "scratch"}
        for side, direction in enumerate(("read", "write")):
            assert sum(matching(text, "lustre_disk_io_total", operation=direction, **here)) == counts[side].sum()
            assert only(text, "iolens_disk_io_size_bytes_count", direction=direction, **here) == counts[side].sum()
            assert only(text, f"lustre_{direction}_samples_total", **here) == counts[side].sum()
            assert only(text, "iolens_disk_io_time_seconds_count", direction=direction, **here) == counts[side].sum()
        busy_s = (counts * tree.activity.seconds).sum()
        assert only(text, "iolens_target_busy_seconds_total", **here) == pytest.approx(busy_s, rel=1e-9), number
    assert only(text, "lustre_stats_total", component="mdt", operation="open") > 0
    assert only(text, "lustre_capacity_kilobytes", component="mdt") == 1 << 30
    assert only(text, "recovery_status", kind="OST", target="scratch-OST0000") == 0
    assert only(text, "iolens_scrape_success", collector="lustre") == 1
    assert len(list(matching(text, "iolens_target_info"))) == 4


def test_the_labels_are_the_declared_ones_and_the_documented_ones(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "root", "2.15", load_workload("scratch"), start_s=T0, osts=2, mdts=1, seed=2)
    (tree.root / "proc/diskstats").write_text("   8       0 sda 100 0 800 10 100 0 800 10 0 20 20\n")
    (tree.root / "sys/fs/lustre/obdfilter/scratch-OST0000/recovery_status").parent.mkdir(parents=True, exist_ok=True)
    SimulatedClients(tmp_path / "clients", tree.activity, 1, 1, start_s=T0, versions=("2.15",))
    shutil.copytree(tmp_path / "clients/node0001", tree.root, dirs_exist_ok=True)
    spool = tmp_path / "spool"
    spool.mkdir()
    Health("oss1", "run").write(spool)
    served = exporter(tree.root, spool=spool, devices=DeviceRule())
    served.page(TEXT)
    tree.advance_to(T0 + 60)
    samples = parsed(served.page(TEXT).body)
    seen = set()
    for name, pairs in samples:
        metric = METRICS.get(name) or METRICS[re.sub("_(bucket|count|sum)$", "", name)]
        assert {label for label, _ in pairs} - {"le"} == set(metric.labels), name
        seen.add(metric.name)
    rare = {"recovery_status_time_remaining_seconds", "lustre_block_maps_milliseconds_total"}
    later = {"iolens_disk_ios_in_flight_total"}
    assert METRICS.keys() - seen == rare | later


def test_ios_in_flight_of_2_17_have_a_name_of_their_own(tmp_path: Path) -> None:
    """Powers of two are not mixed with the linear rows that dashboards know; a tree of 2.17 has no problem."""
    Tree(tmp_path / "root", "2.17", load_workload("scratch"), start_s=T0, osts=1, mdts=1, seed=2)
    samples = parsed(exporter(tmp_path / "root").page(TEXT).body)
    sizes = {int(dict(pairs)["size"]) for name, pairs in samples if name == "iolens_disk_ios_in_flight_total"}
    assert sizes
    assert all(size & (size - 1) == 0 for size in sizes)
    assert not [name for name, _ in samples if name == "lustre_disk_io"]
    assert {value for (name, _), value in samples.items() if name == "iolens_scrape_problems"} <= {0}


def test_every_metric_is_documented() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", DOCS.read_text("utf-8"), re.MULTILINE))
    assert rows.keys() >= METRICS.keys()
    for metric in METRICS.values():
        cells = [cell.strip() for cell in rows[metric.name].split("|")]
        assert cells[0] == metric.kind
        assert set(re.findall(r"`(\w+)`", cells[1])) == set(metric.labels), metric.name
        assert metric.origin in (OURS, cells[3]), metric.name


def test_only_our_own_names_where_another_exporter_runs(tmp_path: Path) -> None:
    Tree(tmp_path / "root", "2.15", load_workload("scratch"), start_s=T0, osts=1, mdts=1)
    names = {name for name, _ in page(tmp_path / "root", inherited=False)}
    assert {name for name in names if not name.startswith(("iolens_", "process_"))} == set()
    assert "iolens_target_busy_seconds_total" in names


def test_buckets_are_cumulative_and_the_sum_is_the_upper_bound(tmp_path: Path) -> None:
    times = (
        "            read      |     write\nI/O time (1/1000s)  ios % cum % | ios % cum %\n"
        "1:\t3 0 0 | 0 0 0\n2:\t0 0 0 | 0 0 0\n4:\t2 0 0 | 1 0 0\n131072:\t1 0 0 | 0 0 0\n\n"
    )
    sizes = {"4": (5, 0), "4K": (0, 7), "1M": (2, 1), "128M": (0, 3)}
    plant(tmp_path, OST, brw_stats=brw(T0, sizes, times=times))
    samples = page(tmp_path)
    size, took = "iolens_disk_io_size_bytes", "iolens_disk_io_time_seconds"
    written = {"direction": "write"}
    assert only(samples, f"{size}_bucket", le="2048.0", **written) == 0
    assert only(samples, f"{size}_bucket", le="4096.0", **written) == 7
    assert only(samples, f"{size}_bucket", le=f"{MIB}.0", **written) == 8
    assert only(samples, f"{size}_bucket", le=f"{64 * MIB}.0", **written) == 8
    assert only(samples, f"{size}_bucket", le="+Inf", **written) == only(samples, f"{size}_count", **written) == 11
    assert only(samples, f"{size}_sum", **written) == 7 * 4096 + MIB
    assert only(samples, "iolens_disk_ios_outside_total", **written) == 3
    assert only(samples, "iolens_disk_ios_outside_total", direction="read") == 5
    assert only(samples, f"{took}_bucket", le="0.001", direction="read") == 3
    assert only(samples, f"{took}_bucket", le="0.004", direction="read") == 5
    assert only(samples, f"{took}_bucket", le="65.536", direction="read") == 5
    assert only(samples, f"{took}_count", direction="read") == 6
    assert only(samples, f"{took}_sum", direction="write") == pytest.approx(0.004)
    assert only(samples, "lustre_io_time_milliseconds_total", operation="read", size="4") == 2
    assert only(samples, "lustre_io_time_milliseconds_total", operation="read", size="2") == 0


def test_a_counter_that_steps_back_a_little_is_held(tmp_path: Path) -> None:
    """Prometheus would take the step for a reset and count everything since boot as new."""
    served = exporter(tmp_path, jobs=0)
    plant(tmp_path, OST, stats=stats(T0, 1000, 500), brw_stats=brw(T0, {"4K": (900, 500), "1M": (1000, 1)}))
    parsed(served.page(TEXT).body)
    back = stats(T0 + 5, 1000, 600).replace("read_bytes 1000 ", "read_bytes 999 ")
    plant(tmp_path, OST, stats=back, brw_stats=brw(T0 + 5, {"4K": (900, 600), "1M": (999, 1)}))
    samples = parsed(served.page(TEXT).body)
    assert only(samples, "lustre_read_samples_total") == 1000
    assert only(samples, "lustre_write_samples_total") == 600
    assert only(samples, "lustre_disk_io_total", operation="read", size=str(MIB)) == 1000
    plant(tmp_path, OST, stats=stats(T0 + 10, 1003, 600), brw_stats=brw(T0 + 10, {"4K": (900, 600), "1M": (1003, 1)}))
    samples = parsed(served.page(TEXT).body)
    assert only(samples, "lustre_read_samples_total") == 1003
    assert only(samples, "iolens_fsu_percent") == pytest.approx(100 / 5 * 3 * (8.02e-4 + 1.23e-9 * MIB))


def test_a_reset_is_passed_on_and_only_what_came_after_it_is_load(tmp_path: Path) -> None:
    served = exporter(tmp_path, jobs=0)
    plant(tmp_path, OST, stats=stats(T0, 1000, 500), brw_stats=brw(T0, {"4K": (0, 500), "1M": (1000, 0)}))
    before = parsed(served.page(TEXT).body)
    late = brw(T0 + 5, {"4K": (0, 20), "1M": (10, 0)}, start=T0 + 2)
    plant(tmp_path, OST, stats=stats(T0 + 5, 10, 20, start=T0 + 2), brw_stats=late)
    after = parsed(served.page(TEXT).body)
    busy_s = 20 * (1.04e-3 + 1.73e-9 * 4096) + 10 * (8.02e-4 + 1.23e-9 * MIB)
    assert only(after, "iolens_target_busy_seconds_total") == pytest.approx(busy_s)
    assert only(after, "iolens_target_busy_seconds_total") < only(before, "iolens_target_busy_seconds_total")
    assert only(after, "iolens_fsu_percent") == pytest.approx(100 * busy_s / 5)
    assert only(after, "lustre_read_bytes_total") == 10 * MIB
    assert only(after, "iolens_target_start_timestamp_seconds") == T0 + 2


def test_a_clock_that_is_set_back_begins_anew(tmp_path: Path) -> None:
    served = exporter(tmp_path, jobs=0)
    for second, count in ((T0, 100), (T0 - 3600, 200), (T0 - 3590, 300)):
        plant(tmp_path, OST, brw_stats=brw(second, {"4K": (0, count)}))
        samples = parsed(served.page(TEXT).body)
        assert only(samples, "lustre_disk_io_total", operation="write", size="4096") == count
    assert only(samples, "iolens_fsu_percent") == pytest.approx(100 / 10 * 100 * (1.04e-3 + 1.73e-9 * 4096))


def test_nothing_new_keeps_the_last_fsu(tmp_path: Path) -> None:
    served = exporter(tmp_path, jobs=0)
    for second, count in ((T0, 0), (T0 + 5, 100)):
        plant(tmp_path, OST, brw_stats=brw(second, {"4K": (0, count)}))
        first = parsed(served.page(TEXT).body)
    assert only(parsed(served.page(TEXT).body), "iolens_fsu_percent") == only(first, "iolens_fsu_percent") > 0


def test_an_fsu_of_long_ago_is_not_served(tmp_path: Path) -> None:
    """A target that prints the same for minutes, such as a copy of a server, says nothing of now; counters stay."""
    clock = [1000.0]
    targets = LustreTargets.of(tmp_path, lambda _: ChosenCalibration(GRACE_2012, borrowed=True))
    targets.utilization.now_s = lambda: clock[0]
    for second, count in ((T0, 0), (T0 + 5, 100)):
        plant(tmp_path, OST, brw_stats=brw(second, {"4K": (0, count)}))
        first = targets.read().metrics
    for waited_s, is_served in ((59.0, True), (61.0, False), (300 * 86_400.0, False)):
        clock[0] = 1000.0 + waited_s
        lines = targets.read().metrics
        assert lines.get("iolens_fsu_percent") == (first["iolens_fsu_percent"] if is_served else None), waited_s
        assert lines["iolens_target_busy_seconds_total"] == first["iolens_target_busy_seconds_total"]


def test_a_target_that_leaves_and_returns_is_measured_from_its_return(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "root", "2.15", load_workload("scratch"), start_s=T0, osts=2, mdts=0, seed=3)
    served = exporter(tree.root, jobs=0)
    served.page(TEXT)
    tree.advance_to(T0 + 60)
    assert len(list(matching(parsed(served.page(TEXT).body), "iolens_fsu_percent"))) == 2
    tree.drop("scratch-OST0001")
    tree.advance_to(T0 + 120)
    gone = parsed(served.page(TEXT).body)
    assert list(matching(gone, "iolens_target_info", target="scratch-OST0001")) == []
    tree.add("scratch-OST0001")
    tree.advance_to(T0 + 180)
    back = parsed(served.page(TEXT).body)
    assert list(matching(back, "iolens_fsu_percent", target="scratch-OST0001")) == []
    assert only(back, "iolens_target_busy_seconds_total", target="scratch-OST0001") < 60


def test_a_server_without_targets_is_well_but_empty(tmp_path: Path) -> None:
    samples = page(tmp_path)
    assert only(samples, "iolens_scrape_success", collector="lustre") == 1
    assert list(matching(samples, "iolens_target_info")) == []


def test_a_root_that_is_missing_is_a_failure_of_its_collector(tmp_path: Path) -> None:
    samples = page(tmp_path / "nowhere")
    assert only(samples, "iolens_scrape_success", collector="lustre") == 0
    assert only(samples, "iolens_build_info", version="1.2.3") == 1


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda text: "", id="empty"),
        pytest.param(lambda text: text[: len(text) // 2], id="cut"),
        pytest.param(lambda text: text.replace("1M:", "1M: 1 1 1 | x"), id="no number"),
        pytest.param(lambda text: "\0\xff\x01" * 300, id="binary"),
        pytest.param(lambda text: text.replace("disk I/O size", "disk I/O smell"), id="unknown section"),
    ],
)
def test_damage_costs_one_target_and_is_counted(tmp_path: Path, damage: object) -> None:
    whole = brw(T0, {"4K": (0, 100), "1M": (50, 0)})
    plant(tmp_path, "scratch-OST0000", brw_stats=damage(whole), stats=stats(T0, 1, 1))  # type: ignore[operator]
    plant(tmp_path, "scratch-OST0001", brw_stats=whole, stats=stats(T0, 1, 1))
    samples = page(tmp_path)
    assert list(matching(samples, "iolens_target_busy_seconds_total", target="scratch-OST0000")) == []
    assert only(samples, "iolens_target_busy_seconds_total", target="scratch-OST0001") == pytest.approx(
        0.2093, abs=5e-5
    )
    assert only(samples, "lustre_read_samples_total", target="scratch-OST0000") == 1
    assert only(samples, "iolens_scrape_problems", collector="lustre") >= 1


def test_crlf_and_the_largest_numbers(tmp_path: Path) -> None:
    largest = 2**64 - 1
    plant(tmp_path, OST, brw_stats=brw(T0, {"1M": (largest, 0)}).replace("\n", "\r\n"))
    body = exporter(tmp_path).page(TEXT).body
    assert only(parsed(body), "lustre_disk_io_total", operation="read", size=str(MIB)) == largest
    assert b"nan" not in body.lower()
    assert b" inf" not in body.lower()


def test_names_that_are_not_text_do_not_break_the_page(tmp_path: Path) -> None:
    odd = os.fsdecode(b'a"\\\xff-OST0000')
    plant(tmp_path, odd, stats=stats(T0, 1, 1))
    samples = parsed(exporter(tmp_path).page(OPENMETRICS).body, OPENMETRICS)
    assert only(samples, "lustre_read_samples_total", target='a"\\\\udcff-OST0000') == 1


def test_a_target_has_a_bounded_number_of_series(tmp_path: Path) -> None:
    """Every histogram with every row that any Lustre prints, and rows that none does."""
    head = "            read      |     write\n{title}  {unit} % cum % | {unit} % cum %\n{rows}\n"
    linear = "".join(f"{row}:\t1 0 0 | 1 0 0\n" for row in range(300))
    powers = "".join(f"{1 << row}:\t1 0 0 | 1 0 0\n" for row in range(62))
    titles = {
        "pages per bulk r/w": ("rpcs", powers), "discontiguous pages": ("rpcs", linear),
        "discontiguous blocks": ("rpcs", linear), "disk fragmented I/Os": ("ios", linear),
        "disk I/Os in flight": ("ios", linear), "I/O time (1/1000s)": ("ios", powers),
        "block maps msec": ("maps", powers),
    }  # fmt: skip
    sections = "".join(head.format(title=title, unit=unit, rows=rows) for title, (unit, rows) in titles.items())
    sizes = {str(1 << row): (1, 1) for row in range(62)}
    served = exporter(tmp_path)
    for second in (T0, T0 + 5):
        plant(tmp_path, OST, brw_stats=brw(second, sizes, times=sections), stats=stats(second, 1, 1))
        samples = parsed(served.page(TEXT).body)
    of_target = [series for series in samples if ("target", OST) in series[1]]
    assert 500 < len(of_target) <= MOST_SERIES_PER_TARGET
    assert only(samples, "iolens_scrape_problems", collector="lustre") > 1000  # the rows that are no Lustre's


def test_counts_go_through_unchanged_for_real_servers(shared_data: Path) -> None:
    """Bytes and disk I/Os of every OST in the captured trees, read here by the simplest means."""
    checked = 0
    for root in sorted((shared_data / "lustre-server-proc").glob("*-[12].*")):
        samples = parsed(exporter(root).page(OPENMETRICS).body, OPENMETRICS)
        for path in root.glob("proc/fs/lustre/obdfilter/*-OST*/stats"):
            moved = dict(re.findall(r"^(\w+) +\d+ samples \[bytes\] \d+ \d+ (\d+)", path.read_text(), re.MULTILINE))
            for name, total in moved.items():
                assert only(samples, f"lustre_{name}_total", target=path.parent.name) == float(total)
                checked += 1
        for target in {dict(pairs)["target"] for name, pairs in samples if name == "lustre_disk_io_total"}:
            (path,) = [*root.glob(f"**/osd-*/{target}/brw_stats"), *root.glob(f"**/obdfilter/{target}/brw_stats")][:1]
            rows = re.findall(r"^(\d+)([KM]?):\s+(\d+)\s+\d+\s+\d+\s+\| (\d+)", _sizes(path.read_text()), re.MULTILINE)
            for number, unit, read, written in rows:
                size = str(int(number) * {"": 1, "K": 1024, "M": MIB}[unit])
                if size_column("read", int(size)) in histogram_costs(GRACE_2012):
                    result = [
                        only(samples, "lustre_disk_io_total", target=target, operation=direction, size=size)
                        for direction in ("read", "write")
                    ]
                    assert result == [float(read), float(written)]
                    checked += 1
    assert checked > 50


def _sizes(text: str) -> str:
    return text.partition("disk I/O size")[2].partition("\n\n")[0]


def test_block_devices_have_fsu_beside_the_kernel_s_busy(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    proc.mkdir()
    served = exporter(tmp_path, devices=DeviceRule(), jobs=0)
    (device,) = [collector for collector in served.collectors if collector.name == "devices"] or [None]
    assert device is None  # nothing to read when it started

    line = "   8       0 sda {ops} 0 {sectors} 10 0 0 0 0 0 {busy_ms} 20\n"
    (proc / "diskstats").write_text(line.format(ops=100, sectors=800, busy_ms=1000))
    (proc / "sys/kernel").mkdir(parents=True)
    (proc / "sys/kernel/hostname").write_text("oss1\n")
    served = exporter(tmp_path, devices=DeviceRule(), jobs=0)
    first = parsed(served.page(TEXT).body)
    labels = {"component": "device", "filesystem": "oss1", "target": "oss1:sda", "model": "counters"}
    busy_s = 100 * 8.02e-4 + 800 * 512 * 1.23e-9
    assert only(first, "iolens_target_busy_seconds_total", **labels) == pytest.approx(busy_s)
    (proc / "diskstats").write_text(line.format(ops=200, sectors=1600, busy_ms=1000))
    second = parsed(served.page(TEXT).body)
    assert only(second, "iolens_target_busy_seconds_total", **labels) == pytest.approx(2 * busy_s)
    assert only(second, "iolens_fsu_percent", **labels) > 0
    assert only(second, "iolens_device_kernel_busy_percent", target="oss1:sda") == 0
    assert not [name for name, _ in second if name.startswith("node_")]


def test_the_agent_s_health(tmp_path: Path) -> None:
    health = Health("oss1", "20260101-abc", time=T0 * 1_000_000, ticks=12, late_ticks=3, spool_bytes=4096, cpu_s=1.5)
    health.trouble = "store away"
    health.write(tmp_path)
    samples = page(tmp_path, spool=tmp_path)
    assert only(samples, "iolens_agent_last_tick_timestamp_seconds") == T0
    assert only(samples, "iolens_agent_ticks_total") == 12
    assert only(samples, "iolens_agent_late_ticks_total") == 3
    assert only(samples, "iolens_agent_spool_bytes") == 4096
    assert only(samples, "iolens_agent_cpu_seconds_total") == 1.5
    assert only(samples, "iolens_agent_trouble") == 1
    assert only(samples, "iolens_agent_info", host="oss1", run="20260101-abc") == 1
    assert only(samples, "iolens_scrape_success", collector="agent") == 1


@pytest.mark.parametrize("text", [None, "", "{", "[1]", "\0\xff", '"x"'])
def test_a_status_file_that_is_none_fails_its_collector_only(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / STATUS_FILE).write_text(text, "latin-1")
    samples = page(tmp_path, spool=tmp_path)
    assert only(samples, "iolens_scrape_success", collector="agent") == 0
    assert only(samples, "iolens_scrape_success", collector="lustre") == 1
    assert not [name for name, _ in samples if name.startswith("iolens_agent_")]


def test_a_status_file_with_odd_values_is_taken_as_far_as_it_goes(tmp_path: Path) -> None:
    (tmp_path / STATUS_FILE).write_text(
        json.dumps({"ticks": "many", "refused": float("nan"), "targets": 3, "time": -1})
    )
    samples = page(tmp_path, spool=tmp_path)
    assert only(samples, "iolens_agent_targets") == 3
    assert list(matching(samples, "iolens_agent_ticks_total")) == []
    assert list(matching(samples, "iolens_agent_last_tick_timestamp_seconds")) == []
    assert only(samples, "iolens_scrape_problems", collector="agent") >= 3


def test_readings_are_kept_for_the_interval(tmp_path: Path) -> None:
    served = exporter(tmp_path, interval_s=1000.0, jobs=0)
    plant(tmp_path, OST, brw_stats=brw(T0, {"4K": (0, 1)}))
    first = parsed(served.page(TEXT).body)
    plant(tmp_path, OST, brw_stats=brw(T0 + 5, {"4K": (0, 2)}))
    again = parsed(served.page(TEXT).body)
    assert only(again, "lustre_disk_io_total", operation="write", size="4096") == 1
    ages = [only(page, "iolens_scrape_age_seconds", collector="lustre") for page in (first, again)]
    assert ages == sorted(ages)


def test_jobs_are_not_read_when_nobody_wants_them(tmp_path: Path) -> None:
    settings = exporter(tmp_path, jobs=0).settings
    assert [collector.name for collector in collectors(settings, lambda line: None)] == ["lustre", "clients"]


def test_a_compressed_page_is_the_same_page(tmp_path: Path) -> None:
    plant(tmp_path, OST, brw_stats=brw(T0, {"4K": (0, 1)}))
    served = exporter(tmp_path, interval_s=1000.0)
    packed = gzip.decompress(served.page(TEXT, compress=True).body)
    assert parsed(packed).keys() == parsed(served.page(TEXT).body).keys()


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/plain", TEXT),
        ("application/openmetrics-text", OPENMETRICS),
        ("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", OPENMETRICS),
        ("application/openmetrics-text;version=1.0.0;q=0.3, text/plain;q=0.9", TEXT),
        ("application/openmetrics-text;version=7.0.0", TEXT),
        ("application/openmetrics-text;q=0", TEXT),
        ("application/openmetrics-text;q=nan", TEXT),
        (";;;,,=,q=;", TEXT),
    ],
)  # fmt: skip
def test_the_format_is_the_one_asked_for(accept: str, expected: str) -> None:
    assert content_type(accept) == expected


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", False),
        ("gzip", True),
        ("deflate, gzip;q=0.5", True),
        ("gzip;q=0", False),
        ("br", False),
        ("gzip;q=x", False),
    ],
)
def test_gzip_only_for_those_who_read_it(accept: str, expected: bool) -> None:
    assert takes_gzip(accept) is expected


@pytest.mark.parametrize("content_type_", [TEXT, OPENMETRICS])
@pytest.mark.parametrize("name", SOURCES_OF_TROUBLE, ids=list(HOSTILE))
def test_hostile_names_are_the_value_of_their_label_and_nothing_else(name: str, content_type_: str) -> None:
    """Read back by the official client: the same text, but for bytes that are none."""
    lines: Lines = {}
    add(lines, METRICS["iolens_jobs"], labels(component="ost", filesystem=name), 3)
    add(lines, METRICS["iolens_jobs"], labels(component="mdt", filesystem="plain"), 4)
    page = render([lines], content_type_)
    result = parsed(page, content_type_)
    same = name.encode("utf-8", "backslashreplace").decode()
    assert only(result, "iolens_jobs", filesystem=same, component="ost") == 3
    assert len(result) == 2
