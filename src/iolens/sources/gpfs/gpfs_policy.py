"""Lists that IBM Spectrum Scale's policy engine writes for a LIST rule (`mmapplypolicy -I defer -f PREFIX`).

By default SHOW prints what `contrib/gpfs-policy.rules` asks for; other rules are reported in `[sources.gpfs-policy]`.
Written from the public documentation: no list of a real system was at hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from iolens.errors import InputError
from iolens.records import Capture
from iolens.sources.contents.listing_scans import listing_captures
from iolens.sources.devices.block_devices import refuse_settings
from iolens.sources.gpfs.gpfs_list import SETTINGS, ListLayout, layout_of
from iolens.sources.reading.bounded_input import unpacked, unpacked_head
from iolens.sources.reading.options import ReadOptions

TRIED_LINES: Final = 100
_LINE: Final = re.compile(rb"(?:<\d+> )?\d+ \d+ \d+ (?:.* )?-- (?:/|%2[Ff])", re.DOTALL)
_WHERE: Final = "[sources.gpfs-policy]"


class GpfsPolicy:
    """Lists of the policy engine."""

    name = "gpfs-policy"
    summary = "lists that a LIST rule of IBM Spectrum Scale's `mmapplypolicy -I defer` writes; plain or gzip"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether most of the first lines are `inode generation snapshot … -- /path`."""
        return _is_list(unpacked(head))

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per scan: files of one stated time are its parts."""
        refuse_settings(options, "gpfs-policy", _WHERE, SETTINGS)
        layout = layout_of(options.settings, options.timezone)
        said = {"layout": layout if layout != ListLayout() else None}
        yield from listing_captures(paths, options, partial(_reader, layout=layout), said)


SOURCE: Final = GpfsPolicy()


def _reader(path: Path, layout: ListLayout) -> ListLayout:
    """The layout, if the file is such a list at all."""
    head = unpacked_head(path)
    if not _is_list(head):
        problem = "its first lines are none of a policy list" if head else "empty file"
        raise InputError(str(path), problem, "lines of `inode generation snapshot  SHOW -- /path`")
    return layout


def _is_list(head: bytes) -> bool:
    lines = [line for line in head.split(b"\n")[:-1][:TRIED_LINES] if line.strip() and not line.startswith(b"[I]")]
    return 2 * sum(_LINE.match(line) is not None for line in lines) > len(lines)
