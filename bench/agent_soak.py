"""`make soak`, the agent's part: kill -9 samplers and shippers at random moments and compare what is in the store.

`python -m bench.agent_soak --kills 1000` kills half as many samplers and as many shippers, in rounds of 25.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.agent.test_kills import check_kills

ROUND = 25


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
            samples += check_kills(Path(folder), count, options.seed + done)
        done += 2 * count
        seconds = time.monotonic() - began
        print(f"{done} kills, {samples} target samples spooled, none lost, none twice, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
