"""Logs of simulated runs are real: PyDarshan reads back what is true of each run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolens.analyses.runs.used_files import RunRecord
from iolens.errors import UsageError
from iolens.run_tables import rate_of
from iolens.simulator.darshan_jobs import truth_of
from iolens.simulator.darshan_logs import (
    heat_bins,
    log_name,
    many_runs,
    posix_records,
    record_id,
    write_log,
    write_many,
)
from iolens.simulator.darshan_runs import STRATEGIES, Strategy
from iolens.sources.darshan.isolated import rows_of_log
from iolens.units import MIB
from tests.simulator.stated_runs import NEEDS_DARSHAN, run_of

pytestmark = NEEDS_DARSHAN
WITH_FILES = tuple(strategy for strategy in STRATEGIES if strategy != "none")


def report_of(path: Path) -> Any:
    import darshan  # late: it takes a second

    return darshan.DarshanReport(str(path), read_all=True)


def total(report: Any, module: str, counter: str) -> float:
    """Sum of a counter over all records."""
    if module not in report.records:
        return 0
    frames = report.records[module].to_df()
    return float(frames["fcounters" if "_F_" in counter else "counters"][counter].sum())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_log_says_what_is_true_of_the_run(tmp_path: Path, strategy: Strategy) -> None:
    run = run_of(strategy)
    truth, report = truth_of(run), report_of(write_log(tmp_path, run))
    job = report.metadata["job"]
    assert (job["uid"], job["jobid"], job["nprocs"], job["log_ver"]) == (1234, 4711, 8, "3.41")
    assert (job["start_time_sec"], job["start_time_nsec"]) == (1_790_000_000, 250_000_000)
    assert job["run_time"] == pytest.approx(60.5)
    assert report.metadata["exe"] == "gyro"
    assert sorted(report.mounts) == [("/", "ext4"), ("/scratch", "lustre")]
    for name, counter in (("READ", "read_bytes"), ("WRITTEN", "write_bytes")):
        both = total(report, "POSIX", f"POSIX_BYTES_{name}") + total(report, "STDIO", f"STDIO_BYTES_{name}")
        assert both == getattr(truth, counter)
    for name in ("OPENS", "READS", "WRITES"):
        both = total(report, "POSIX", f"POSIX_{name}") + total(report, "STDIO", f"STDIO_{name}")
        assert both == getattr(truth, name.lower())
    for name, seconds in (("READ", truth.read_s), ("WRITE", truth.write_s), ("META", truth.metadata_s)):
        both = total(report, "POSIX", f"POSIX_F_{name}_TIME") + total(report, "STDIO", f"STDIO_F_{name}_TIME")
        assert both == pytest.approx(seconds)
    files = [name for name in report.name_records.values() if not name.startswith("heatmap:")]
    assert len(files) == truth.files


@pytest.mark.parametrize("strategy", WITH_FILES)
def test_bandwidth_by_the_slowest_rank_is_the_library_s_own(tmp_path: Path, strategy: Strategy) -> None:
    from darshan.backend.cffi_backend import accumulate_records

    run = run_of(strategy, printed_bytes=0)
    report = report_of(write_log(tmp_path, run))
    metrics = accumulate_records(report.records["POSIX"].to_df(), "POSIX", 8).derived_metrics
    assert metrics.agg_perf_by_slowest == pytest.approx(truth_of(run).mib_per_s)
    assert metrics.total_bytes == truth_of(run).read_bytes + truth_of(run).write_bytes


@pytest.mark.parametrize("strategy", WITH_FILES)
def test_the_rate_of_a_run_is_the_library_s_own_at_its_layer(tmp_path: Path, strategy: Strategy) -> None:
    """A collective run spends its time in MPI-IO, all others in POSIX."""
    from darshan.backend.cffi_backend import accumulate_records

    path = write_log(tmp_path, run_of(strategy, printed_bytes=0))
    module = "MPI-IO" if strategy == "collective" else "POSIX"
    metrics = accumulate_records(report_of(path).records[module].to_df(), module, 8).derived_metrics
    row = RunRecord.of(rows_of_log(path)).run
    assert rate_of(row).mib_per_s == pytest.approx(metrics.agg_perf_by_slowest)
    assert rate_of(row, "paper").mib_per_s == pytest.approx(truth_of(run_of(strategy, printed_bytes=0)).mib_per_s)
    assert (row["rate_s"] > row["slowest_rank_s"]) == (strategy == "collective")


RANKS = {
    "rank0": {0}, "subset": {0, 4}, "file_per_process": set(range(8)), "shared": {-1},
    "partially_shared": set(range(8)), "collective": {-1},
}  # fmt: skip


@pytest.mark.parametrize("strategy", WITH_FILES)
def test_files_are_opened_by_the_ranks_of_the_strategy(tmp_path: Path, strategy: Strategy) -> None:
    report = report_of(write_log(tmp_path, run_of(strategy)))
    counters = report.records["POSIX"].to_df()["counters"]
    assert set(counters["rank"]) == RANKS[strategy]
    per_file = Counter(counters["id"])
    assert set(per_file.values()) == {2 if strategy == "partially_shared" else 1}
    assert ("MPI-IO" in report.modules) == (strategy == "collective")
    lustre = {(record["id"], record["rank"]) for record in report.records["LUSTRE"].to_numpy()}
    assert lustre == {(record["id"], record["rank"]) for record in report.records["POSIX"].to_numpy()}


def test_a_collective_run_moves_the_same_bytes_through_both_interfaces(tmp_path: Path) -> None:
    run = run_of("collective")
    report = report_of(write_log(tmp_path, run))
    for name in ("READ", "WRITTEN"):
        assert total(report, "MPI-IO", f"MPIIO_BYTES_{name}") == total(report, "POSIX", f"POSIX_BYTES_{name}") > 0
    assert total(report, "MPI-IO", "MPIIO_COLL_OPENS") == 2 * 8
    assert total(report, "MPI-IO", "MPIIO_COLL_WRITES") >= 1600
    assert total(report, "POSIX", "POSIX_WRITES") == 2 * 4  # buffers of 16 MiB, and a part of one
    assert total(report, "MPI-IO", "MPIIO_INDEP_WRITES") == 0


@pytest.mark.parametrize("strategy", WITH_FILES)
@pytest.mark.parametrize("order", ["consecutive", "is_interleaved", "is_random"])
def test_counters_are_those_of_counting_access_by_access(strategy: Strategy, order: str) -> None:
    """Against a recount by the rules of darshan-posix.c, one access at a time."""
    run = run_of(strategy, is_interleaved=order == "is_interleaved", write_bytes=3 * MIB + 7, read_bytes=MIB,
                 transfer_bytes=3000)  # fmt: skip
    run = replace(run, is_random=order == "is_random")
    expected: dict[tuple[int, int], Counter[str]] = {}
    sizes: dict[tuple[int, int], Counter[int]] = {}
    for use in run.uses:
        key = (record_id(use.path), -1 if strategy in ("shared", "collective") else use.rank)
        counts = expected.setdefault(key, Counter())
        for word, accesses in (("READ", use.reads), ("WRITE", use.writes)):
            last = 0
            for part in accesses:
                for number in range(part.count):
                    offset = part.offset + (number * part.jump) % part.count * part.step
                    counts[f"POSIX_SEQ_{word}S"] += offset > last
                    counts[f"POSIX_CONSEC_{word}S"] += offset == last + 1
                    counts["POSIX_FILE_NOT_ALIGNED"] += offset % MIB != 0
                    counts[f"POSIX_{word}S"] += 1
                    counts[f"POSIX_SIZE_{word}_{size_bin(part.size)}"] += 1
                    last = offset + part.size - 1
                    highest = counts[f"POSIX_MAX_BYTE_{word.replace('WRITE', 'WRITTEN')}"]
                    counts[f"POSIX_MAX_BYTE_{word.replace('WRITE', 'WRITTEN')}"] = max(highest, last)
                sizes.setdefault(key, Counter())[part.size] += part.count
    records = {(record.record_id, record.rank): record for record in posix_records(run)}
    assert records.keys() == expected.keys()
    for key, counts in expected.items():
        assert {name: records[key].counters[name] for name in counts} == counts
        assert records[key].frequent["ACCESS"] == sizes.get(key, Counter())


def size_bin(size: int) -> str:
    edges = {
        100: "0_100",
        1 << 10: "100_1K",
        10 << 10: "1K_10K",
        100 << 10: "10K_100K",
        MIB: "100K_1M",
        4 * MIB: "1M_4M",
    }
    return next((name for edge, name in edges.items() if size <= edge), "4M_10M" if size <= 10 * MIB else "10M_100M")


def test_interleaved_ranks_are_sequential_not_consecutive(tmp_path: Path) -> None:
    run = run_of("shared", is_interleaved=True, read_bytes=0, write_bytes=8 * MIB, phases=1)
    report = report_of(write_log(tmp_path, run))
    assert total(report, "POSIX", "POSIX_WRITES") == 128
    assert total(report, "POSIX", "POSIX_SEQ_WRITES") == 127  # all but the first of rank 0
    assert total(report, "POSIX", "POSIX_CONSEC_WRITES") == 0
    assert total(report, "POSIX", "POSIX_STRIDE1_STRIDE") == 7 * 65536
    assert total(report, "POSIX", "POSIX_ACCESS1_ACCESS") == 65536
    assert total(report, "POSIX", "POSIX_ACCESS1_COUNT") == 128


def test_random_writes_jump_over_the_same_places(tmp_path: Path) -> None:
    """Each place is written once, most writes lie before the one before them."""
    run = run_of("shared", read_bytes=0, write_bytes=32 * MIB, transfer_bytes=4096, phases=1, printed_bytes=0)
    jumping = replace(run, is_random=True)
    for ordered, own in zip(run.uses, jumping.uses, strict=True):
        ((before,), (after,)) = ordered.writes, own.writes
        assert [after.place(number) for number in range(3)] != [before.place(number) for number in range(3)]
        assert sorted(map(after.place, range(after.count))) == list(map(before.place, range(before.count)))
    assert truth_of(jumping) == truth_of(run)
    share = total(report_of(write_log(tmp_path, jumping)), "POSIX", "POSIX_SEQ_WRITES") / 8192
    assert 0.37 < share < 0.39


def test_the_slowest_and_the_fastest_rank_of_a_shared_file(tmp_path: Path) -> None:
    run = run_of("shared", phases=1)
    report = report_of(write_log(tmp_path, run))
    spent = [use.io_s for use in run.uses]
    assert total(report, "POSIX", "POSIX_SLOWEST_RANK") == int(np.argmax(spent))
    assert total(report, "POSIX", "POSIX_FASTEST_RANK") == int(np.argmin(spent))
    assert total(report, "POSIX", "POSIX_F_SLOWEST_RANK_TIME") == pytest.approx(max(spent))
    assert total(report, "POSIX", "POSIX_F_VARIANCE_RANK_TIME") == pytest.approx(np.var(spent))
    assert min(spent) < max(spent) <= min(spent) * 1.2


@pytest.mark.parametrize("strategy", WITH_FILES)
def test_heat_maps_have_every_byte_within_the_time_of_its_files(tmp_path: Path, strategy: Strategy) -> None:
    run = run_of(strategy)
    report = report_of(write_log(tmp_path, run))
    width, bins = heat_bins(60.5)
    assert (width, bins) == (0.4, 152)
    for module, counters in (("POSIX", "POSIX"), ("STDIO", "STDIO"), ("MPIIO", "MPI-IO")):
        if counters not in report.records:
            assert module not in report.heatmaps
            continue
        heat = report.heatmaps[module]
        for direction, past in (("read", "READ"), ("write", "WRITTEN")):
            assert heat.to_df([direction]).to_numpy().sum() == total(report, counters, f"{module}_BYTES_{past}")
    posix = report.heatmaps["POSIX"].to_df(["write"]).to_numpy().sum(axis=0)
    half = 60.5 / 2
    assert posix[: int(0.05 * half / width)].sum() == 0
    assert posix[int(0.95 * half / width) + 1 : int(1.05 * half / width)].sum() == 0


def test_lustre_layouts_name_the_osts(tmp_path: Path) -> None:
    run = run_of("file_per_process", phases=1, osts=6)
    report = report_of(write_log(tmp_path, run))
    records = report.records["LUSTRE"].to_numpy()
    assert {len(record["components"]) for record in records} == {1}
    osts = {record["id"]: list(record["components"][0]["ost_ids"]) for record in records}
    assert osts == {record_id(work.path): list(work.osts) for work in run.files}
    assert set(truth_of(run).bytes_by_ost) == {0, 1, 2, 3, 4, 5}
    assert sum(truth_of(run).bytes_by_ost.values()) == 110 * MIB + 7


def test_dxt_has_every_access(tmp_path: Path) -> None:
    run = run_of("shared", has_dxt=True, nodes=["node0001", "node0002"], phases=1)
    report = report_of(write_log(tmp_path, run))
    records = report.records["DXT_POSIX"].to_numpy()
    assert {record["hostname"] for record in records} == {"node0001", "node0002"}
    assert sum(record["write_count"] for record in records) == total(report, "POSIX", "POSIX_WRITES")
    lengths = sum(segment["length"] for record in records for segment in record["write_segments"])
    assert lengths == 100 * MIB + 7


def test_logs_lie_where_darshan_puts_them(tmp_path: Path) -> None:
    path = write_log(tmp_path, run_of("rank0"))
    assert path.relative_to(tmp_path).parts[:3] == ("2026", "9", "21")
    assert path.name.startswith("ana_gyro_id4711-")
    assert write_log(tmp_path, run_of("rank0")) == path  # again


def test_many_small_logs_are_distinct_and_the_same_for_a_seed(tmp_path: Path) -> None:
    paths = [path.relative_to(tmp_path / "a") for path in write_many(tmp_path / "a", 30, seed=3)]
    written = dict(zip(paths, many_runs(30, seed=3), strict=True))
    again = [path.relative_to(tmp_path / "b") for path in write_many(tmp_path / "b", 30, seed=3)]
    assert list(written) == again
    assert len({(tmp_path / "a" / path).read_bytes() for path in written}) == 30
    assert all((tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes() for path in written)
    for path, run in written.items():
        report = report_of(tmp_path / "a" / path)
        assert total(report, "POSIX", "POSIX_BYTES_WRITTEN") + total(report, "STDIO", "STDIO_BYTES_WRITTEN") == (
            truth_of(run).write_bytes
        )
    assert {run.strategy for run in written.values()} == set(STRATEGIES)


@pytest.mark.parametrize(
    ("strategy", "changes", "message"),
    [
        ("shared", {"duration_s": 0.01}, "does not fit into a run of 0.010 s"),
        ("shared", {"duration_s": 0.09}, "needs .* s, more than 0.04"),
        ("subset", {"processes": 2}, "subset needs 2 or more ranks of 2"),
        ("partially_shared", {"subset_ranks": 8}, "not all: 8"),
        ("collective", {"subset_ranks": 9}, "9 aggregators"),
        ("some", {}, "no strategy is called 'some'"),
    ],
)
def test_what_cannot_be_is_refused(strategy: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        posix_records(run_of(strategy, **changes))


def test_the_name_of_a_log_is_that_of_its_run() -> None:
    assert log_name(run_of("rank0")) != log_name(run_of("rank0", job_id=4712))
