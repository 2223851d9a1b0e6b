"""`make soak`, the power's part: cut it at every system call of shipping, recovering, compacting and rolling up.

`python -m bench.power_cut_soak --seeds 3` follows the calls with strace and goes through all that a disk may hold then:
only what was synced, names without contents, contents torn at random.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.store.power_cuts import has_strace
from tests.store.test_power_cut import check_recovery, check_shipping, check_upkeep

PARTS: Final[dict[str, tuple[Callable[[Path, int, float], int], float]]] = {
    "shipping": (check_shipping, 1.0),
    "recovery from a power cut": (check_recovery, 0.5),
    "compaction and rollup": (check_upkeep, 0.25),
}


def main() -> None:
    """Cut, restart, ship the rest, compare; an assertion fails on any loss, duplicate, fault or store that is stuck."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--part", choices=list(PARTS), help="Only this one")
    parser.add_argument("--share", type=float, default=1.0, help="Of the times that would be gone through")
    options = parser.parse_args()
    if not has_strace():
        sys.exit("strace is not installed")
    for seed in range(1, options.seeds + 1):
        for what, (check, share) in PARTS.items():
            if options.part not in (None, what):
                continue
            began, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix="iolens-power-"))
            states = check(folder, seed, share * options.share)
            shutil.rmtree(folder)  # kept when the check failed
            print(f"{what}: {states} states after a power cut, seed {seed}: nothing lost, nothing twice, no fault, "
                  f"{time.monotonic() - began:.0f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
