"""The end of `iolens serve`: SIGTERM is a request, not a failure."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.live.prometheus_server import iolens
from tests.live.spark_cluster import HOST


def test_sigterm_ends_the_server_cleanly(tmp_path: Path) -> None:
    options = ("--store", tmp_path / "store", "--state", tmp_path / "state", "--listen", f"{HOST}:0", "--hub")
    server = iolens(tmp_path / "log", "serve", *options)
    try:
        server.wait_for(r"serving (\S+)")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        assert server.alive() == [], "the writer of the hub ends too"
    finally:
        server.stop()
    assert not (tmp_path / "state" / "access.sqlite-wal").exists(), "its database was closed"
