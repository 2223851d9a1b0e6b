"""kill -9 of server, writer and agents: nothing is lost, nothing is stored twice. `bench.hub_soak` takes 200."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.agent.sampling.hub_client import TOKEN_VARIABLE
from tests.hub.killing import check_hub_kills

KILLS = 10


def test_nothing_is_lost_and_nothing_is_stored_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "agent")
    survived = check_hub_kills(tmp_path, KILLS, seed=5)
    assert survived.servers + survived.writers + survived.agents >= KILLS - 3
    assert min(survived) > 0
