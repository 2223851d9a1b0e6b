"""Counters of made-up runs, and the IOR runs that imitate them; each value with the counters that say so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from iolens.benchmarks.imitation.group_parameters import ior_options
from iolens.benchmarks.imitation.run_imitation import MOST_RUNS, imitation_of_run, ior_commands
from iolens.errors import UsageError
from iolens.models.ior_parameters import ImitatedFiles, IorParameters
from iolens.units import GIB, KIB, MIB
from tests.benchmarks.imitation.made_records import moved, record, run

SHARED = IorParameters(
    api="POSIX", tasks=8, transfer_bytes=MIB, block_bytes=16 * MIB, segments=4, file_per_process=False, write=True,
    read=False,
)  # fmt: skip


def only(processes: int, *records: dict[str, Any], **more: Any) -> ImitatedFiles:
    """The one run of IOR that imitates these records."""
    (imitated,) = imitation_of_run(run(processes, **more), records).runs
    return imitated


def words(imitated: ImitatedFiles, parameter: str) -> str:
    (item,) = (item for item in imitated.evidence if item.parameter == parameter)
    return item.words


def is_known(imitated: ImitatedFiles, parameter: str) -> bool:
    (item,) = (item for item in imitated.evidence if item.parameter == parameter)
    return item.is_known


def test_pieces_of_a_shared_file_are_segments() -> None:
    gaps: dict[str, Any] = {"stride1_bytes": 7 * 16 * MIB, "stride1_count": 8 * 3}
    imitated = only(8, record(1, **moved("write", 8 * 4 * 16, MIB, pieces=8 * 4), **gaps))
    assert imitated.parameters == SHARED
    assert imitated.what == "1 file shared by all tasks, written through POSIX"
    assert words(imitated, "transfer_bytes") == "100 % of 512 writes had that size"
    assert words(imitated, "block_bytes") == (
        "each task moved 64 MiB in 4 pieces; 24 times with a gap of 112 MiB, the blocks of 7 other tasks"
    )
    assert is_known(imitated, "block_bytes")


def test_files_of_single_ranks_are_files_per_process() -> None:
    own = [record(rank, rank, **moved("write", 64, MIB), syncs=1) for rank in range(8)]
    imitated = only(8, *own)
    assert imitated.parameters == replace(SHARED, block_bytes=64 * MIB, segments=1, file_per_process=True, fsync=True)
    assert words(imitated, "file_per_process") == "8 files of 8 tasks, each written, or read, by a single one"
    assert words(imitated, "fsync") == "8 fsyncs for 512 writes"


def test_several_files_of_each_rank_are_repetitions() -> None:
    own = [record(10 * rank + step, rank, **moved("write", 64, MIB)) for rank in range(8) for step in range(3)]
    imitated = only(8, *own)
    assert (imitated.parameters.repetitions, imitated.parameters.files) == (3, 24)
    assert words(imitated, "repetitions") == "3 such files per task"
    assert imitated.parameters.work == imitated.recorded


def test_a_file_that_was_written_again_and_again_is_repeated_only_if_it_was_opened_as_often() -> None:
    again = moved("write", 3 * 64, MIB, pieces=3, extent=64 * MIB)
    imitated = only(1, record(1, 0, **{**again, "opens": 3}))
    assert (imitated.parameters.repetitions, imitated.parameters.block_bytes) == (3, 64 * MIB)
    assert words(imitated, "repetitions") == "written 3 times from beginning to end, with 3 opens each"
    assert only(1, record(1, 0, **{**again, "opens": 1})).parameters.repetitions == 1


def test_one_rank_that_writes_for_all_is_one_task() -> None:
    imitated = only(512, record(1, 0, **moved("write", 64, MIB)))
    assert (imitated.parameters.tasks, imitated.parameters.file_per_process) == (1, False)
    assert words(imitated, "tasks") == "one of 512 ranks moved bytes of these files"


def test_of_a_file_that_all_opened_only_those_took_part_that_began_somewhere() -> None:
    """A shared record does not name its ranks; each that writes begins at a place of its own."""
    imitated = only(512, record(1, **moved("write", 64, MIB, pieces=4)))
    assert imitated.parameters.tasks == 4
    assert imitated.what == "1 file shared by some tasks, written through POSIX"


def test_own_files_that_another_read_are_reordered() -> None:
    records = [record(n, n, **moved("write", 64, MIB)) for n in range(4)]
    records += [record(n, (n + 2) % 4, **moved("read", 64, MIB)) for n in range(4)]
    imitated = only(4, *records)
    assert imitated.parameters.reorder
    assert (imitated.parameters.tasks, imitated.parameters.file_per_process) == (4, True)
    assert words(imitated, "reorder") == "files were read by another rank than wrote them"


def test_every_second_access_at_a_lower_offset_is_random_order() -> None:
    counters = {**moved("read", 8 * 256, 4 * KIB, pieces=8 * 256), "sequential_reads": 1024}
    imitated = only(8, record(1, **counters))
    assert imitated.parameters.random
    assert (imitated.parameters.segments, imitated.parameters.block_bytes) == (1, MIB)
    assert words(imitated, "random") == "50 % of reads went to a higher offset than the one before"


def test_a_few_accesses_have_no_order() -> None:
    counters = {**moved("read", 8 * 2, MIB, pieces=8 * 2), "sequential_reads": 2}
    imitated = only(8, record(1, **counters))
    assert not imitated.parameters.random
    assert not is_known(imitated, "random")


def test_a_file_that_all_read_in_full_is_said_to_be_another_thing() -> None:
    imitated = only(8, record(1, **moved("read", 8 * 64, MIB, pieces=8, extent=64 * MIB)) | {"opens": 8})
    assert (imitated.parameters.repetitions, imitated.parameters.block_bytes) == (1, 64 * MIB)
    assert "every task read the same bytes" in words(imitated, "block_bytes")
    assert not is_known(imitated, "block_bytes")


def collective(**posix: Any) -> ImitatedFiles:
    """Four tasks, each 16 collective calls of 1 MiB in blocks of 4 MiB; what POSIX saw of it."""
    asked = {"collective_writes": 64, "independent_writes": 0, "slowest_rank_bytes": 16 * MIB}
    asked |= {name: value for name, value in moved("write", 64, MIB).items() if "consecutive" not in name}
    return only(4, record(1, module="MPI-IO", **asked), record(1, **posix))


def test_collective_calls_that_reach_the_file_as_they_are() -> None:
    imitated = collective(**moved("write", 64, MIB, pieces=16), slowest_rank_bytes=16 * MIB)
    assert imitated.parameters == replace(
        SHARED, api="MPIIO", tasks=4, block_bytes=4 * MIB, segments=4, collective=True
    )
    assert words(imitated, "collective") == "100 % of 64 MPI-IO calls were collective"


def test_collective_calls_that_one_rank_makes_for_all() -> None:
    gaps: dict[str, Any] = {"stride1_bytes": 3 * MIB, "stride1_count": 48}
    imitated = collective(**moved("write", 64, MIB, pieces=64), slowest_rank_bytes=64 * MIB, **gaps)
    assert (imitated.parameters.block_bytes, imitated.parameters.segments) == (4 * MIB, 4)
    assert words(imitated, "block_bytes") == ("each task moved 16 MiB; transfers of two tasks were 3 MiB apart")
    together = collective(**moved("write", 16, 4 * MIB), slowest_rank_bytes=64 * MIB)
    assert (together.parameters.block_bytes, together.parameters.segments) == (MIB, 16)


def test_collective_calls_that_were_rearranged_leave_blocks_open() -> None:
    imitated = collective(**moved("write", 7, 9 * MIB), slowest_rank_bytes=40 * MIB)
    assert (imitated.parameters.block_bytes, imitated.parameters.segments) == (16 * MIB, 1)
    assert words(imitated, "block_bytes") == "each task moved 16 MiB of a file; where its blocks lie is not on record"
    assert not is_known(imitated, "block_bytes")


def test_hdf5_is_imitated_by_what_it_asked_of_mpi_io() -> None:
    asked = {"independent_writes": 512, **moved("write", 512, MIB)}
    records = [
        record(1, module="H5F"),
        record(1, module="MPI-IO", **asked),
        record(1, **moved("write", 512, MIB, pieces=8)),
    ]
    imitated = only(8, *records)
    assert imitated.parameters.api == "MPIIO"
    assert words(imitated, "api") == "HDF5 over MPI-IO: IOR imitates what it asked of MPI-IO"
    assert not is_known(imitated, "api")


def test_stdio_has_no_sizes() -> None:
    imitated = only(1, record(1, 0, module="STDIO", write_bytes=64 * KIB, writes=64))
    assert (imitated.parameters.api, imitated.parameters.transfer_bytes) == ("POSIX", KIB)
    assert words(imitated, "transfer_bytes") == "the log has no sizes of these calls: the mean of 64"


def test_flushes_of_stdio_are_no_fsync() -> None:
    imitated = only(1, record(1, 0, module="STDIO", write_bytes=64 * KIB, writes=64, syncs=64))
    assert not imitated.parameters.fsync
    assert "fsync" not in {item.parameter for item in imitated.evidence}


def test_input_and_checkpoint_are_two_runs_the_larger_first_and_the_rest_is_named() -> None:
    records = [
        record(1, **moved("read", 64, MIB, pieces=8)),
        *(record(100 + rank, rank, **moved("write", 512, MIB)) for rank in range(8)),
        record(2, 0, **moved("write", 10, 100)),
    ]
    imitation = imitation_of_run(run(8), records)
    assert [(item.parameters.write, item.parameters.read) for item in imitation.runs] == [(True, False), (False, True)]
    assert [round(item.share_pct, 2) for item in imitation.runs] == [98.46, 1.54]
    (rest,) = imitation.not_imitated
    assert (rest.what, rest.moved_bytes) == ("1 file of one task, written through POSIX", 1000)
    assert sum(item.share_pct for item in imitation.runs) + rest.share_pct == pytest.approx(100)


def test_no_more_runs_than_stated() -> None:
    sizes = [4 * KIB << power for power in range(MOST_RUNS + 3)]
    imitation = imitation_of_run(run(1), [record(size, 0, **moved("write", GIB // size, size)) for size in sizes])
    assert len(imitation.runs) == MOST_RUNS
    (rest,) = imitation.not_imitated
    assert (rest.what, rest.moved_bytes) == ("3 files, each of one task, written through POSIX", 3 * GIB)


def test_what_was_written_and_read_as_much_is_one_run() -> None:
    both = {**moved("write", 512, MIB, pieces=8), **moved("read", 512, MIB, pieces=8), "access1_count": 1024}
    assert only(8, record(1, **both)).parameters == replace(SHARED, block_bytes=64 * MIB, segments=1, read=True)
    more = {**moved("write", 512, MIB, pieces=8), **moved("read", 1024, MIB, pieces=8), "access1_count": 1536}
    runs = imitation_of_run(run(8), [record(1, **more)]).runs
    assert [(item.parameters.write, item.parameters.read) for item in runs] == [(False, True), (True, False)]


def test_ior_moves_words_of_eight_bytes() -> None:
    imitated = only(1, record(1, 0, **moved("write", 100, 15)))
    assert imitated.parameters.transfer_bytes == 16
    assert words(imitated, "transfer_bytes") == (
        "15 bytes: 100 % of 100 writes had that size; IOR moves multiples of 8 bytes"
    )
    ior_commands(imitated.parameters)[0].check()


def test_segments_that_follow_each_other_are_of_the_command_line_where_it_is_iors() -> None:
    own = [record(rank, rank, **moved("write", 64, MIB)) for rank in range(8)]
    commanded = only(8, *own, command="/opt/bin/ior -w -F -t 1m -b 16m -s 4")
    assert (commanded.parameters.block_bytes, commanded.parameters.segments) == (16 * MIB, 4)
    assert words(commanded, "block_bytes").endswith("-b and -s are of the recorded command line")
    other = only(8, *own, command="/opt/bin/ior -w -F -t 1m -b 16m -s 5")  # not what was counted
    assert (other.parameters.block_bytes, other.parameters.segments) == (64 * MIB, 1)


def test_options_of_ior_and_of_no_other_program() -> None:
    assert ior_options("/opt/ior-4.0/bin/ior -b 64m -s 4 -t 512") == {"-b": 64 * MIB, "-s": 4, "-t": 512}
    assert ior_options("IOR -b 2GiB -s x") == {"-b": 2 * GIB}
    assert ior_options("app -b 64m") == ior_options("") == ior_options("ior 'open") == {}


@pytest.mark.parametrize(
    "records",
    [[], [record(1, module="STDIO", write_bytes=10, writes=1) | {"path": "<STDOUT>"}], [record(1)]],
    ids=["no record", "standard output", "no bytes"],
)
def test_a_run_that_moved_nothing_is_refused_in_one_line(records: list[dict[str, Any]]) -> None:
    with pytest.raises(UsageError, match=r"^nothing to imitate: no bytes of files are on record \(.*modules: POSIX\)$"):
        imitation_of_run(run(4), records)


def test_a_log_that_is_not_complete_is_said() -> None:
    imitation = imitation_of_run(run(1, incomplete_modules="POSIX"), [record(1, 0, **moved("write", 8, MIB))])
    assert imitation.notes == ("the log is not complete (POSIX): files may be missing",)


def test_files_that_are_only_read_are_written_first_and_kept() -> None:
    parameters = replace(SHARED, write=False, read=True, random=True)
    before, command = ior_commands(parameters)
    assert before.options()[8:] == ["-w", "-e", "-k", "-o", "DIR/data"]
    assert command.options()[8:] == ["-z", "-r", "-o", "DIR/data"]
    assert len(ior_commands(SHARED)) == 1
