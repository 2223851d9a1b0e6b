"""A real Prometheus scrapes an exporter by https with a password, and cannot without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.exporter.test_access import SECRET, certificate, users
from tests.agent.server import Server
from tests.live.prometheus_server import PrometheusServer, exporter
from tests.live.spark_cluster import ComponentMissing

pytestmark = pytest.mark.live
__all__ = ["certificate", "users"]  # fixtures


def test_prometheus_reads_with_the_password_only(tmp_path: Path, certificate: tuple[Path, Path], users: Path) -> None:
    Server(tmp_path / "root").work()
    options = ("--tls-cert", certificate[0], "--tls-key", certificate[1], "--auth-file", users)
    daemon, address = exporter(tmp_path / "log", "--root", tmp_path / "root", *options)
    access = {"scheme": "https", "tls_config": {"ca_file": str(certificate[0])}}
    right = {**access, "basic_auth": {"username": "prometheus", "password": SECRET}}
    try:
        with PrometheusServer({"iolens": [address]}, access=right) as server:
            server.wait_until("scraped", lambda: server.query("up") and server.only("up") == 1)
        with PrometheusServer({"iolens": [address]}, access=access) as server:
            server.wait_until("refused", lambda: server.query("up") and server.only("up") == 0)
    except ComponentMissing as error:
        pytest.skip(str(error))
    finally:
        daemon.stop()
    log = (tmp_path / "log").read_text()
    assert log.count("is refused: no password") == 1
    assert SECRET not in log
