"""The newest study of each kind and place in a store, as a report shows them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from iolens.analyses.bench_list import StoredStudy


@dataclass(frozen=True, slots=True)
class ReportedStudies:
    """Studies with their results; they belong to no file system's chapter, since one may compare several."""

    studies: list[tuple[StoredStudy, Any]]
    filesystem: str | None = None
    window_start: datetime | None = None
    window_end: datetime | None = None
