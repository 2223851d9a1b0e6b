"""Mutated requests against a real server: refused or answered sanely, nothing leaks, and it still serves."""

from __future__ import annotations

from pathlib import Path

from tests.soak import IS_SOAK
from tests.web.access.mutated_requests import run

COUNT = 10_000 if IS_SOAK else 500
MOST_GROWTH_BYTES = 32 << 20


def test_mutated_requests_are_refused_or_answered_and_nothing_leaks(tmp_path: Path) -> None:
    outcome = run(COUNT, tmp_path)
    assert outcome.faults == []
    assert {200, 400, 401} <= set(outcome.statuses)  # both sides of the checks were reached
    assert "Traceback" not in outcome.log
    assert "error" not in outcome.log
    assert outcome.memory_bytes[-1] - outcome.memory_bytes[1] < MOST_GROWTH_BYTES
    assert outcome.descriptors[-1] <= outcome.descriptors[0] + 100  # connections that were cut off are closed
