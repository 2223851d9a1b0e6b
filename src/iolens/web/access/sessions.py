"""Sessions of browsers: who logged in with a token has a cookie, kept as a hash, until it is idle or old."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from iolens.web.access.access_database import AccessDatabase
from iolens.web.access.tokens import AccessToken, hash_of, token_of

IDLE_S: Final = 12 * 3600
LONGEST_S: Final = 7 * 86400
USED_S: Final = 600  # how coarse the last use is
MOST_PER_TOKEN: Final = 100
_LONGEST_COOKIE: Final = 64


@dataclass(frozen=True, slots=True)
class SessionBook:
    """All sessions of a server, in the file of its tokens."""

    database: AccessDatabase
    clock: Callable[[], float] = time.time

    def begin(self, token: AccessToken) -> str:
        """A new session: the value of its cookie."""
        cookie, now = secrets.token_urlsafe(32), int(self.clock())
        with self.database.transaction() as connection:
            connection.execute(
                "DELETE FROM sessions WHERE last_used_s <= ? OR created_s <= ?", (now - IDLE_S, now - LONGEST_S)
            )
            connection.execute(
                "DELETE FROM sessions WHERE hash IN"
                " (SELECT hash FROM sessions WHERE token = ? ORDER BY last_used_s DESC LIMIT -1 OFFSET ?)",
                (token.id, MOST_PER_TOKEN - 1),
            )
            connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?)", (hash_of(cookie), token.id, now, now))
        return cookie

    def holder(self, cookie: str) -> AccessToken | None:
        """The token with which the session of this cookie began, if both are in force."""
        if not 0 < len(cookie) <= _LONGEST_COOKIE:
            return None
        row = self.database.row(
            "SELECT t.id, t.name, t.role, t.user, t.created_s, t.expires_s, t.last_used_s, t.revoked_s, s.last_used_s,"
            " s.created_s FROM sessions s JOIN tokens t ON t.id = s.token WHERE s.hash = ?",
            hash_of(cookie),
        )
        if row is None:
            return None
        token, (used, created), now = token_of(row[:-2]), row[-2:], self.clock()
        if not token.is_valid(now) or now - used >= IDLE_S or now - created >= LONGEST_S:
            return None
        if now - used >= USED_S:
            with suppress(sqlite3.Error):  # the request counts more than the note
                self.database.change("UPDATE sessions SET last_used_s = ? WHERE hash = ?", int(now), hash_of(cookie))
        return token

    def end(self, cookie: str) -> None:
        """The cookie opens nothing any more."""
        self.database.change("DELETE FROM sessions WHERE hash = ?", hash_of(cookie))
