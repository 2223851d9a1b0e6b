"""Before and after: the study's Fig. 14 from its printed times, and what is gone or new."""

from __future__ import annotations

from typing import Any

import pytest

from iolens.analyses.runs.compare import MEASURES, run_comparison
from iolens.analyses.runs.summary import RunSummary, run_summary
from tests.analyses.runs.one_run import GIB, file_row, run_record

STUDY = {  # two checkpoints of 20 GiB by 8,192 nodes
    "processes": 8192, "nodes": 8192, "write_bytes": 40 * GIB, "unique_write_bytes": 40 * GIB, "io_ranks": 8192,
    "unique_files": 16384, "files": 16384, "opens": 64, "busiest_writer_bytes": GIB, "busiest_rank_bytes": GIB,
}  # fmt: skip


def page(**values: Any) -> RunSummary:
    return run_summary(run_record(**{**STUDY, **values}))


ORIGINAL = page(slowest_rank_s=728.0, metadata_s=8192 * 700.0, write_s=8192 * 20.0)
PRECREATED = page(slowest_rank_s=25.0, metadata_s=8192 * 1.0, write_s=8192 * 20.0)
COLLECTIVE = run_summary(
    run_record(
        [file_row(rank=-1, ranks=8192, write_bytes=40 * GIB)],
        **{
            **STUDY, "unique_files": 0, "unique_write_bytes": 0, "shared_files": 1, "shared_write_bytes": 40 * GIB,
            "mpiio_write_bytes": 40 * GIB, "collective_ops": 16384, "slowest_rank_s": 17.0, "files": 1,
            "metadata_s": 8192.0, "write_s": 8192 * 16.0, "opens": 8192,
        },
    )
)  # fmt: skip


@pytest.mark.parametrize(("after", "factor"), [(PRECREATED, 29.1), (COLLECTIVE, 42.8)])
def test_the_factors_of_the_study_from_its_times(after: RunSummary, factor: float) -> None:
    result = run_comparison([ORIGINAL], [after])
    assert result.io_time_factor == pytest.approx(factor, abs=0.05)
    rates = next(line for line in result.measures if line.name == "mib_per_s_per_node")
    assert rates.factor == pytest.approx(factor, abs=0.05)
    assert result.same_work is True


def test_findings_that_are_gone_new_and_kept() -> None:
    result = run_comparison([ORIGINAL], [COLLECTIVE])
    assert [item.code for item in result.findings_gone] == ["file-per-process", "metadata-bound"]
    assert (result.findings_new, result.findings_kept) == ([], [])
    back = run_comparison([COLLECTIVE], [ORIGINAL])
    assert [item.code for item in back.findings_new] == ["file-per-process", "metadata-bound"]
    same = run_comparison([ORIGINAL], [ORIGINAL])
    assert [item.code for item in same.findings_kept] == ["file-per-process", "metadata-bound"]
    assert same.io_time_factor == 1.0
    assert (result.before.strategies, result.after.strategies) == (["file_per_process"], ["collective"])


def test_groups_are_compared_by_their_medians() -> None:
    runs = [page(slowest_rank_s=seconds) for seconds in (10.0, 20.0, 90.0)]
    result = run_comparison(runs, [page(slowest_rank_s=5.0)])
    line = next(line for line in result.measures if line.name == "slowest_rank_s")
    assert (line.before, line.after, line.factor) == (20.0, 5.0, 0.25)
    assert result.before.runs == 3


def test_what_one_side_does_not_know_has_no_factor() -> None:
    result = run_comparison([page(nodes=None)], [page()])
    line = next(line for line in result.measures if line.name == "mib_per_s_per_node")
    assert line.before is None
    assert line.after is not None
    assert line.factor is None


def test_other_amounts_of_data_are_not_the_same_work() -> None:
    assert run_comparison([page()], [page(write_bytes=36 * GIB)]).same_work is False
    assert run_comparison([page()], [page(write_bytes=37 * GIB)]).same_work is True
    assert run_comparison([page()], [page(write_bytes=0)]).same_work is False


def test_every_measure_is_in_the_table() -> None:
    assert [line.name for line in run_comparison([ORIGINAL], [ORIGINAL]).measures] == [*MEASURES]
