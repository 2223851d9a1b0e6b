"""Sums of a job's nodes: a coarse imitation that says so. Numbers are those of Tables I and II (Enzo)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iolens.benchmarks.imitation.run_imitation import COARSE, NodeSums, imitation_of_sums
from iolens.errors import UsageError
from iolens.models.ior_parameters import ImitatedFiles
from iolens.units import KIB, MIB

READS = (12243, 264, 56, 81, 242, 269, 543, 1812, 26572)
WRITES = (393, 62, 198, 155, 96, 74, 199, 595, 52606)
SIZES = tuple(4 * KIB << power for power in range(9))  # up to 1 MiB
ENZO = NodeSums(
    filesystem="scratch",
    tasks=128,
    nodes=8,
    read_bytes=54 * 10**9,
    write_bytes=56 * 10**9,
    opens=5303,
    rpcs={"read": dict(zip(SIZES, READS, strict=True)), "write": dict(zip(SIZES, WRITES, strict=True))},
)


def words(imitated: ImitatedFiles, parameter: str) -> str:
    (item,) = (item for item in imitated.evidence if item.parameter == parameter)
    assert not item.is_known or parameter in ("tasks", "direction")
    return item.words


def test_what_was_written_and_what_was_read_are_two_runs() -> None:
    imitation = imitation_of_sums(ENZO)
    assert imitation.is_coarse
    assert imitation.notes == (COARSE,)
    written, read = imitation.runs
    assert (written.parameters.write, written.parameters.read) == (True, False)
    assert (read.parameters.write, read.parameters.read) == (False, True)
    assert written.parameters.moved_bytes == pytest.approx(56e9, rel=0.001)
    assert read.parameters.moved_bytes == pytest.approx(54e9, rel=0.001)
    assert (written.recorded.operations, read.recorded.operations) == (sum(WRITES), sum(READS))
    assert written.share_pct + read.share_pct == 100


def test_transfers_are_the_rpcs_that_moved_most_bytes() -> None:
    written, read = imitation_of_sums(ENZO).runs
    assert written.parameters.transfer_bytes == read.parameters.transfer_bytes == MIB
    assert words(written, "transfer_bytes") == "97 % of 54,378 write RPCs had that size, and most of the bytes"
    assert words(read, "transfer_bytes") == "63 % of 42,082 read RPCs had that size, and most of the bytes"


@pytest.mark.parametrize(
    ("opens", "own", "said"),
    [
        (
            5303,
            True,
            "5,303 opens by 128 tasks, at least one each; opens of one shared file by all would look the same",
        ),
        (100, False, "100 opens by 128 tasks, fewer than one each"),
        (None, False, "opens are not on record: taken as one shared file"),
    ],
)
def test_as_many_opens_as_tasks_are_files_per_process(opens: int | None, own: bool, said: str) -> None:
    imitated = imitation_of_sums(replace(ENZO, opens=opens)).runs[0]
    assert imitated.parameters.file_per_process is own
    assert words(imitated, "file_per_process") == said


def test_what_is_not_on_record_is_said_and_has_a_default() -> None:
    bare = NodeSums("scratch", None, 8, None, 64 * MIB, None, {})
    (imitated,) = imitation_of_sums(bare).runs
    assert (imitated.parameters.tasks, imitated.parameters.transfer_bytes) == (8, MIB)
    assert words(imitated, "transfer_bytes") == "RPC sizes are not on record"
    (item,) = (item for item in imitated.evidence if item.parameter == "tasks")
    assert (item.words, item.is_known) == ("the job's processes are not on record: one for each node", False)


def test_other_file_systems_are_named() -> None:
    imitation = imitation_of_sums(replace(ENZO, other_filesystems=("home",)))
    assert imitation.notes[1] == "only scratch is imitated, not home"


def test_a_job_that_moved_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to imitate: the job moved no bytes of scratch"):
        imitation_of_sums(replace(ENZO, read_bytes=0, write_bytes=None))
