"""A run of every strategy for tests of Darshan logs."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

from iolens.simulator.darshan_runs import SimulatedRun, Strategy, stated_run
from iolens.units import MIB

NEEDS_DARSHAN = pytest.mark.skipif(find_spec("darshan") is None, reason="PyDarshan is not installed")
START_S = 1_790_000_000.25


def run_of(strategy: Strategy, **changes: Any) -> SimulatedRun:
    """Eight ranks, 100 MiB and 7 bytes written, 10 MiB read, in two phases, and a text file."""
    stated: dict[str, Any] = {
        "job_id": 4711, "start_s": START_S, "duration_s": 60.5, "processes": 8, "phases": 2, "printed_bytes": 1000,
        "write_bytes": 100 * MIB + 7, "read_bytes": 10 * MIB, "transfer_bytes": 65536, "stripe_count": 2,
        "executable": "gyro", "user": "ana", "uid": 1234, "opens": 40, "stats": 30,
    }  # fmt: skip
    if strategy == "none":
        stated |= {"write_bytes": 0, "read_bytes": 0, "phases": 0, "printed_bytes": 0}
    return stated_run(strategy, **(stated | changes))
