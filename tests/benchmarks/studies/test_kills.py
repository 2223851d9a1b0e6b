"""kill -9 of a study at any time: what is left is on record, resuming completes it, and no run counts twice.

`bench.study_soak` kills 200 times.
"""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.studies.killing import check_kills

KILLS = 25


def test_a_study_that_is_killed_again_and_again_completes_and_leaves_nothing(tmp_path: Path) -> None:
    survived = check_kills(tmp_path, KILLS, seed=5)
    assert survived.kills >= KILLS - 5
    assert survived.leftovers >= 5  # else nothing was put to the test
    assert survived.points == 32 * KILLS
