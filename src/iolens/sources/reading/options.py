"""What the user supplies where a format lacks it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from iolens.reading_rules import DeviceRule, ProjectRule


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """For all files of one call; every field may be missing."""

    filesystem: str | None = None
    target: str | None = None
    timezone: str | None = None
    interval_s: float | None = None
    at: datetime | None = None
    since: datetime | None = None  # only times from here on, where a format can skip
    until: datetime | None = None  # and before this one
    settings: Mapping[str, Any] = field(default_factory=dict)  # `[sources.NAME]` of the configuration
    last_jobs: Mapping[str | None, int] = field(default_factory=dict)  # by cluster: the last stored, µs since 1970
    zones: Mapping[str, str] = field(default_factory=dict)  # configured time zones by file system
    mounts: Mapping[str, str] = field(default_factory=dict)  # configured mount points on compute nodes → file system
    devices: DeviceRule = field(default_factory=DeviceRule)  # `[devices]` of the configuration
    projects: ProjectRule = field(default_factory=ProjectRule)  # `[projects]` of the configuration
