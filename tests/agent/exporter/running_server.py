"""The exporter's server in a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iolens.agent.exporter.access import ExporterAccess
from iolens.agent.exporter.server import Address, MetricsServer
from tests.agent.exposition import exporter


@contextmanager
def running_server(root: Path, access: ExporterAccess, said: list[str], **settings: object) -> Iterator[MetricsServer]:
    """On a free port of this machine; what it says of troubles is in `said`."""
    with MetricsServer(Address("127.0.0.1", 0), exporter(root, **settings), said.append, access) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()
