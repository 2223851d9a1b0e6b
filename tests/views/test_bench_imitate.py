"""Tables of an imitation: parameters as the study prints them, evidence, the rest, and how near it came."""

from __future__ import annotations

from dataclasses import replace

from iolens.analyses.bench_imitate import ImitationResult, imitation_result
from iolens.api.studies import shown_commands
from iolens.benchmarks.imitation.run_imitation import imitation_of_run
from iolens.units import MIB
from iolens.views.bench_imitate import evidence, left_out, nearness, parameters, tables
from tests.analyses.bench_imitate.test_results import row
from tests.benchmarks.imitation.made_records import moved, record, run


def planned() -> ImitationResult:
    """An input that all read, a checkpoint of each of eight ranks, and a little of another."""
    records = [
        record(1, **moved("read", 64, MIB, pieces=8)),
        *(record(100 + rank, rank, **moved("write", 512, MIB)) for rank in range(8)),
        record(2, 0, **moved("write", 10, 100)),
    ]
    made = imitation_of_run(run(8, read_bytes=64 * MIB, write_bytes=4096 * MIB, slowest_rank_s=4.0), records)
    return imitation_result("4711", made, shown_commands([item.parameters for item in made.runs], None))


def measured() -> ImitationResult:
    """The same, an eighth of it run."""
    whole = planned()
    smaller = [item.parameters.scaled(1 / 8) for item in whole.imitation.runs]
    rows = [row(1, 0, "write", 512, 1.0), row(2, 0, "read", 8, 0.5)]
    return imitation_result("4711", whole.imitation, whole.commands, smaller, rows)


def test_each_run_of_ior_has_its_parameters() -> None:
    table = parameters(planned())
    columns = [column.name for column in table.columns]
    first, second = (dict(zip(columns, cells, strict=True)) for cells in table.rows)
    assert (first["what"], second["what"]) == (
        "8 files, each of one task, written through POSIX", "1 file shared by all tasks, read through POSIX",
    )  # fmt: skip
    assert (first["api"], first["file_per_process"], first["write"], first["read"]) == ("POSIX", "yes", "yes", "no")
    assert (first["tasks"], first["block_bytes"], first["transfer_bytes"]) == (8, 512 * MIB, MIB)
    assert table.note.splitlines() == [
        "mpirun -np 8 ior -a POSIX -t 1048576 -b 536870912 -s 1 -F -w -o DIR/data",
        "mpirun -np 8 ior -a POSIX -t 1048576 -b 8388608 -s 1 -w -e -k -o DIR/data",
        "mpirun -np 8 ior -a POSIX -t 1048576 -b 8388608 -s 1 -r -o DIR/data",
    ]


def test_every_piece_of_evidence_is_shown() -> None:
    result = planned()
    lines = evidence(result).rows
    assert len(lines) == sum(len(item.evidence) for item in result.imitation.runs)
    assert ("1", "TransferSize (-t)", "1 MiB", "yes", "100 % of 4,096 writes had that size") in lines


def test_what_is_not_imitated_is_shown_where_there_is_any() -> None:
    table = left_out(planned())
    assert table is not None
    ((what, size, share_pct),) = table.rows
    assert (what, size) == ("1 file of one task, written through POSIX", 1000)
    assert share_pct < 0.001
    result = planned()
    assert left_out(replace(result, imitation=replace(result.imitation, not_imitated=()))) is None


def test_the_record_stands_beside_the_imitation() -> None:
    table = nearness(measured())
    assert ("1", "here", "bytes", "512 MiB", "512 MiB", 1.0) in table.rows
    assert ("all", "here", "MiB/s", "1,040", "347", 520 / 1.5 / 1040) in table.rows
    assert "On here IOR did 347 MiB/s, 33.33 % of the job's 1,040 MiB/s." in table.note.splitlines()
    assert [view.name for view in tables(measured())] == ["parameters", "evidence", "not_imitated", "nearness"]
