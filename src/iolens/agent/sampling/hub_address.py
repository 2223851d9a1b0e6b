"""Where an agent pushes its segments: the address of a hub, its token, and the certificates that are trusted.

Standard library only, and quick to import: the sampler passes it on.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from iolens.errors import InputError, IolensError, UsageError

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
