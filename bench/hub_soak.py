"""`make soak`, the hub's part: kill -9 server, writer and agents, and compare the store with what was sampled.

`python -m bench.hub_soak --kills 200` kills until there were as many, 20 a round, each with a store of its own.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.hub.killing import check_hub_kills

from iolens.agent.sampling.hub_client import TOKEN_VARIABLE

ROUND = 20


def main() -> None:
    """Kill, restart, push, compare; an assertion fails on any loss, duplicate or wrong total."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.environ[TOKEN_VARIABLE] = "agent"
    began, number, samples = time.monotonic(), 0, 0
    kills = {"servers": 0, "writers": 0, "agents": 0}
    while sum(kills.values()) < options.kills:
        with tempfile.TemporaryDirectory(prefix="iolens-hub-soak-") as folder:
            survived = check_hub_kills(Path(folder), ROUND, options.seed + number)
        number, samples = number + 1, samples + survived.samples
        for what in kills:
            kills[what] += getattr(survived, what)
        killed = ", ".join(f"{count} {what}" for what, count in kills.items())
        print(f"killed {killed}: {samples} samples, none lost, none twice, sums are right, "
              f"{time.monotonic() - began:.0f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
