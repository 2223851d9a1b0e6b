"""Rules of the configuration that sources read by.

Apart from the rest of the configuration, because `job begin` on a compute node needs no more of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DeviceRule:
    """Which block devices are measured, by patterns such as `sd*`: `sources/devices/block_devices.py`."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    system: bool | None = None  # the disk that holds /: kept, left out, or (None) left out where there are others


@dataclass(frozen=True, slots=True)
class ProjectRule:
    """How an inode's project is known: by where it is, such as `/scratch/{project}`, or by its project id."""

    directories: tuple[str, ...] = ()  # the first that matches counts; `*` is any one name
    ids: Mapping[str, str] = field(default_factory=dict)  # project id → name; others are called by their number
