"""`make soak`, the part of studies: kill -9 of `bench run` at random times, resume, and count.

`python -m bench.study_soak --kills 200` kills until there were as many, 25 a round, each with a study of its own.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.benchmarks.studies.killing import check_kills

ROUND = 25


def main() -> None:
    """Kill, resume, compare; an assertion fails on a point that is lost or twice, or a directory not on record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--place", type=Path, help="Directory that is measured [that of temporary files]")
    options = parser.parse_args()
    began, number, kills, leftovers, points = time.monotonic(), 0, 0, 0, 0
    while kills < options.kills:
        with tempfile.TemporaryDirectory(prefix="iolens-study-soak-", dir=options.place) as folder:
            survived = check_kills(Path(folder), ROUND, options.seed + number)
        number, kills = number + 1, kills + survived.kills
        leftovers, points = leftovers + survived.leftovers, points + survived.points
        print(f"killed {kills} times, {leftovers} with a directory left, each on record: {points} points, none lost,"
              f" none twice, {time.monotonic() - began:.0f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
