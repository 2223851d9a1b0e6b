"""Parts of a scan saved by `iolens scan --save`, on one node or several: read together, they are one scan.

Lines of JSON, plain or gzip: what was scanned, pieces of findings, and an end, without which the file was cut.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Capture, Item, Note, Problem
from iolens.scan.findings import Findings, Links, ScanPart, from_plain
from iolens.sources.contents.inode_counts import InodeCounts
from iolens.sources.reading.bounded_input import Line, numbered_lines, unpacked
from iolens.sources.reading.captures import content_identity, read_each
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.saved_text import combined_identity

FORMAT: Final = 1
MOST_PARTS: Final = 1_000_000
LATEST_US: Final = 253_402_300_800 * 1_000_000  # the year 10000
LONGEST_PIECE: Final = 256 << 20  # one line of sums: millions of owners, types and bins
_MARK: Final = "iolens_scan"
_BEGINS: Final = b'{"iolens_scan":'
_TEXTS: Final = ("filesystem", "root", "scan")


class PartHeader(NamedTuple):
    """Which part of which scan."""

    filesystem: str
    root: str
    time_us: int
    scan: str
    part: ScanPart


@dataclass(frozen=True, slots=True)
class WholeScan:
    """A scan with nothing missing, each hard-linked inode counted once."""

    filesystem: str
    roots: tuple[str, ...]
    time_us: int
    scan: str
    findings: Findings
    links: Links

    def items(self) -> Iterator[Item]:
        """Rows of `contents`; what could not be read is reported without its path, for the store keeps none."""
        findings = self.findings
        if findings.unreadable:
            yield Problem(
                self.filesystem, None, f"{_places(findings.unreadable)} could not be read and are not counted"
            )
        if findings.vanished:
            yield Note(self.filesystem, None, f"{_places(findings.vanished)} went away during the scan")
        yield from findings.counts.rows(self.filesystem, self.scan)


def saved(header: PartHeader, findings: Findings) -> Iterator[bytes]:
    """The lines of a part. Hard-linked inodes are counted here only where all their names were seen."""
    findings.settle_complete()
    yield _line({_MARK: FORMAT} | header._asdict())
    pieces = 0
    for pieces, piece in enumerate(findings.plain(), 1):  # noqa: B007 # the number of the last is used
        yield _line(piece)
    yield _line({"end": pieces})


def packed(path: Path, lines: Iterable[bytes]) -> bytes:
    """The content of a part's file: gzip where its name says so. The same part gives the same bytes."""
    content = b"".join(lines)
    return gzip.compress(content, mtime=0) if path.suffix == ".gz" else content


def merged(paths: Sequence[Path]) -> WholeScan:
    """Parts that together are one scan; an error where one is missing, comes twice, or belongs to another."""
    parts = [_read(path) for path in paths]
    headers = {path: header for path, (header, _) in zip(paths, parts, strict=True)}
    _check(headers)
    first = parts[0][0]
    findings = Findings(InodeCounts(first.time_us))
    for _, item in parts:
        findings.add(item)
    names = sorted({header.scan for header in headers.values()})
    scan = names[0] if len(names) == 1 else hashlib.sha256("\0".join(names).encode()).hexdigest()[:16]
    roots = tuple(sorted({header.root for header in headers.values()}))
    return WholeScan(first.filesystem, roots, first.time_us, scan, findings, findings.settle())


def _check(headers: Mapping[Path, PartHeader]) -> None:
    first_path, first = next(iter(headers.items()))
    seen: dict[tuple[str, ScanPart], Path] = {}
    for path, header in headers.items():
        if (header.filesystem, header.time_us) != (first.filesystem, first.time_us):
            raise InputError(str(path), f"not of the same file system and time as {first_path}", "one --at for all")
        if (before := seen.setdefault((header.root, header.part), path)) is not path:
            raise InputError(str(path), f"the same part of {header.root} as {before}")
    for path, header in headers.items():
        _check_complete(
            path, header, [scan_part.part for scan_part in headers.values() if scan_part.root == header.root]
        )
        above = [
            scan_part.root for scan_part in headers.values() if header.root.startswith(scan_part.root.rstrip("/") + "/")
        ]
        if above:
            raise InputError(str(path), f"{header.root} lies in {above[0]}, which another part has counted")


def _check_complete(path: Path, header: PartHeader, parts: list[ScanPart]) -> None:
    if any((part.of, part.depth) != (header.part.of, header.part.depth) for part in parts):
        raise InputError(str(path), f"parts of {header.root} that were cut differently", "one --part …/N for all")
    missing = sorted(set(range(1, header.part.of + 1)) - {part.number for part in parts})
    if missing:
        which = ", ".join(map(str, missing))
        raise InputError(str(path), f"of {header.part.of} parts, part {which} is missing", "all parts in one call")


def _read(path: Path) -> tuple[PartHeader, Findings]:
    lines = _json_lines(path)
    header = _header(path, next(lines, None))
    findings = Findings(InodeCounts(header.time_us))
    for pieces, (number, record) in enumerate(lines):
        if "end" in record:
            if record["end"] != pieces:
                raise InputError(str(path), f"{pieces} pieces", f"{record['end']}", number)
            return header, findings
        try:
            findings.add(from_plain(header.time_us, record))
        except ValueError as error:
            raise InputError(str(path), str(error), "findings of a scan", number) from error
    raise InputError(str(path), "the file ends in the middle of it", "a part as `iolens scan --save` wrote it")


def _read_header(path: Path) -> tuple[Path, PartHeader, str]:
    return path, _header(path, next(_json_lines(path), None)), content_identity(path)


def _header(path: Path, pair: tuple[int, dict[str, Any]] | None) -> PartHeader:
    record = pair[1] if pair is not None else {}
    if record.get(_MARK) != FORMAT:
        raise InputError(str(path), "not a part of a scan", "a file that `iolens scan --save` wrote")
    try:
        number, of, depth = record["part"]
        part, time_us = ScanPart(number, of, depth), record["time_us"]
        if not all(type(value) is int for value in (*part, time_us)):
            raise ValueError("a number that is not whole")
        if not 1 <= number <= of <= MOST_PARTS or depth < 1 or not 0 <= time_us < LATEST_US:
            raise ValueError("a number out of range")
        if not all(isinstance(record[name], str) for name in _TEXTS):
            raise ValueError("a name that is no text")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(str(path), f"not the header of a part: {error}", line=1) from error
    return PartHeader(record["filesystem"], record["root"], time_us, record["scan"], part)


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for line in numbered_lines(path, LONGEST_PIECE):
        if not isinstance(line, Line):
            raise InputError(line.place, line.reason, line=line.line)
        try:
            record = json.loads(line.text)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise InputError(str(path), "not a part of a scan", "a line of JSON", line.number)
        yield line.number, record


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def _places(count: int) -> str:
    return "1 place" if count == 1 else f"{count} places"


class ScanParts:
    """Saved parts of scans."""

    name = "scan"
    summary = "parts of a tree scan saved by `iolens scan --save`; all parts of one scan in one call"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it begins as a part does."""
        return unpacked(head).startswith(_BEGINS)

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per scan, of all its parts, the earliest first."""
        scan_parts, refused = read_each(paths, _read_header)
        yield from refused
        scans: dict[tuple[int, str], list[tuple[Path, str]]] = {}
        for path, header, identity in scan_parts:
            scans.setdefault((header.time_us, header.filesystem), []).append((path, identity))
        for _, parts in sorted(scans.items()):
            files = [path for path, _ in parts]
            more = f" and {len(files) - 1} more" if len(files) > 1 else ""
            identity = combined_identity([name for _, name in parts])
            yield Capture(f"{files[0]}{more}", identity, partial(_items, files))


SOURCE: Final = ScanParts()


def _items(paths: list[Path]) -> Iterator[Item]:
    yield from merged(paths).items()
