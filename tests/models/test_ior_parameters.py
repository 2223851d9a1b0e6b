"""A smaller run of the same shape: fewer repetitions first, then fewer segments, then smaller blocks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iolens.models.ior_parameters import IorParameters, RecordedWork
from iolens.units import MIB

WHOLE = IorParameters(
    api="POSIX", tasks=64, transfer_bytes=MIB, block_bytes=8 * MIB, segments=16, file_per_process=True, write=True,
    read=True, repetitions=10, nodes=4,
)  # fmt: skip


def test_what_ior_does_by_its_parameters() -> None:
    assert WHOLE.task_bytes == 128 * MIB
    assert WHOLE.aggregate_bytes == 64 * 128 * MIB
    assert WHOLE.work == RecordedWork(10 * 64 * 128 * MIB, 10 * 64 * 128 * MIB, 2 * 10 * 64 * 128, 640)
    assert replace(WHOLE, file_per_process=False, read=False).work == RecordedWork(
        0, 10 * 64 * 128 * MIB, 10 * 64 * 128, 10
    )


@pytest.mark.parametrize(
    ("share", "repetitions", "segments", "block_mib"),
    [(1.0, 10, 16, 8), (0.35, 3, 16, 8), (0.1, 1, 16, 8), (0.05, 1, 8, 8), (0.003, 1, 1, 3), (1e-9, 1, 1, 1)],
)
def test_a_share_of_the_bytes(share: float, repetitions: int, segments: int, block_mib: int) -> None:
    smaller = replace(WHOLE, repetitions=repetitions, segments=segments, block_bytes=block_mib * MIB)
    assert WHOLE.scaled(share) == smaller


def test_fewer_tasks_move_the_bytes_of_the_others_as_far_as_they_moved_so_much_themselves() -> None:
    smaller = WHOLE.scaled(0.01, most_tasks=2)
    assert (smaller.tasks, smaller.nodes, smaller.repetitions) == (2, None, 3)
    assert smaller.moved_bytes <= 0.01 * WHOLE.moved_bytes
    all_that_two_did = WHOLE.scaled(1.0, most_tasks=2)
    assert all_that_two_did == replace(WHOLE, tasks=2, nodes=None)
    assert WHOLE.scaled(1.0, most_tasks=1000) == WHOLE


def test_a_block_stays_a_whole_number_of_transfers() -> None:
    odd = replace(WHOLE, repetitions=1, segments=1, transfer_bytes=3 * MIB, block_bytes=30 * MIB)
    assert odd.scaled(0.5).block_bytes == 15 * MIB
    assert odd.scaled(0.47).block_bytes == 12 * MIB
