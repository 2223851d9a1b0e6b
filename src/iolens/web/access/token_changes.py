"""What `iolens serve token` does: tokens are made, listed and revoked, and the audit log says by whom."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from iolens.errors import InputError
from iolens.units import UNKNOWN
from iolens.visible_text import shown_name
from iolens.web.access.access_database import FILE, AccessDatabase
from iolens.web.access.audit import AuditLog
from iolens.web.access.principal import Role
from iolens.web.access.tokens import AccessToken, TokenBook

_COLUMNS: Final = ("name", "role", "user", "status", "created", "expires", "last_used")


def add_token(state: Path, name: str, role: Role, user: str | None, expires_in_s: float | None) -> str:
    """A new token."""
    with _opened(state) as book:
        token = book.add(name, role, user, expires_in_s)
    AuditLog(state).note("token added", principal=_login(), token=name, role=role, user=user)
    return token


def revoke_token(state: Path, name: str) -> None:
    """The token of that name is in force no more."""
    _refuse_absent(state)
    with _opened(state) as book:
        book.revoke(name)
    AuditLog(state).note("token revoked", principal=_login(), token=name)


def listed_tokens(state: Path) -> list[dict[str, Any]]:
    """All tokens, as JSON has them."""
    _refuse_absent(state)
    with _opened(state) as book:
        return [_described(token, book.clock()) for token in book.tokens()]


def token_lines(tokens: list[dict[str, Any]]) -> list[str]:
    """The same, as a table."""
    rows = [_COLUMNS, *([shown_name(str(token[key] or UNKNOWN)) for key in _COLUMNS] for token in tokens)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


@contextmanager
def _opened(state: Path) -> Iterator[TokenBook]:
    database = AccessDatabase(state)
    try:
        yield TokenBook(database)
    finally:
        database.close()


def _refuse_absent(state: Path) -> None:
    if not (state / FILE).exists():
        raise InputError(str(state), "no token was made here", "the directory of the server: --state, or $IOLENS_STATE")


def _described(token: AccessToken, now: float) -> dict[str, Any]:
    status = "valid" if token.is_valid(now) else "expired" if token.revoked_s is None else "revoked"
    return {
        "name": token.name,
        "role": token.role,
        "user": token.user,
        "status": status,
        "created": _time(token.created_s),
        "expires": _time(token.expires_s),
        "last_used": _time(token.last_used_s),
        "revoked": _time(token.revoked_s),
    }


def _time(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return "unknown"
