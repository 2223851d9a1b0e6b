"""`make soak`, the agent's part: kill -9 samplers and shippers at random moments and compare what is in the store.

`python -m bench.agent_soak --kills 1000` kills half as many samplers and as many shippers, in rounds of 25.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.agent.test_kills import check_kills, small_disk

ROUND = 25


def one_round(folder: Path, count: int, seed: int) -> int:
    """As root every other round is on a small disk that is full now and then; the store is away now and then."""
    if os.geteuid() != 0 or seed % 4 == 1:
        return check_kills(folder, count, seed)
    with small_disk(folder / "spool"):
        return check_kills(folder, count, seed, fill=True)


def main() -> None:
    """Kill, restart, ship, compare; an assertion fails on any loss or duplicate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began, done, samples = time.monotonic(), 0, 0
    while done < options.kills:
        with tempfile.TemporaryDirectory(prefix="iolens-soak-") as folder:
            count = max(min(ROUND, (options.kills - done) // 2), 1)
            samples += one_round(Path(folder), count, options.seed + done)
        done += 2 * count
        seconds = time.monotonic() - began
        print(f"{done} kills, {samples} target samples spooled, none lost, none twice, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
