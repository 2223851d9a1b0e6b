"""The exporter of a server: the calibration it uses, and serving until it is stopped. Standard library only."""

from __future__ import annotations

import ipaddress
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from iolens.agent.exporter.access import ExporterAccess
from iolens.agent.exporter.fsu import ChosenCalibration
from iolens.agent.exporter.readings import Exporter
from iolens.agent.exporter.server import Address, MetricsServer
from iolens.analyses.calibration.stored import find_calibration
from iolens.config import Config
from iolens.errors import UsageError
from iolens.messages import WARNING, Message
from iolens.models.transaction_time import ceiling_of


def exported_calibration(config: Config, name: str | None, filesystem: str) -> ChosenCalibration:
    """The calibration asked for, else the file system's configured one, else a published one; and the ceiling.

    A server has no store, so a measured ceiling has to be configured here.
    """
    known = config.filesystem(filesystem)
    asked = name or known.calibration
    known_calibration = find_calibration((), config, asked, filesystem, None)[0]
    ceiling = ceiling_of(None, known_calibration.name, known.ceiling_fsu_pct)
    return ChosenCalibration(known_calibration.calibration, asked is None, ceiling, known_calibration.state)


def serve_until_stopped(
    exporter: Exporter,
    address: Address,
    say: Callable[[str], None],
    access: ExporterAccess,
    auth_file: Path | None = None,
) -> int:
    """Serve until SIGTERM or Ctrl-C; `auth_file` is where the passwords of `access` are from."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        server = MetricsServer(address, exporter, say, access)
    except OSError as error:
        raise UsageError(f"--listen {address.host}:{address.port}: {error.strerror or error}") from None
    with server:
        threading.Thread(target=server.serve_forever, name="accept", daemon=True).start()
        scheme = "http" if access.tls is None else "https"
        say(f"serving {server.address.url(scheme)}/metrics of {exporter.settings.root}")
        is_local = ipaddress.ip_address(server.address.host).is_loopback
        for line in access.concerns(is_local=is_local, auth_file=auth_file):
            say(Message(line, WARNING))
        stop.wait()
        server.shutdown()
    return 0
