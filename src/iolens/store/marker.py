"""`iolens-store.json` at the top of a store: that it is one, and how far its books in `batches` had come.

The books say what every other table must hold; this says what the books must hold. It is written after them, so it may
lag behind, and never runs ahead.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

from iolens.schema import SCHEMA_VERSION

MARKER: Final = "iolens-store.json"


@dataclass(frozen=True, slots=True)
class Marker:
    """An entry of the log of `batches` that was on disk: its version and the checksum of its text."""

    batches_version: int
    batches_entry_sha256: str
    schema_version: int = SCHEMA_VERSION

    def holds(self, checksum: str | None) -> bool:
        """Whether that is the entry; one that was cleared away behind a checkpoint was."""
        return checksum in (None, self.batches_entry_sha256)

    def encoded(self) -> bytes:
        """As it is stored."""
        return json.dumps(asdict(self), indent=2).encode() + b"\n"

    @classmethod
    def decoded(cls, content: bytes) -> Marker:
        """From what is stored; ValueError when that is no marker."""
        try:
            result = json.loads(content)
            return cls(
                int(result["batches_version"]), str(result["batches_entry_sha256"]), int(result["schema_version"])
            )
        except (LookupError, TypeError) as error:
            raise ValueError(f"no marker of a store: {error}") from error
