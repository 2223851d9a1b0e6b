"""One POST over HTTP or HTTPS: certificates are verified, no proxy is used, and no redirection is followed."""

from __future__ import annotations

import http.client
import ssl
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from iolens.alerts.receivers import DeliveryError
from iolens.alerts.receivers.deadline import deadline
from iolens.errors import InputError
from iolens.visible_text import shortened, visible

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
