"""Tokens: random secrets that are shown once and kept as hashes, each with a name and a role."""

from __future__ import annotations

import hashlib
import re
import secrets
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from iolens.errors import UsageError
from iolens.web.access.access_database import AccessDatabase
from iolens.web.access.principal import ROLES, Principal, Role

PREFIX: Final = "iolens_"
TOKEN: Final = re.compile(PREFIX + r"[A-Za-z0-9_-]{43}")
USED_S: Final = 3600  # how coarse the last use is: each one would be a write
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_LOGIN: Final = re.compile(r"[^\s:/\x00-\x1f\x7f]{1,64}")
_COLUMNS: Final = "id, name, role, user, created_s, expires_s, last_used_s, revoked_s"


@dataclass(frozen=True, slots=True)
class AccessToken:
    """What is known of a token; times in seconds since 1970. The token itself is not known."""

    id: int
    name: str
    role: Role
    user: str | None
    created_s: int
    expires_s: int | None
    last_used_s: int | None
    revoked_s: int | None

    def is_valid(self, now: float) -> bool:
        """Whether it opens anything at that time."""
        return self.revoked_s is None and (self.expires_s is None or now < self.expires_s)

    @property
    def principal(self) -> Principal:
        """Who asks with it."""
        return Principal(self.name, self.role, self.user)


def hash_of(secret: str) -> bytes:
    """SHA-256: secrets have 256 random bits, so that there is no dictionary a slow hash would have to hold up.

    A look-up by the hash tells nothing by its time: who sends a secret cannot choose the bits of its hash.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def without_tokens(text: str) -> str:
    """The text as it may stand in a log."""
    return TOKEN.sub(f"{PREFIX}(hidden)", text)


@dataclass(frozen=True, slots=True)
class TokenBook:
    """All tokens of a server. Each question goes to the file: a token that was revoked is refused at once."""

    database: AccessDatabase
    clock: Callable[[], float] = time.time

    def add(self, name: str, role: Role, user: str | None = None, expires_in_s: float | None = None) -> str:
        """A new token, which is shown here and never again."""
        _check(name, role, user, expires_in_s)
        token, now = PREFIX + secrets.token_urlsafe(32), int(self.clock())
        expires = None if expires_in_s is None else now + int(expires_in_s)
        try:
            self.database.change(
                "INSERT INTO tokens (name, role, user, hash, created_s, expires_s) VALUES (?, ?, ?, ?, ?, ?)",
                name, role, user, hash_of(token), now, expires,
            )  # fmt: skip
        except sqlite3.IntegrityError:
            raise UsageError(f"there is a token {name}: revoke it first, or take another name") from None
        return token

    def tokens(self) -> list[AccessToken]:
        """All that were ever added, the oldest first."""
        return [token_of(row) for row in self.database.rows(f"SELECT {_COLUMNS} FROM tokens ORDER BY id")]  # noqa: S608

    def has_valid(self) -> bool:
        """Whether there is a token that opens something."""
        now = self.clock()
        return any(token.is_valid(now) for token in self.tokens())

    def revoke(self, name: str) -> None:
        """From now on it opens nothing, and its sessions are over."""
        now = int(self.clock())
        with self.database.transaction() as connection:
            row = connection.execute("SELECT id FROM tokens WHERE name = ? AND revoked_s IS NULL", (name,)).fetchone()
            if row is None:
                raise UsageError(f"no token {name!r} is in force: `iolens serve token list` shows all")
            connection.execute("UPDATE tokens SET revoked_s = ? WHERE id = ?", (now, row[0]))
            connection.execute("DELETE FROM sessions WHERE token = ?", row)

    def holder(self, secret: str) -> AccessToken | None:
        """The token that this secret is, if it is one in force."""
        if not TOKEN.fullmatch(secret):
            return None
        row = self.database.row(f"SELECT {_COLUMNS} FROM tokens WHERE hash = ?", hash_of(secret))  # noqa: S608
        token, now = None if row is None else token_of(row), self.clock()
        if token is None or not token.is_valid(now):
            return None
        if now - (token.last_used_s or 0) >= USED_S:
            with suppress(sqlite3.Error):  # a full disk, another writer: the request counts more than the note
                self.database.change("UPDATE tokens SET last_used_s = ? WHERE id = ?", int(now), token.id)
        return token


def token_of(row: tuple[Any, ...]) -> AccessToken:
    """From its columns in the file."""
    return AccessToken(row[0], row[1], cast("Role", row[2]), *row[3:])


def _check(name: str, role: Role, user: str | None, expires_in_s: float | None) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r}: a token's name has letters, digits and . _ @ -, at most 64")
    if role not in ROLES:
        raise UsageError(f"{role!r} is no role: one of {', '.join(ROLES)}")
    if (role == "user") != (user is not None):
        raise UsageError("a login name (--user) goes with the role user, and with no other")
    if user is not None and not _LOGIN.fullmatch(user):
        raise UsageError(f"{user!r} is no login name")
    if expires_in_s is not None and expires_in_s < 1:
        raise UsageError("a token is in force for at least a second (--expires)")
