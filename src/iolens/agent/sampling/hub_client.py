"""Where an agent pushes its segments, and how: resumed, acknowledged, and only then deleted."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import ssl
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, BinaryIO, Final, cast
from urllib.parse import quote, urlsplit

from iolens import __version__
from iolens.agent.sampling.spool import host_name, open_private
from iolens.errors import InputError, IolensError, UsageError
from iolens.visible_text import shortened, visible

# Where an agent pushes its segments -----------------------------------------------------------------------------------
# The address of a hub, its token, and the certificates that are trusted.
#
# Standard library only, and quick to import: the sampler passes it on.

TOKEN_VARIABLE: Final = "IOLENS_HUB_TOKEN"  # noqa: S105 (a name)
SCHEMES: Final = ("http://", "https://")
LONGEST_TOKEN: Final = 4096


@dataclass(frozen=True, slots=True)
class HubAddress:
    """Where segments are pushed to, the file of the token, and the certificates that are trusted."""

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            is_whole = is_hub_url(self.url) and bool(parts.hostname) and parts.port != 0
        except ValueError:  # no port, no IPv6 address
            is_whole = False
        if not is_whole or parts.query or parts.fragment:
            raise UsageError(f"{self.url}: not the address of a hub, such as https://iolens.example.org:8470")
        if "@" in parts.netloc:
            raise UsageError("the address of a hub holds no secret: name a file with the token")
        if parts.scheme == "http" and not _is_this_machine(parts.hostname or ""):
            raise UsageError(f"{self.url}: the token would travel unprotected; use https://")

    def token(self) -> str | None:
        """The secret, of the file or else of the environment; IolensError when others can read the file."""
        if self.token_file is None:
            return _checked_token(f"${TOKEN_VARIABLE}", os.environ.get(TOKEN_VARIABLE, "")) or None
        try:
            with self.token_file.open("rb") as stream:
                mode = os.fstat(stream.fileno()).st_mode
                text = stream.read(LONGEST_TOKEN + 1).decode("ascii", "replace").strip()
        except OSError as error:
            raise InputError(str(self.token_file), error.strerror or "cannot be read", "the token of a hub") from error
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise IolensError(f"{self.token_file}: others can read the token: chmod 600 {self.token_file}")
        if not text:
            raise InputError(str(self.token_file), "it is empty", "the token of a hub")
        return _checked_token(str(self.token_file), text)

    def words(self) -> list[str]:
        """Address, token file and certificates as arguments of a process; the token itself is none."""
        return [self.url, str(self.token_file or ""), str(self.ca_file or "")]

    def options(self) -> list[str]:
        """The same as options of the command line."""
        named = {"--hub": self.url, "--hub-token-file": self.token_file, "--hub-ca": self.ca_file}
        return [word for name, value in named.items() if value is not None for word in (name, str(value))]

    @classmethod
    def of(cls, url: str, token_file: str | Path | None, ca_file: str | Path | None) -> HubAddress:
        """As options, the configuration or a command say; empty is none."""
        return cls(url, Path(token_file) if token_file else None, Path(ca_file) if ca_file else None)

    @property
    def path(self) -> str:
        """What addresses of the hub begin with, where it is not at the root of its server."""
        return urlsplit(self.url).path.rstrip("/")


def is_hub_url(url: str) -> bool:
    """Whether an address is of a hub; those of stores begin otherwise."""
    return url.startswith(SCHEMES)


def _checked_token(place: str, text: str) -> str:
    """A header holds visible letters only; the message does not quote the token."""
    if len(text) > LONGEST_TOKEN or any(not "!" <= letter <= "~" for letter in text):
        raise InputError(place, "it is not the token of a hub", "one line of letters and digits")
    return text


def _is_this_machine(host: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# Segments pushed to a hub (`iolens serve`) over HTTPS -----------------------------------------------------------------
# Resumed, acknowledged, and only then removed from the spool.
#
# Standard library only: the agent for nodes pushes too. docs/hub.md describes the interface.

TIMEOUT_S: Final = 60.0  # of one step: connect, send a piece, wait for an answer
LONGEST_WAIT_S: Final = 3600.0
TRIES: Final = 3
READ_AT_ONCE: Final = 1 << 20
SENT_AT_ONCE: Final = 1 << 17
LARGEST_ANSWER: Final = 1 << 16
SEGMENTS: Final = "/api/v1/hub/segments/"
CONTENT_TYPE: Final = "application/octet-stream"
ACCEPTED: Final = (200, 201)
CONFLICT: Final = 409
REFUSED_FOR_GOOD: Final = (400, 411, 413, 422)  # this segment, whenever it is sent


class HubError(IolensError):
    """The hub cannot be reached or takes nothing now; what waits stays in the spool. `wait_s`: as the hub asks."""

    def __init__(self, problem: str, wait_s: float = 0.0) -> None:
        self.wait_s = wait_s
        super().__init__(visible(problem))


class SegmentRefusedError(IolensError):
    """The hub will never take this segment."""


@dataclass(slots=True)
class HubClient:
    """Pushes segments through one connection, which is opened again when it breaks."""

    address: HubAddress
    _connection: HTTPConnection | None = None
    _headers: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> HubClient:
        """Read the token once."""
        token = self.address.token()
        self._headers = {"User-Agent": f"iolens/{__version__}"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._close()

    def push(self, stem: str, path: Path) -> None:
        """Send a segment; when this returns the hub has it on disk. HubError: later; SegmentRefusedError: never."""
        with _opened(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            digest = _digest(stream)
            for _ in range(TRIES):
                if self._try(stem, stream, size, digest):
                    return
        raise HubError(f"{self.address.url}: {stem} was not taken in {TRIES} tries")

    def check(self) -> None:
        """Ask about a segment that there is not: the hub answers, and the token is right; HubError otherwise."""
        answer = self._asked("GET", f"{host_name()}~doctor~00000000")
        if answer.status not in (*ACCEPTED, 429, 503, 507):
            raise self._error(answer)

    def _try(self, stem: str, stream: BinaryIO, size: int, digest: str) -> bool:
        """Whether the segment is with the hub now; False: the hub has other bytes of it than we thought."""
        here = self._asked("GET", stem, headers={"Upload-Length": str(size)})
        if here.status != 200:
            return self._judged(here)
        if here.headers.get("Upload-Complete") == "?1":
            if here.headers.get("Repr-Digest") == digest:
                return True
            raise SegmentRefusedError(f"{self.address.url}: another segment of this name is there")
        offset = _offset(here.headers.get("Upload-Offset"), size)
        stream.seek(offset)
        headers = {"Content-Type": CONTENT_TYPE, "Content-Length": str(size - offset), "Repr-Digest": digest}
        if offset:
            headers["Content-Range"] = f"bytes {offset}-{size - 1}/{size}"
        return self._judged(self._asked("PUT", stem, stream, headers))

    def _judged(self, answer: HubAnswer) -> bool:
        if answer.status in ACCEPTED:
            return True
        if answer.status == CONFLICT:
            return False
        if answer.status in REFUSED_FOR_GOOD:
            raise SegmentRefusedError(f"{self.address.url}: {answer.reason}")
        raise self._error(answer)

    def _error(self, answer: HubAnswer) -> HubError:
        known = {
            401: "the token is missing or wrong",
            403: "the token may not send samples",
            404: "there is no hub at this address",
        }
        reason = known.get(answer.status, answer.reason)
        return HubError(f"{self.address.url}: {reason} (HTTP {answer.status})", answer.wait_s)

    def _asked(
        self, method: str, stem: str, body: BinaryIO | None = None, headers: Mapping[str, str] | None = None
    ) -> HubAnswer:
        """One request. A connection that the hub closed meanwhile is opened again, once, where nothing was sent."""
        reused = self._connection is not None
        try:
            return self._exchange(method, stem, body, headers or {})
        except (OSError, HTTPException) as error:
            self._close()
            if not reused or body is not None:
                raise HubError(f"{self.address.url}: {_words(error)}") from error
        try:
            return self._exchange(method, stem, body, headers or {})
        except (OSError, HTTPException) as error:
            self._close()
            raise HubError(f"{self.address.url}: {_words(error)}") from error

    def _exchange(self, method: str, stem: str, body: BinaryIO | None, headers: Mapping[str, str]) -> HubAnswer:
        if self._connection is None:
            self._connection = _connection(self.address)
        place = f"{self.address.path}{SEGMENTS}{quote(stem, safe='~')}"
        early: OSError | None = None
        try:
            self._connection.request(method, place, body, {**self._headers, **headers})
        except (BrokenPipeError, ConnectionResetError) as error:
            if body is None:
                raise
            early = error  # the hub may have answered before it had everything
        try:
            response = self._connection.getresponse()
            answer = HubAnswer.of(response)
        except (OSError, HTTPException):
            raise early or ConnectionError("the hub closed the connection without an answer") from None
        if early is not None or response.will_close:
            self._close()
        return answer

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass(frozen=True, slots=True)
class HubAnswer:
    """What the hub said."""

    status: int
    headers: HTTPMessage
    reason: str

    @classmethod
    def of(cls, response: HTTPResponse) -> HubAnswer:
        """Read the answer to its end, so that the connection can be used again; one that is too long is cut."""
        text = response.read(LARGEST_ANSWER)
        if response.length:
            response.close()
        return cls(response.status, response.headers, _reason(text) or response.reason)

    @property
    def wait_s(self) -> float:
        """Seconds to wait, as `Retry-After` says."""
        text = self.headers.get("Retry-After", "")
        return min(float(text), LONGEST_WAIT_S) if text.isascii() and text.isdigit() else 0.0


def _connection(address: HubAddress) -> HTTPConnection:
    """A connection that is not open yet; certificates are checked."""
    parts = urlsplit(address.url)
    assert parts.hostname is not None
    if parts.scheme == "http":
        return HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_S, blocksize=SENT_AT_ONCE)
    try:
        context = ssl.create_default_context(cafile=None if address.ca_file is None else str(address.ca_file))
    except OSError as error:
        raise InputError(str(address.ca_file), str(error), "certificates in PEM") from error
    return HTTPSConnection(parts.hostname, parts.port, timeout=TIMEOUT_S, context=context, blocksize=SENT_AT_ONCE)


def _reason(text: bytes) -> str:
    try:
        plain: Any = json.loads(text)
        return shortened(" ".join(str(plain["detail"]).split()), 200)
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""


def _offset(text: str | None, size: int) -> int:
    """Where to go on; from the begin where the hub has as much as we or more and yet not the segment."""
    offset = int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 16 else 0
    return offset if offset < size else 0


def _opened(path: Path) -> BinaryIO:
    """A segment of our own spool; what is no regular file is refused, not waited for."""
    try:
        stream = os.fdopen(open_private(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0)
    except OSError as error:
        raise SegmentRefusedError(f"{path}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise SegmentRefusedError(f"{path}: not a regular file")
    return cast(BinaryIO, stream)


def _digest(stream: BinaryIO) -> str:
    """A `Repr-Digest` header (RFC 9530)."""
    digest = hashlib.sha256()
    while block := stream.read(READ_AT_ONCE):
        digest.update(block)
    return f"sha-256=:{base64.b64encode(digest.digest()).decode()}:"


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    return str(error) or type(error).__name__
