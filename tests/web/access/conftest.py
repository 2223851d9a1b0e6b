"""Servers of the tests of access."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from iolens.web.access.attempts import Attempts, Pace
from iolens.web.serve_config import ServeConfig
from tests.web.access.running_application import Running, running


def unhurried() -> Attempts:
    """No limit, for tests of something else that fail often from one address."""
    return Attempts(Pace(1e9, 1e9), Pace(1e9, 1e9))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that needs tokens, with one of each role."""
    with running(tmp_path_factory.mktemp("access") / "state", failures=unhurried()) as started:
        started.access.audit.refusals = unhurried()
        for role in ("viewer", "operator", "agent"):
            started.add(role, role)
        started.add("user", "user", "ada")
        yield started


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that is open to this machine."""
    with running(tmp_path_factory.mktemp("open") / "state", ServeConfig(hosts=("iolens.example.org",))) as started:
        yield started
