"""The strategies of the study's Section 5, each from the numbers its text gives, and the edges between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from iolens.analyses.runs.used_files import STRATEGIES, strategies, strategy_of
from tests.analyses.runs.one_run import GIB, run_row

TIB = 1 << 40


def moved(pattern: str, amount: int = 16 * GIB, files: int = 1, **values: Any) -> dict[str, Any]:
    """All bytes are of files of one pattern."""
    nothing = {"unique_files": 0, "unique_write_bytes": 0}
    return {**nothing, f"{pattern}_files": files, f"{pattern}_write_bytes": amount, **values}


HIDDEN = {"io_ranks": None, "busiest_rank_bytes": None}  # shared records without a heat map

CASES: list[tuple[str, str | None, dict[str, Any]]] = [
    ("16 ranks with a file each", "file_per_process", {}),
    # 5.2, the faster: 4,096 processes, the first 512 do all I/O on partially shared files
    ("aggregation by 512 ranks", "subset", moved("partially_shared", 2 * TIB, processes=4096, io_ranks=512)),
    # 5.2, the slower: a single process reads 4 GiB for 2,048
    ("rank 0 reads", "rank0", moved("unique", 4 * GIB, processes=2048, io_ranks=1, busiest_rank_bytes=4 * GIB)),
    # 5.8: half of 2,048 processes, a unique file each
    ("half of the ranks", "subset", moved("unique", 11 * TIB, 1024, processes=2048, io_ranks=1024)),
    ("more than half", "file_per_process", moved("unique", 11 * TIB, 1025, processes=2048, io_ranks=1025)),
    # 5.10: 4 of 1,024 ranks
    ("four ranks", "subset", moved("shared", processes=1024, io_ranks=4, busiest_rank_bytes=4 * GIB)),
    ("shared", "shared", moved("shared")),
    ("shared, ranks hidden", "shared", moved("shared", **HIDDEN)),
    ("partially shared", "partially_shared", moved("partially_shared", files=4)),
    ("own files, ranks hidden", "file_per_process", HIDDEN),
    ("few own files, ranks hidden", "subset", moved("unique", files=2, **HIDDEN)),
    # 6, after tuning: one shared file by collective MPI-IO; POSIX sees the aggregators only
    (
        "collective",
        "collective",
        moved("shared", mpiio_write_bytes=16 * GIB, posix_write_bytes=0, collective_ops=51, independent_ops=49,
              io_ranks=1, busiest_rank_bytes=16 * GIB),
    ),
    (
        "half of the calls are collective",
        "shared",
        moved("shared", mpiio_write_bytes=16 * GIB, posix_write_bytes=0, collective_ops=50, independent_ops=50),
    ),
    ("collective, but few bytes", "file_per_process", {"mpiio_write_bytes": GIB, "collective_ops": 9}),
    ("90 % by one rank", "file_per_process", {"busiest_rank_bytes": 9 * 16 * GIB // 10}),
    ("a little more", "rank0", {"busiest_rank_bytes": 9 * 16 * GIB // 10 + GIB}),
    ("no bytes", "none", moved("unique", 0, 0, io_ranks=0)),
    ("only standard output", "none", moved("unique", 0, 0, write_bytes=495, io_ranks=None)),
    ("one process", "none", {"processes": 1, "io_ranks": 1}),
    ("processes not known", None, {"processes": None}),
    ("bytes not known", None, {"unique_write_bytes": None}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "values"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_one_run(name: str | None, values: dict[str, Any]) -> None:
    assert strategy_of(run_row(**values))[0] == name


def test_many_runs_at_once_are_named_as_one_by_one() -> None:
    runs = [run_row(**values) for _, _, values in CASES]
    columns = {
        name: np.ma.MaskedArray([run[name] or 0 for run in runs], [run[name] is None for run in runs])
        for name in runs[0]
        if not isinstance(runs[0][name], str)
    }
    assert strategies(columns).tolist() == [name for _, name, _ in CASES]


def test_every_name_has_a_case() -> None:
    assert {name for _, name, _ in CASES} == {None, *(strategy.name for strategy in STRATEGIES)}


def test_evidence_stands_beside_the_name() -> None:
    name, seen = strategy_of(run_row(**moved("shared", 15 * GIB, unique_write_bytes=GIB)))
    assert name == "shared"
    assert seen["shared_pct"] == pytest.approx(93.75)
    assert seen["unique_pct"] == pytest.approx(6.25)
    assert seen["io_ranks"] == 16
    assert seen["collective_pct"] is None  # no MPI-IO at all
