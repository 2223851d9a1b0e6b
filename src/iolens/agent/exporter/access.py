"""Who may read the page: TLS, and passwords of which only hashes are kept. Standard library only."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import ssl
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from iolens.errors import InputError, UsageError

# TLS with a given certificate, for the exporter and for `iolens serve`. Standard library only -------------------------


def tls_of(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """A server's side of TLS 1.2 or newer; None without a certificate."""
    if (certificate is None) != (key is None):
        raise UsageError("--tls-cert and --tls-key go together")
    return _context(certificate, key) if certificate is not None and key is not None else None


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise UsageError(f"--tls-cert {certificate} --tls-key {key}: {reason}") from None
    return context


def _no_password() -> str:
    raise ValueError("the key has a password: nobody is here to give it")


KIND: Final = "scrypt"
COST, BLOCK, LANES = 1 << 14, 8, 1  # 16 MiB and 50 to 80 ms for each guess
MOST_COST_BYTES: Final = 128 << 20  # a line that asks for more would be a way to stop the exporter
HASH_BYTES: Final = 32
LONGEST_FILE: Final = 1 << 20
LONGEST_HEADER: Final = 4096
SHAPE: Final = f"USER:{KIND}$COST$BLOCK$LANES$SALT$HASH, as `iolens export password USER` prints it"


class PasswordHash(NamedTuple):
    """A password as it is kept; `salt` and `digest` are bytes."""

    cost: int
    block: int
    lanes: int
    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, password: str) -> PasswordHash:
        """The hash of a password, with a new salt."""
        salt = secrets.token_bytes(16)
        return cls(COST, BLOCK, LANES, salt, _digest(password.encode(), salt, COST, BLOCK, LANES))

    @classmethod
    def parse(cls, text: str) -> PasswordHash:
        """`scrypt$16384$8$1$SALT$HASH`; ValueError for anything else."""
        kind, cost, block, lanes, salt, digest = text.split("$")
        result = cls(int(cost), int(block), int(lanes), _bytes(salt), _bytes(digest))
        is_bounded = 128 * result.cost * result.block * result.lanes <= MOST_COST_BYTES and min(result[:3]) > 0
        if (
            kind != KIND
            or not is_bounded
            or result.cost & (result.cost - 1)
            or len(result.digest) != HASH_BYTES
            or len(result.salt) < 8
        ):
            raise ValueError
        return result

    def matches(self, password: bytes) -> bool:
        """Whether this is the password; it takes as long whether or not."""
        return hmac.compare_digest(_digest(password, self.salt, self.cost, self.block, self.lanes), self.digest)

    def __str__(self) -> str:
        salt, digest = (base64.b64encode(value).decode() for value in (self.salt, self.digest))
        return f"{KIND}${self.cost}${self.block}${self.lanes}${salt}${digest}"


def password_line(user: str, password: str) -> str:
    """A line for the file of users."""
    if not user or ":" in user or user.startswith("#") or not user.isprintable() or user != user.strip():
        raise UsageError("a user has a name without colon and control characters")
    if not password:
        raise UsageError("the password is empty")
    return f"{user}:{PasswordHash.of(password)}"


@dataclass(eq=False)
class Passwords:
    """Users and their hashes. Who was admitted once is known again without the work of another hash."""

    hashes: Mapping[str, PasswordHash]
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _admitted: set[bytes] = field(default_factory=set, repr=False)  # keyed hashes of headers that were right
    _nobody: PasswordHash = field(default_factory=lambda: PasswordHash.of(secrets.token_hex()), repr=False)

    @classmethod
    def read(cls, path: Path) -> Passwords:
        """From a file of lines `user:hash`; blank lines and those that begin with # are left out."""
        try:
            with path.open("rb") as stream:
                text = stream.read(LONGEST_FILE).decode()
        except OSError as error:
            raise UsageError(f"--auth-file {path}: {error.strerror}") from None
        except ValueError:
            raise InputError(str(path), "not text", SHAPE) from None
        hashes = {}
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                user, _, rest = line.strip().partition(":")
                try:
                    hashes[user] = PasswordHash.parse(rest)
                except ValueError:  # the line is not shown: it may hold a password
                    raise InputError(str(path), "not a user and a hash", SHAPE, number) from None
        if not hashes:
            raise InputError(str(path), "no user in it", SHAPE)
        return cls(hashes)

    def admits(self, header: str) -> bool:
        """Whether an `Authorization` header has a user and the password of that user."""
        if len(header) > LONGEST_HEADER:
            return False
        known = hmac.digest(self._key, header.encode("latin-1", "replace"), "sha256")
        if known in self._admitted:
            return True
        scheme, _, code = header.partition(" ")
        try:
            user, colon, password = base64.b64decode(code.strip(), validate=True).partition(b":")
        except (binascii.Error, ValueError):
            return False
        if scheme.lower() != "basic" or not colon:
            return False
        name = user.decode("utf-8", "replace")
        is_right = self.hashes.get(name, self._nobody).matches(password)  # a user that is not there takes as long
        if is_right and name in self.hashes:
            self._admitted.add(known)  # no more than there are users
            return True
        return False


class ExporterAccess(NamedTuple):
    """How the page is protected; None: not so."""

    tls: ssl.SSLContext | None = None
    passwords: Passwords | None = None

    @classmethod
    def of(cls, certificate: Path | None, key: Path | None, auth_file: Path | None) -> ExporterAccess:
        """As the options ask for it."""
        return cls(tls_of(certificate, key), None if auth_file is None else Passwords.read(auth_file))

    def concerns(self, *, is_local: bool, auth_file: Path | None = None) -> list[str]:
        """What an administrator should know of it."""
        lines = []
        if not is_local and self.passwords is None:
            lines.append("other machines can reach this address, and nothing asks them who they are: see --auth-file")
        if not is_local and self.passwords is not None and self.tls is None:
            lines.append("passwords cross the network in the clear: see --tls-cert")
        if auth_file is not None and auth_file.stat().st_mode & (stat.S_IRWXO | stat.S_IWGRP):
            lines.append(f"{auth_file}: others may read or write it; chmod 640")
        return lines


def _digest(password: bytes, salt: bytes, cost: int, block: int, lanes: int) -> bytes:
    memory = 256 * cost * block * lanes + (1 << 20)
    return hashlib.scrypt(password, salt=salt, n=cost, r=block, p=lanes, maxmem=memory, dklen=HASH_BYTES)


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
