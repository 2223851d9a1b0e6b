"""Archives of Performance Co-Pilot: `disk.dev.*` of the host that pmlogger watched, and Lustre by `iolens export pcp`.

Counters stay raw; units are those of each metric's description. Where logging was interrupted (a mark) the archive does
not tell whether counting began anew: the store's rule for resets judges, as for any two samples far apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from iolens.errors import InputError
from iolens.records import Capture, Item, Problem
from iolens.sources.devices.block_devices import given_by_user, refuse_settings
from iolens.sources.pcp import pcp_disks, pcp_lustre
from iolens.sources.pcp.lustre_metrics import METRICS
from iolens.sources.pcp.pcp_archive import (
    FILE,
    MAGIC,
    Archive,
    ArchiveMetadata,
    archives_below,
    find_archive,
    opened,
    packing_of,
    read_label,
)
from iolens.sources.pcp.pcp_readings import problem_of
from iolens.sources.reading.captures import content_identity, read_each
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.saved_text import combined_identity


class Pcp:
    """PCP archives."""

    name = "pcp"
    whole_directories = True
    takes_base_names = True
    summary = "Performance Co-Pilot archives with disk.dev.* or iolens.*: a base name, any file of one, or a directory"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it begins with an archive's label, or is a directory of archives."""
        if path.is_dir():
            return any(FILE.fullmatch(item.name) and ".meta" in item.name for item in path.iterdir())
        if packing_of(head) is None:
            return int.from_bytes(head[4:8]) in MAGIC
        return FILE.fullmatch(path.name) is not None and _has_label(path)

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per archive, whichever of its files were named, the earliest first."""
        named, refused = read_each(paths, _archives)
        yield from refused
        archives = list(dict.fromkeys(archive for group in named for archive in group))
        readings, refused = read_each([archive.meta for archive in archives], partial(_open, options=options))
        yield from refused
        for reading in sorted(readings, key=lambda item: item.metadata.label.start_us):
            yield Capture(str(reading.archive.volumes[0]), reading.identity(), reading.items)


SOURCE: Final = Pcp()


@dataclass(frozen=True, slots=True)
class _Reading:
    """One archive and what the user said about it."""

    archive: Archive
    metadata: ArchiveMetadata
    options: ReadOptions

    def identity(self) -> str:
        """Over all its files: values and descriptions."""
        files = [content_identity(path) for path in self.archive.files]
        return combined_identity(files, **given_by_user(self.options))

    def items(self) -> Iterator[Item]:
        """Every sample of every device, target and mount; what both readings have to say is said once."""
        said: set[Problem] = set()
        for item in self._items():
            if isinstance(item, Problem):
                if item in said:
                    continue
                said.add(item)
            yield item

    def _items(self) -> Iterator[Item]:
        place = str(self.archive.base)
        if self.metadata.damage is not None:
            yield problem_of(self.metadata.damage)
        disks, problems = pcp_disks.measures(self.metadata, place)
        lustre, refused = pcp_lustre.measures(self.metadata, place)
        yield from (*problems, *refused)
        if not disks and not lustre:
            known = ", ".join(pcp_disks.METRICS)
            yield Problem(
                place, None, f"no counter of a disk in it: expected some of {known}; and none of Lustre: iolens.*"
            )
        if disks:
            yield from pcp_disks.samples(self.archive, self.metadata, self.options, disks)
        if lustre:
            yield from pcp_lustre.samples(self.archive, self.metadata, self.options, lustre)


def _archives(path: Path) -> list[Archive]:
    if path.is_dir():
        archives = archives_below(path)
        if not archives:
            raise InputError(str(path), "no archive in this directory", "NAME.meta and NAME.0, NAME.1, …")
        return archives
    return [find_archive(path)]


def _open(meta: Path, options: ReadOptions) -> _Reading:
    refuse_settings(options, "pcp", str(meta))
    return _Reading(find_archive(meta), ArchiveMetadata.read(meta, _is_wanted), options)


def _is_wanted(metric: str) -> bool:
    return metric in pcp_disks.METRICS or metric in METRICS


def _has_label(path: Path) -> bool:
    try:
        with opened(path) as stream:
            read_label(stream, path)
    except InputError:
        return False
    return True
