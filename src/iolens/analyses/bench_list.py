"""The list of studies in a store."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class StoredStudy:
    """A study in the store."""

    name: str
    kind: str
    places: tuple[str, ...]
    hosts: tuple[str, ...]
    runs: int
    began: datetime | None
    ended: datetime | None


@dataclass(frozen=True, slots=True)
class StudyList:
    """All of them, the newest first."""

    studies: list[StoredStudy]
