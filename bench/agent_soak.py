"""`make soak`, the agent's part: kill -9 samplers and shippers of a simulated server and compare what is in the store.

`python -m bench.agent_soak --kills 1000` kills samplers and shippers until there were as many, 25 samplers a round. The
rounds go through all versions; as root every other one is on a small disk that is full now and then.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.agent.sampling.test_kills import Survived, check_kills, small_disk

from iolens.simulator.lustre_counters import VERSIONS

ROUND = 25


def one_round(number: int, count: int, seed: int) -> Survived:
    """Every version with and without a small disk, in turn; the store is away now and then."""
    version = VERSIONS[number % len(VERSIONS)]
    full = os.geteuid() == 0 and (number + number // len(VERSIONS)) % 2 == 1
    with tempfile.TemporaryDirectory(prefix="iolens-soak-") as name:
        folder = Path(name)
        if not full:
            return check_kills(folder, count, seed + number, version)
        with small_disk(folder / "spool"):
            return check_kills(folder, count, seed + number, version, fill=True)


def main() -> None:
    """Kill, restart, ship, compare; an assertion fails on any loss, duplicate or wrong total."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began, number, kills, samples = time.monotonic(), 0, 0, 0
    while kills < options.kills:
        survived = one_round(number, min(ROUND, options.kills - kills), options.seed)
        number, kills, samples = number + 1, kills + survived.kills, samples + survived.samples
        seconds = time.monotonic() - began
        print(f"{kills} kills, {samples} OST samples spooled, none lost, none twice, "
              f"totals are the simulator's, {seconds:.0f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
