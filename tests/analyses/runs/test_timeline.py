"""Activity over time: bytes are neither lost nor doubled, bins and phases are where the I/O was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from iolens.analyses.runs.timeline import MOST_BINS, MOST_ROWS, run_timeline
from tests.analyses.runs.one_run import GIB, MIB, file_row, own_files, run_record


@dataclass(frozen=True)
class Traced:
    """As a trace gives accesses."""

    module: str
    rank: int
    direction: str
    length: NDArray[np.int64]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]


def traced(module: str, rank: int, direction: str, *accesses: tuple[int, float, float]) -> Traced:
    lengths, starts, ends = zip(*accesses, strict=True)
    return Traced(module, rank, direction, np.array(lengths), np.array(starts, float), np.array(ends, float))


def bin_row(**values: Any) -> dict[str, Any]:
    usual = {"module": "POSIX", "rank": 0, "ranks": 1, "bin": 0, "bin_s": 1.0, "read_bytes": 0, "write_bytes": 0}
    return {**usual, **values}


def test_bytes_of_records_are_spread_between_the_first_and_the_last_access() -> None:
    result = run_timeline(run_record())  # 16 ranks write 1 GiB each from 10 s to 20 s of 100 s
    assert result.origin == "records"
    assert result.bin_s == 0.5
    assert sum(result.write_bytes) == pytest.approx(16 * GIB, rel=1e-9)
    assert result.write_bytes[20:40] == [round(16 * GIB / 20)] * 20
    assert not any(result.write_bytes[:20] + result.write_bytes[40:])
    (phase,) = result.phases
    assert (phase.start_s, phase.end_s) == (10.0, 20.0)
    assert phase.mib_per_s == pytest.approx(1638.4)
    assert (phase.active_ranks, phase.active_ranks_pct) == (16, 100.0)
    assert result.mean_active_ranks_pct == 100.0
    assert result.coordinated is True
    assert result.active_time_pct == pytest.approx(10.0)


def test_the_heat_map_goes_before_records_and_keeps_its_bins() -> None:
    series = [bin_row(bin=3, write_bytes=500), bin_row(bin=4, rank=1, read_bytes=70), bin_row(module="MPI-IO", bin=9)]
    result = run_timeline(run_record(series=series, duration_s=10.0, processes=2))
    assert (result.origin, result.bins, result.bin_s, result.modules) == ("heatmap", 10, 1.0, ("POSIX",))
    assert result.write_bytes == [0, 0, 0, 500, 0, 0, 0, 0, 0, 0]
    assert result.read_bytes[4] == 70
    assert result.by_rank["write"][0, 3] == 500
    assert result.by_rank["read"][1, 4] == 70
    assert [(phase.start_s, phase.end_s) for phase in result.phases] == [(3.0, 5.0)]
    assert result.mean_active_ranks_pct == 50.0


def test_a_group_of_ranks_is_shared_out_among_them() -> None:
    series = [bin_row(rank=256, ranks=4, bin=0, write_bytes=400)]
    result = run_timeline(run_record(series=series, duration_s=2.0, processes=260))
    assert result.active_ranks == 4
    assert sum(result.write_bytes) == 400


def test_mpiio_counts_where_nothing_else_was_watched() -> None:
    result = run_timeline(run_record(series=[bin_row(module="MPI-IO", write_bytes=8)], duration_s=1.0))
    assert (result.modules, sum(result.write_bytes)) == (("MPI-IO",), 8)


def test_a_trace_is_read_chunk_by_chunk_and_mpiio_is_not_counted_again() -> None:
    def chunks() -> Iterator[Traced]:
        yield traced("MPI-IO", 0, "write", (MIB, 0.0, 1.0))
        yield traced("POSIX", 0, "write", (MIB, 0.0, 1.0), (MIB, 50.0, 50.0))
        yield traced("POSIX", 1, "read", (100, 99.9, 100.5))  # ends after the run, by the clock

    result = run_timeline(run_record(processes=2), chunks())
    assert (result.origin, result.modules) == ("dxt", ("POSIX",))
    assert sum(result.write_bytes) == 2 * MIB
    assert result.write_bytes[:3] == [MIB // 2, MIB // 2, 0]
    assert result.write_bytes[100] == MIB  # an access of no length in time is in one bin
    assert sum(result.read_bytes) == 100
    assert result.active_ranks == 2
    assert len(result.phases) == 3


def test_a_log_without_a_trace_says_so() -> None:
    result = run_timeline(run_record(), [])
    assert (result.phases, result.notes) == ([], ("the log has no traced access",))


@pytest.mark.parametrize(("ranks", "rows", "per_row"), [(1, 1, 1), (64, 64, 1), (128, 128, 1), (10_000, 127, 79)])
def test_many_ranks_are_grouped_into_rows(ranks: int, rows: int, per_row: int) -> None:
    result = run_timeline(run_record(own_files(ranks), processes=ranks))
    assert (len(result.first_ranks), result.ranks_per_row) == (rows, per_row)
    assert rows <= MOST_ROWS
    assert result.by_rank["write"].shape == (rows, MOST_BINS)
    assert sum(result.write_bytes) == pytest.approx(ranks * GIB, rel=1e-6)
    assert result.active_ranks == ranks


def test_shared_files_have_a_row_of_their_own_and_ranks_are_not_guessed() -> None:
    shared = file_row(record_id=99, rank=-1, ranks=16, write_bytes=3 * GIB, write_start_s=50.0, write_end_s=60.0)
    result = run_timeline(run_record([*own_files(), shared]))
    assert result.has_shared_row
    assert result.by_rank["write"].shape[0] == 17
    assert result.by_rank["write"][-1].sum() == pytest.approx(3 * GIB)
    assert result.mean_active_ranks_pct is None
    assert result.coordinated is None


def test_ranks_that_take_turns_are_not_coordinated() -> None:
    files = [
        file_row(record_id=rank, rank=rank, write_start_s=rank * 5.0, write_end_s=rank * 5.0 + 0.4)
        for rank in range(20)
    ]
    result = run_timeline(run_record(files, processes=20))
    assert result.mean_active_ranks_pct == pytest.approx(5.0)
    assert result.coordinated is False
    assert len(result.phases) == 20


def test_times_that_are_not_known_are_left_out() -> None:
    result = run_timeline(run_record([file_row(write_start_s=None, write_end_s=None)]))
    assert sum(result.write_bytes) == 0
    assert result.phases == []
