"""The page size of a client, which its RPC histograms count in (DEFINITIONS, "RPC pages").

Read from the node or given; checked against the bytes of `osc.*.stats`, never those of llite, which include cache hits.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from iolens.errors import InputError
from iolens.sources.reading.bounded_input import parameter_bytes

USUAL: Final = 4096
PAGE_SIZES: Final = (4096, 8192, 16384, 32768, 65536)
_AUXV: Final = ("proc/self/auxv", "proc/1/auxv")
_SMAPS: Final = ("proc/self/smaps", "proc/1/smaps")
_AT_PAGESZ: Final = 6
_KERNEL_PAGE: Final = re.compile(rb"^(?:Kernel|MMU)PageSize: +(\d{1,5}) kB$", re.MULTILINE)
_FULL_PAGES: Final = 4  # fewer bytes per page than this part of it: most pages were nearly empty, or are smaller


class PageSize(NamedTuple):
    """Bytes, and where that is known from."""

    bytes: int
    origin: str


class RpcVolume(NamedTuple):
    """One direction of one target: bytes and RPCs by `stats`, RPCs and the most pages by `rpc_stats`."""

    moved_bytes: int
    counted: int
    rpcs: int
    pages: int

    @property
    def comparable(self) -> bool:
        """Whether both texts count the same RPCs: each can be cleared alone."""
        return self.pages > 0 and abs(self.counted - self.rpcs) <= max(16, self.rpcs // 100)


class Verdict(NamedTuple):
    """The page size to use, whether the known one cannot be, and what there is to say."""

    bytes: int
    wrong: str | None
    note: str | None


def judged(known: PageSize | None, volumes: Iterable[RpcVolume], setting: str) -> Verdict:
    """The page size, given what is known of it and what `osc.*.stats` say."""
    comparable = [volume for volume in volumes if volume.comparable]
    per_page = max((volume.moved_bytes / volume.pages for volume in comparable), default=None)
    supply = f"; set page_size of [{setting}]"
    if per_page is None:
        said = f"{known.bytes} bytes ({known.origin})" if known else f"{USUAL} bytes, assumed"
        note = f"page size {said}: could not be checked, for no osc.*.stats has bytes of the same RPCs"
        return Verdict(known.bytes if known else USUAL, None, note + ("" if known else supply))
    measured = next((size for size in PAGE_SIZES if per_page <= size), None)
    if measured is None:
        wrong = f"osc.*.stats have {per_page:.0f} bytes per page of rpc_stats: more than any page size"
        return Verdict(known.bytes if known else USUAL, wrong, None)
    if known is None:
        return Verdict(measured, None, f"page size {measured} bytes, by the bytes of osc.*.stats{supply} to be sure")
    if measured > known.bytes:
        wrong = f"page size {known.bytes} bytes ({known.origin}) cannot be: osc.*.stats have {per_page:.0f} per page"
        return Verdict(measured, f"{wrong}; {measured} is used", None)
    note = f"page size {known.bytes} bytes ({known.origin}), but osc.*.stats have only {per_page:.0f} per page"
    return Verdict(known.bytes, None, note if per_page * _FULL_PAGES < known.bytes else None)


def page_size_of_node(root: Path) -> PageSize | None:
    """The page size as the files below `root` give it; of the machine this runs on for `/`."""
    if str(root.absolute()) == "/":
        return PageSize(os.sysconf("SC_PAGE_SIZE"), "of this node")
    return next((PageSize(size, place) for place, size in _said(root) if _is_page_size(size)), None)


def page_size_setting(settings: Mapping[str, Any], source: str) -> PageSize | None:
    """`page_size` of `[sources.NAME]`."""
    given = settings.get("page_size")
    if given is None:
        return None
    if type(given) is not int or not _is_page_size(given):
        raise InputError(f"sources.{source}.page_size", f"{given!r} is no page size", "bytes, such as 4096 or 65536")
    return PageSize(given, "given")


def _is_page_size(size: int) -> bool:
    return 1024 <= size <= 1 << 24 and size & (size - 1) == 0


def _said(root: Path) -> Iterator[tuple[str, int]]:
    for place in _AUXV:
        data = _text(root / place)
        data += bytes(-len(data) % 16)  # what a copy is padded with was taken off
        for order in "<>":
            pairs = struct.iter_unpack(f"{order}QQ", data)
            yield from ((place, value) for key, value in pairs if key == _AT_PAGESZ)
    for place in _SMAPS:
        yield from ((place, int(size) * 1024) for size in _KERNEL_PAGE.findall(_text(root / place))[:1])


def _text(path: Path) -> bytes:
    try:
        return parameter_bytes(path) if path.is_file() else b""
    except OSError:
        return b""
