"""A program of the centre: an argument list, never a shell; the notification is JSON on its standard input."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from iolens.alerts.notifications import Notification
from iolens.alerts.receivers import DeliveryError
from iolens.alerts.receivers.exchange import timeout_of
from iolens.config import TEXT, TEXTS, checked_section
from iolens.errors import InputError
from iolens.visible_text import shortened, visible

KEYS: Final = {**dict.fromkeys(("name", "kind", "timeout"), TEXT), "argv": TEXTS}
MOST_KEPT: Final = 2_000  # bytes of what it says on standard error; the rest is read and dropped
_PIECE: Final = 65_536
_LOOK_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class CommandReceiver:
    """Run once for each notification; exit code 0 is success."""

    name: str
    argv: tuple[str, ...]
    timeout_s: float
    kind: str = "command"
    renew_s: float | None = None

    def deliver(self, notification: Notification) -> None:
        """Run it to its end, or until its time is over; then it is killed with all that it started."""
        with tempfile.TemporaryFile() as stdin:
            stdin.write(notification.json_bytes())
            stdin.seek(0)
            try:
                process = subprocess.Popen(
                    self.argv, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
                )
            except OSError as error:
                raise DeliveryError(f"{self.argv[0]}: {error.strerror or error}", is_down=True) from None
        assert process.stderr is not None
        with process.stderr as stream:
            said = _until_it_ends(process, stream, time.monotonic() + self.timeout_s)
        if said is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise DeliveryError(f"{self.argv[0]} took longer than {self.timeout_s:g} s and was ended", is_down=False)
        if process.returncode != 0:
            text = shortened(visible(" ".join(said.decode("utf-8", "replace").split())), 200)
            problem = f"{self.argv[0]} ended with code {process.returncode}{f': {text}' if text else ''}"
            raise DeliveryError(problem, is_down=False)


def _until_it_ends(process: subprocess.Popen[bytes], stream: IO[bytes], deadline: float) -> bytes | None:
    """The beginning of what it says; None where its time is over. What it leaves running may keep the pipe open."""
    said = b""
    os.set_blocking(stream.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            has_ended = process.poll() is not None
            for _ in selector.select(0 if has_ended else min(_LOOK_S, max(deadline - time.monotonic(), 0))):
                piece = stream.read(_PIECE) or b""
                said = (said + piece)[:MOST_KEPT]
                if not piece:
                    selector.unregister(stream)
                    return said if _ended(process, deadline) else None
            if has_ended:
                return said
            if time.monotonic() > deadline:
                return None


def _ended(process: subprocess.Popen[bytes], deadline: float) -> bool:
    try:
        process.wait(max(deadline - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        return False
    return True


def command(path: Path, where: str, section: Mapping[str, Any]) -> CommandReceiver:
    """From its section."""
    values = checked_section(path, where, section, KEYS)
    if not values.get("argv") or not values["argv"][0]:
        raise InputError(
            str(path), f"{where} lacks argv", 'a list, such as ["/usr/local/bin/page", "--team", "storage"]'
        )
    return CommandReceiver(values["name"], tuple(values["argv"]), timeout_of(path, where, values))


RECEIVER = command
