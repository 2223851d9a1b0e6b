"""The key of pseudonyms: read from a file, or random and held in memory alone. It is never shown or logged."""

from __future__ import annotations

import secrets
import stat
from pathlib import Path
from typing import Final

from iolens.errors import InputError, UsageError
from iolens.messages import warn

SHORTEST_KEY: Final = 16  # bytes
LONGEST_KEY: Final = 1 << 16
RANDOM_BYTES: Final = 32


def key_of(path: Path | None) -> bytes:
    """What a file holds, without blanks at its ends; without a file, random bytes that nobody can come by again."""
    if path is None:
        return secrets.token_bytes(RANDOM_BYTES)
    try:
        with path.open("rb") as stream:
            key = stream.read(LONGEST_KEY + 1).strip()
            is_open = path.stat().st_mode & stat.S_IRWXO
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error)) from error
    if not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        raise UsageError(
            f"{path}: a key has at least {SHORTEST_KEY} bytes and at most {LONGEST_KEY}; "
            "make one with `openssl rand -hex 32`"
        )
    if is_open:
        warn(f"{path}: others may read the key, and then undo the pseudonyms; chmod 600")
    return key
