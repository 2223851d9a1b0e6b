"""The page of one run: measures by their definitions, findings from the run's own records, and what is not known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from iolens.analyses.runs.finding_inputs import finding_inputs
from iolens.analyses.runs.like_runs import like_rates
from iolens.analyses.runs.summary import run_summary
from iolens.analyses.runs.used_files import RunColumns, used_files
from iolens.findings import rule_codes
from iolens.findings.rule import LIKE_RUNS, STUDY
from iolens.run_tables import access_column
from tests.analyses.runs.one_run import GIB, MIB, file_row, own_files, run_record, run_row


def codes(**values: Any) -> list[str]:
    return [finding.code for finding in run_summary(run_record(**values)).findings]


def test_measures_are_those_of_the_definitions() -> None:
    run = run_summary(run_record(), nodes=4)
    assert run.mib_per_s == pytest.approx(16 * 1024 / 10)  # bytes ÷ time of the slowest rank
    assert run.mib_per_s_per_node == pytest.approx(16 * 1024 / 10 / 4)
    assert run.io_time_pct == pytest.approx(100 * 160 / (16 * 100))  # Σ(md + r + w) ÷ (processes · runtime)
    assert run.slowest_rank_io_pct == pytest.approx(10.0)
    assert run.metadata_time_pct == pytest.approx(100 * 8 / 160)
    assert (run.sequential_pct, run.aligned_pct) == (100.0, 100.0)
    assert run.io_core_hours == pytest.approx(160 / 3600)
    assert run.strategy == "file_per_process"


def test_misaligned_and_random_shares_have_posix_accesses_as_their_whole() -> None:
    run = run_summary(run_record(misaligned_ops=4096, sequential_writes=8192))
    assert run.aligned_pct == pytest.approx(75.0)
    assert run.sequential_pct == pytest.approx(50.0)


def test_nodes_that_nobody_knows_give_no_rate_per_node() -> None:
    assert run_summary(run_record()).mib_per_s_per_node is None
    assert run_summary(run_record(nodes=2)).mib_per_s_per_node == pytest.approx(819.2)
    assert run_summary(run_record(nodes=2), nodes=8).nodes == 8  # what is given goes before what the log names


def test_a_run_without_io_has_nothing_to_divide_by() -> None:
    nothing = {name: 0 for name in run_row() if name.endswith("_bytes")}
    run = run_summary(run_record([], slowest_rank_s=0.0, write_s=0.0, metadata_s=0.0, posix_writes=0, **nothing))
    assert (run.mib_per_s, run.metadata_time_pct, run.sequential_pct) == (None, None, None)
    assert run.strategy == "none"
    assert run.top_files == []


def test_what_is_not_in_the_log_is_not_evaluated() -> None:
    lacking = {name: None for name in run_row() if name.startswith(("posix_", "sequential_", "misaligned"))}
    lacking |= {access_column(direction, upper): None for direction in ("read", "write") for upper in (100, MIB)}
    without = {name: None for name in run_row() if name.startswith(("read_accesses", "write_accesses"))}
    run = run_summary(run_record(**lacking | without))
    assert run.access_sizes is None
    assert {"small-accesses", "misaligned", "random-access"} <= {item.code for item in run.not_evaluated}
    judged = {finding.code for finding in run.findings}
    assert judged.isdisjoint(item.code for item in run.not_evaluated)


def test_rules_of_clients_are_not_passed_over() -> None:
    missing = {item.code: item.reason for item in run_summary(run_record()).not_evaluated}
    assert set(missing) == {"below-stripe", "client-cache", "slow-ost", "small-rpcs", "stat-storm", "stripe"}
    assert "Lustre module" in missing["stripe"]


def test_a_shared_file_hides_the_slowest_rank_where_files_overlap_or_the_log_is_old() -> None:
    slow: dict[str, Any] = {"slowest_rank_s": 90.0}
    assert "rank-imbalance" in codes(**slow)
    for values in ({"shared_files_overlap": True}, {"slowest_rank_method": "open_lastio"}):
        run = run_summary(run_record(**slow, **values))
        assert "rank-imbalance" in {item.code for item in run.not_evaluated}


def test_a_single_writer_is_known_by_its_rank() -> None:
    assert "single-writer" in codes(busiest_writer_bytes=16 * GIB)
    (finding,) = [
        item for item in run_summary(run_record(busiest_writer_bytes=16 * GIB)).findings if item.code == "single-writer"
    ]
    assert finding.message == "100 % of 17.2 GB were written by one of 16 ranks: rank 3"
    hidden = run_summary(run_record(busiest_writer_bytes=None, busiest_writer=None))
    assert "single-writer" in {item.code for item in hidden.not_evaluated}


def test_small_and_misaligned_accesses_are_noticed() -> None:
    small = {access_column("write", MIB): 0, access_column("write", 1024): 16384, "misaligned_ops": 16000}
    assert {"small-accesses", "misaligned"} <= set(codes(**small))


def test_records_of_a_file_are_put_together() -> None:
    """One file: POSIX by two ranks, MPI-IO shared, HDF5 above; and its stripes."""
    files = [
        file_row(record_id=7, rank=0, path="/s/out/a.h5", read_bytes=2 * GIB, read_s=8.0, extent_bytes=GIB),
        file_row(record_id=7, rank=1, path="/s/out/a.h5", read_bytes=GIB, extent_bytes=GIB // 2),
        file_row(
            record_id=7, module="MPI-IO", rank=-1, ranks=16, path="/s/out/a.h5", independent_writes=300, write_bytes=9
        ),
        file_row(record_id=7, module="H5F", rank=-1, ranks=16, write_bytes=None),
        file_row(record_id=7, module="LUSTRE", rank=-1, ranks=16, write_bytes=None, stripe_count=1, stripe_bytes=MIB),
        file_row(record_id=-9, module="H5D", rank=-1),
    ]
    record = run_record(files)
    (file,) = used_files(record.files, 16).chosen(used_files(record.files, 16).ranks > 0)
    assert (file.path, file.interface, file.ranks) == ("/s/out/a.h5", "hdf5", 2)
    assert (file.read_bytes, file.write_bytes, file.extent_bytes) == (3 * GIB, 2 * GIB, GIB)
    assert (file.independent_ops, file.stripe_count, file.stripe_bytes) == (300, 1, MIB)
    noticed = {finding.code: finding for finding in run_summary(record).findings}
    assert noticed["redundant-reads"].evidence["times"] == pytest.approx(3.0)
    assert "lfs setstripe -c 8 /s/out`" in noticed["stripe"].remedy


def test_a_shared_record_stands_for_all_ranks() -> None:
    shared = file_row(rank=-1, ranks=16, path="/s/out/big", extent_bytes=200 * GIB)
    lustre = file_row(module="LUSTRE", rank=-1, ranks=16, stripe_count=1, write_bytes=None)
    mpiio = file_row(
        module="MPI-IO", rank=-1, ranks=16, independent_reads=10, independent_writes=90, collective_writes=5
    )
    run = run_summary(run_record([shared, lustre, mpiio]))
    noticed = {finding.code: finding for finding in run.findings}
    assert noticed["no-collectives"].evidence["independent_ops"] == 100
    assert "lfs setstripe -c 72 /s/out`" in noticed["stripe"].remedy
    assert run.top_files[0].ranks == 16


def test_small_pieces_of_a_block_are_asked_to_grow_not_to_be_aligned() -> None:
    """4 KiB each, where a block of the file system has 1 MiB: all are misaligned, and none could be aligned."""
    small = {access_column("write", MIB): 0, access_column("write", 10240): 16384, "key_access_bytes": 4096}
    blocks = own_files(alignment_bytes=MIB)
    run = run_summary(run_record(blocks, **small, misaligned_ops=16384))
    assert [finding.code for finding in run.findings] == ["small-accesses"]
    (item,) = [item for item in run.not_evaluated if item.code == "misaligned"]
    assert "4,096 bytes, is smaller than a block, 1,048,576 bytes" in item.reason


def test_files_through_stdio_count_but_not_standard_streams() -> None:
    stdio = {"module": "STDIO", "writes": 1000}
    moved = {"write_bytes": 2 * GIB, "stdio_write_bytes": 2 * GIB, "posix_write_bytes": 0}
    run = run_summary(run_record([file_row(**stdio, path="/scratch/out/log", write_bytes=2 * GIB)], **moved))
    (finding,) = [finding for finding in run.findings if finding.code == "stdio"]
    assert finding.message == "100 % of 2.15 GB went through STDIO; files: 1"
    streams = [file_row(**stdio, path="<STDOUT>", write_bytes=2 * GIB)]
    assert "stdio" not in {finding.code for finding in run_summary(run_record(streams, **moved)).findings}


def test_bytes_written_again_and_again_are_noticed() -> None:
    files = [file_row(write_bytes=16 * GIB, written_extent_bytes=GIB, writes=16384)]
    (finding,) = run_summary(run_record(files)).findings
    assert (finding.code, finding.evidence["times"]) == ("redundant-writes", 16.0)


def test_bytes_of_a_rank_are_those_that_it_asked_mpiio_for() -> None:
    """Aggregators write for all: uneven below MPI-IO, even above it."""
    posix = file_row(rank=-1, ranks=16, write_bytes=16 * GIB, slowest_rank_bytes=8 * GIB, fastest_rank_bytes=0)
    mpiio = file_row(
        rank=-1, ranks=16, module="MPI-IO", write_bytes=16 * GIB, slowest_rank_bytes=GIB, fastest_rank_bytes=GIB
    )
    (finding,) = run_summary(run_record([posix])).findings
    assert (finding.code, finding.evidence["times"]) == ("uneven-bytes", 8.0)
    assert run_summary(run_record([posix, mpiio])).findings == ()


def test_accesses_smaller_than_a_stripe_are_noticed() -> None:
    files = [file_row(writes=2000, **{access_column("write", MIB): 2000})]
    lustre = [file_row(module="LUSTRE", write_bytes=None, stripe_count=4, stripe_bytes=4 * MIB)]
    (finding,) = run_summary(run_record([*files, *lustre])).findings
    assert (finding.code, finding.severity) == ("below-stripe", "info")
    assert finding.message == "100 % of 2,000 writes are 1 MiB or less, on files with stripes of 4 MiB"


def test_opens_of_each_process_are_counted_by_file() -> None:
    inputs = finding_inputs(run_row(), "shared", used_files(run_record([file_row(rank=-1, ranks=16)]).files, 16))
    assert inputs["file_uses"] == 16
    assert finding_inputs(run_row(), "shared")["access_sizes"]["write"][MIB] == 16384


def test_more_than_ten_opens_of_a_file_by_one_process() -> None:
    assert "many-opens" not in codes(opens=160)
    assert "many-opens" in codes(opens=161)


def test_files_with_most_time_stand_first() -> None:
    files = [*own_files(12), file_row(record_id=99, rank=3, path="/scratch/slow", write_s=50.0)]
    top = run_summary(run_record(files)).top_files
    assert len(top) == 10
    assert (top[0].path, top[0].io_s) == ("/scratch/slow", 50.5)


def test_the_gain_is_that_of_like_runs_where_there_are_enough() -> None:
    bound = {"metadata_s": 150.0, "write_s": 10.0}  # 94 % of the I/O time
    enough = like_rates([1000.0, 2000.0, 3000.0, 4000.0, 5000.0])
    run = run_summary(run_record(**bound), like=enough)
    assert {finding.code for finding in run.findings} == {"metadata-bound", "file-per-process"}
    for finding in run.findings:
        assert finding.estimated_gain == pytest.approx(4000 / 1638.4)
        assert finding.gain_from == LIKE_RUNS
    assert like_rates([1000.0] * 4) is None
    assert run.like_runs == enough


def test_without_like_runs_the_gain_is_that_of_the_study_in_its_situation() -> None:
    large = {"processes": 2048, "io_ranks": 2048, "unique_files": 2048, "metadata_s": 19e3, "write_s": 1e3}
    gains = {item.code: (item.estimated_gain, item.gain_from) for item in run_summary(run_record(**large)).findings}
    assert gains["file-per-process"] == (pytest.approx(42.82, abs=0.01), STUDY)
    assert gains["metadata-bound"] == (None, None)
    slower = like_rates([100.0] * 5)  # this run is already faster than they are
    again = {item.code: item.gain_from for item in run_summary(run_record(**large), like=slower).findings}
    assert again == {"file-per-process": STUDY, "metadata-bound": None}


def test_every_rule_is_judged_or_named() -> None:
    run = run_summary(run_record())
    silent = set(rule_codes()) - {item.code for item in run.not_evaluated}
    assert silent == {
        "file-per-process", "many-opens", "metadata-bound", "misaligned", "no-collectives", "random-access",
        "rank-imbalance", "redundant-reads", "redundant-writes", "single-writer", "small-accesses", "stdio",
        "uneven-bytes",
    }  # fmt: skip
    assert run.findings == ()


def test_ranks_are_summed_up() -> None:
    ranks = [{"rank": rank, "read_bytes": rank, "write_bytes": 10, "bytes_from": "heatmap"} for rank in range(4)]
    activity = run_summary(run_record(ranks=ranks)).ranks
    assert activity is not None
    assert (activity.known, activity.least_bytes, activity.most_bytes, activity.busiest_rank) == (4, 10, 13, 3)
    assert (activity.median_bytes, activity.bytes_from) == (11.5, "heatmap")
    assert run_summary(run_record()).ranks is None


def test_incomplete_modules_are_named() -> None:
    run = run_summary(run_record(partial=True, incomplete_modules="POSIX,STDIO"))
    assert run.incomplete_modules == ("POSIX", "STDIO")
    assert run_summary(run_record()).incomplete_modules == ()


def test_columns_come_as_sources_and_stores_give_them() -> None:
    values = {"ints": np.array([1, 2]), "masked": np.ma.MaskedArray([1, 2], [False, True]), "list": [None, 2.5]}
    columns = RunColumns(2, {**values, "all": 7, "name": "x", "none": None})
    assert columns.numbers("ints").tolist() == [1.0, 2.0]
    assert columns.numbers("all").tolist() == [7.0, 7.0]
    for name in ("masked", "list", "none", "absent"):
        assert np.isnan(columns.numbers(name)).any()
    assert columns.sums("masked", "list").tolist() == [1.0, 2.5]
    assert columns.texts("name").tolist() == ["x", "x"]
    assert columns.where(np.array([False, True])).numbers("ints").tolist() == [2.0]
    assert columns.where(np.array([False, True])).numbers("all").tolist() == [7.0]
