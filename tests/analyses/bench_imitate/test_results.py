"""How near an imitation comes: ratios to the record, and the sentences that say them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from iolens.analyses.bench_imitate import imitation_distance, imitation_result
from iolens.models.ior_parameters import ImitatedFiles, Imitation, IorParameters, RecordedWork
from iolens.units import MIB

RUN = IorParameters(
    api="POSIX", tasks=4, transfer_bytes=MIB, block_bytes=100 * MIB, segments=1, file_per_process=False, write=True,
    read=True,
)  # fmt: skip


def imitation(*recorded: RecordedWork, mib_per_s: float | None = 1000.0) -> Imitation:
    runs = tuple(ImitatedFiles("files", RUN, (), work, 100 / len(recorded)) for work in recorded)
    return Imitation("darshan", runs, (), (), mib_per_s)


def row(run: int, iteration: int, direction: str, mib: float, seconds: float, **more: Any) -> dict[str, Any]:
    return {
        "run_id": f"imitate-1/here/run={run}/{iteration}/0", "place": "here", "iteration": iteration,
        "direction": direction, "bytes": round(mib * MIB), "operations": round(mib), "duration_s": seconds, **more,
    }  # fmt: skip


def ratios(lines: Any, place: str = "planned", run: int | None = 1) -> dict[str, float]:
    return {line.quantity: line.ratio for line in lines if line.place == place and line.run == run}


def test_ratios_are_imitated_by_recorded() -> None:
    lines = imitation_distance(RecordedWork(0, 1000, 20, 4), RecordedWork(0, 900, 30, 4))
    assert ratios(lines) == {"bytes": 0.9, "operations": 1.5, "bytes_per_operation": 0.6, "files": 1.0}


def test_of_a_share_of_the_job_ratios_are_of_that_share() -> None:
    lines = imitation_distance(RecordedWork(1000, 0, 20, 4), RecordedWork(100, 0, 2, 1), 0.1)
    assert ratios(lines) == {"bytes": 1.0, "operations": 1.0, "bytes_per_operation": 1.0}


def test_what_is_not_on_record_has_no_ratio() -> None:
    assert ratios(imitation_distance(RecordedWork(0, 1000, None, None), RecordedWork(0, 900, 30, 4))) == {"bytes": 0.9}


def test_before_anything_is_run_the_parameters_are_compared() -> None:
    result = imitation_result("job 1", imitation(RecordedWork(400 * MIB, 400 * MIB, 1000, 1)), [["ior"]])
    assert ratios(result.nearness) == {"bytes": 1.0, "operations": 0.8, "bytes_per_operation": 1.25, "files": 1.0}
    assert result.words == (
        "by its parameters IOR does 100 % of the bytes, 80 % of the operations, 125 % of the bytes per operation,"
        " 100 % of the files",
    )
    assert result.measured == ()


def test_a_smaller_run_is_compared_with_its_share() -> None:
    smaller = RUN.scaled(0.1, most_tasks=2)
    rows = [
        row(1, repeat, direction, 40, seconds)
        for repeat in range(3)
        for direction, seconds in (("write", 0.06), ("read", 0.04))
    ]
    result = imitation_result("job 1", imitation(RUN.work), [], [smaller], rows)
    assert ratios(result.nearness, "here") == {"bytes": 1.0, "operations": 1.0, "bytes_per_operation": 1.0}
    assert ratios(result.nearness, "here", None) == {"mib_per_s": pytest.approx(0.8)}
    assert result.words[1:] == (
        "on here IOR did, of the 10 % that it was to do, 100 % of the bytes, 100 % of the operations, 100 % of the"
        " bytes per operation",
        "on here IOR did 800 MiB/s, 80 % of the job's 1,000 MiB/s",
        "run 1 was made with 2 of 4 tasks and 10 % of the bytes: its amounts are compared with that share",
    )


def test_mib_per_s_are_of_all_runs_one_after_another_and_of_whole_repetitions() -> None:
    rows = [row(1, 0, "write", 100, 1.0), row(2, 0, "read", 300, 1.0), row(1, 1, "write", 100, 1.0)]
    result = imitation_result("job 1", imitation(RUN.work, RUN.work), [], [RUN, RUN], rows)
    assert ratios(result.nearness, "here", None) == {"mib_per_s": pytest.approx(0.2)}


def test_the_sentence_is_of_the_run_that_is_farthest_off() -> None:
    far = replace(RUN.work, operations=1600)
    result = imitation_result("job 1", imitation(RUN.work, far), [])
    assert result.words == (
        "by its parameters IOR does 100 % of the bytes, 50 % of the operations, 200 % of the bytes per operation,"
        " 100 % of the files in run 2, the farthest off",
    )


def test_nearly_all_is_not_all() -> None:
    result = imitation_result("job 1", imitation(replace(RUN.work, operations=801)), [])
    assert "99.88 % of the operations" in result.words[0]
    nearly = imitation_result("job 1", imitation(RecordedWork(0, RUN.moved_bytes + 1, 800, 1)), [])
    assert nearly.words[0].startswith("by its parameters IOR does just under 100 % of the bytes")


def test_rows_without_columns_do_no_harm() -> None:
    bare = [{"place": "here"}, {"run_id": "imitate-1/here/run=1/0/0", "place": "here", "direction": "write"}]
    result = imitation_result("job 1", imitation(RUN.work), [], [RUN], bare)
    assert ratios(result.nearness, "here", None) == {}
    assert ratios(result.nearness, "here")["bytes"] == 0.0
