"""What receivers share: one POST within a deadline, passwords and tokens, keys of all."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from iolens.alerts.receivers import DeliveryError
from iolens.config import parsed_value
from iolens.errors import InputError
from iolens.units import parse_duration
from iolens.visible_text import shortened, visible

# A time by which an exchange must end, however slowly the other side goes on talking ----------------------------------


@contextmanager
def deadline(seconds: float, open_socket: Callable[[], socket.socket | None]) -> Iterator[None]:
    """Hang up when the time is over; whatever became of the exchange, that is a TimeoutError."""
    is_late = threading.Event()

    def hang_up() -> None:
        is_late.set()
        if (connection := open_socket()) is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception:
        if not is_late.is_set():
            raise
    finally:
        timer.cancel()
    if is_late.is_set():
        raise TimeoutError(f"no answer within {seconds:g} s")


# Passwords and tokens -------------------------------------------------------------------------------------------------
# From an environment variable or a file that the configuration names, never from itself.

LARGEST_FILE: Final = 4096


def secret(values: dict[str, Any], name: str) -> str | None:
    """What `NAME_env` or `NAME_file` leads to, read when it is needed; None where neither is configured."""
    variable, file = values.get(f"{name}_env"), values.get(f"{name}_file")
    if variable is not None:
        if not (value := os.environ.get(variable)):
            raise DeliveryError(f"{name}_env: the environment variable {variable} is not set", is_down=True)
        return value
    return None if file is None else _first_line(Path(file), name)


def _first_line(path: Path, name: str) -> str:
    try:
        with path.open(encoding="utf-8") as stream:
            line = stream.read(LARGEST_FILE).partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or "not UTF-8"
        raise DeliveryError(f"{name}_file: {path}: {problem}", is_down=True) from None
    if not line:
        raise DeliveryError(f"{name}_file: {path} is empty", is_down=True)
    return line


# Keys that all receivers have -----------------------------------------------------------------------------------------

USUAL_S: Final = 10.0
LONGEST_S: Final = 300.0


def timeout_of(path: Path, where: str, values: Mapping[str, Any]) -> float:
    """How long one delivery may take, in seconds."""
    if (text := values.get("timeout")) is None:
        return USUAL_S
    seconds = parsed_value(path, f"{where}.timeout", text, parse_duration)
    if not 0 < seconds <= LONGEST_S:
        raise InputError(str(path), f"{where}.timeout = {text!r}", f"above zero and at most {LONGEST_S:g}s")
    return seconds


def needed_text(path: Path, where: str, values: Mapping[str, Any], key: str) -> str:
    """The value of a key that must be there."""
    if not (text := values.get(key)):
        raise InputError(str(path), f"{where} lacks {key}", "a text in quotes")
    return str(text)


# One POST over HTTP or HTTPS ------------------------------------------------------------------------------------------
# Certificates are verified, no proxy is used, and no redirection is followed.

MOST_READ: Final = 500  # bytes of an answer that refuses
LATER: Final = (408, 425, 429)  # refusals that may pass


@dataclass(frozen=True, slots=True)
class HttpAddress:
    """Where to post; `ca` is a file of certificates in place of the system's."""

    url: SplitResult
    timeout_s: float
    ca: str | None = None

    def post(self, body: bytes, headers: dict[str, str]) -> None:
        """Send JSON; DeliveryError unless the answer is 2xx within the time."""
        try:
            connection = self._connection()
            with closing(connection), deadline(self.timeout_s, lambda: connection.sock):
                target = self.url.path or "/"
                target += f"?{self.url.query}" if self.url.query else ""
                connection.request("POST", target, body, {"Content-Type": "application/json", **headers})
                response = connection.getresponse()
                status, said = response.status, response.read(MOST_READ)
            _check(status, said, response.headers.get("Location"))
        except (OSError, http.client.HTTPException, ValueError) as error:
            problem = shortened(visible(f"{type(error).__name__}: {error}"), 200)
            raise DeliveryError(f"{self.url.hostname}: {problem}", is_down=True) from None

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self.url.hostname or "", self.url.port
        if self.url.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=self.timeout_s)
        context = ssl.create_default_context(cafile=self.ca)
        return http.client.HTTPSConnection(host, port, timeout=self.timeout_s, context=context)


def http_address(path: Path, where: str, text: str, timeout_s: float, ca: str | None) -> HttpAddress:
    """The address of a receiver, or an InputError that says what is wrong with it."""
    expected = "an address such as https://alerts.example.org/hook"
    try:
        url = urlsplit(text)
        _ = url.port
    except ValueError:
        raise InputError(str(path), f"{where} = {text!r} is no address", expected) from None
    if url.scheme not in ("http", "https") or not url.hostname or not text.isascii() or not text.isprintable():
        raise InputError(str(path), f"{where} = {text!r} is no address", expected)
    if url.username is not None or url.password is not None:
        raise InputError(str(path), f"{where} has a name or password in it", "token_env or token_file")
    return HttpAddress(url, timeout_s, ca)


def _check(status: int, body: bytes, location: str | None) -> None:
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        elsewhere = visible(location or "another address")
        raise DeliveryError(f"it redirects to {shortened(elsewhere)}; configure that address", is_down=False)
    said = visible(" ".join(body.decode("utf-8", "replace").split()))
    raise DeliveryError(f"HTTP {status} {shortened(said, 200)}".rstrip(), status >= 500 or status in LATER)
