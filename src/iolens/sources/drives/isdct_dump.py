"""Dumps of the Intel SSD Data Center Tool: what `isdct show` printed on every host, as a directory or a tar archive.

`<dump>/<host>/*.txt`, each file with one or more lists of one drive. Nothing of an archive is ever written to disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Problem
from iolens.sources.drives.rows import LATEST_S, MalformedValue, count_of, plain, time_in_name
from iolens.sources.reading.archives import Member, archive_members
from iolens.sources.reading.bounded_input import DAMAGED, opened

LONGEST_TEXT: Final = 1 << 20  # a list of one drive has a few kilobytes

LIST_HEAD: Final = re.compile(
    rb"^-\s+(?:Intel|Solidigm|SMART Attributes|SMART and Health Information)\b.*\s\S+\s+-\s*$", re.MULTILINE
)
_HEADING: Final = re.compile(r"-\s+\S.*\s(\S+)\s+-")  # product or kind of list, then the serial number
_ATTRIBUTE: Final = re.compile(r"-\s+(\S+)\s+-")
_ATTRIBUTE_ID: Final = re.compile(r"[0-9A-Fa-f]{1,2}")
_STAMP: Final = "timestamp_"  # an empty file whose name tells when the dump was made

GROWING: Final = frozenset(
    {"dataunitswritten", "dataunitsread", "poweronhours", "mediaerrors", "smarthostbyteswrittenraw",
     "smartnandbyteswrittenraw"}
)  # fmt: skip


class TextFile(NamedTuple):
    """One file of a dump: where it is, whose it is, and what it says."""

    place: str
    folder: str  # of the dump it belongs to
    host: str | None
    name: str
    text: str | None  # None: it could not be read
    trouble: str | None
    modified_s: int | None  # where that was written down with the file


@dataclass(slots=True)
class DumpedDrive:
    """All that the lists of one dump tell of a drive, by plain name."""

    serial: str
    host: str | None
    place: str
    counters: dict[str, object] = field(default_factory=dict)

    def add(self, name: str, value: object) -> None:
        """Lists are read seconds apart: of a counter reported twice the larger is the later; else the first counts."""
        if name not in self.counters:
            self.counters[name] = value
        elif name in GROWING:
            self.counters[name] = _later(self.counters[name], value)


def _later(value: object, other: object) -> object:
    try:
        known = [count for count in (count_of(value), count_of(other)) if count is not None]
    except MalformedValue:
        return value
    return max(known) if known else value


@dataclass(slots=True)
class Dump:
    """The drives of one dump, and what its names and files tell of the time."""

    folder: str
    drives: dict[tuple[str | None, str], DumpedDrive] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    stamp: str | None = None
    modified_s: list[int] = field(default_factory=list)

    def take(self, file: TextFile) -> None:
        """One more file."""
        if file.name.startswith(_STAMP) and time_in_name(file.name) is not None:
            self.stamp = file.name
            return
        if file.trouble is not None:
            self.problems.append(Problem(file.place, None, file.trouble))
        if file.text is None:
            return
        if not self._read(file):
            problem = "not a list" if file.text.strip() else "empty file instead of a list"
            self.problems.append(Problem(file.place, None, f"{problem} of `isdct show`"))
        elif file.modified_s is not None:
            self.modified_s.append(file.modified_s)

    def _read(self, file: TextFile) -> bool:
        """Whether some list was found."""
        drive: DumpedDrive | None = None
        attribute: dict[str, str] = {}
        for line in (file.text or "").splitlines():
            begins_attribute = _ATTRIBUTE.fullmatch(line.strip())
            heading = None if begins_attribute else _HEADING.fullmatch(line.strip())
            if heading or begins_attribute:
                _finish(drive, attribute)
                attribute = {}
            if heading is not None:
                drive = self._drive(heading[1], file)
            elif begins_attribute is not None:
                attribute = {"id": begins_attribute[1]}
            elif drive is not None and ":" in line:
                name, _, value = line.partition(":")
                if attribute:
                    attribute[plain(name)] = value.strip()
                elif value.strip():
                    drive.add(plain(name), value.strip())
        _finish(drive, attribute)
        return drive is not None

    def _drive(self, serial: str, file: TextFile) -> DumpedDrive:
        return self.drives.setdefault((file.host, serial), DumpedDrive(serial, file.host, file.place))


def _finish(drive: DumpedDrive | None, attribute: Mapping[str, str]) -> None:
    """One SMART attribute, under the name of its description."""
    if drive is None or "raw" not in attribute:
        return
    name = "smart" + plain(attribute.get("description", ""))
    drive.add(name + "raw", attribute["raw"])
    if _ATTRIBUTE_ID.fullmatch(attribute["id"]):
        drive.add(name + "id", int(attribute["id"], 16))


def directory_files(root: Path) -> Iterator[Path]:
    """Every file below a directory, hidden ones left out, in order."""
    for path in sorted(root.rglob("*")):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(root).parts):
            yield path


def text_file(path: Path) -> TextFile:
    """One file of a dump in a directory."""
    folder, host = owner(path.resolve().parts)
    text, trouble = _text_of(path)
    return TextFile(str(path), folder, host, path.name, text, trouble, None)


def _text_of(path: Path) -> tuple[str | None, str | None]:
    try:
        with opened(path) as stream:
            return _decoded(stream.read(LONGEST_TEXT + 1))
    except InputError as error:
        return None, error.problem
    except DAMAGED as error:
        return None, f"cannot be read to its end: {error}"


def _decoded(content: bytes) -> tuple[str | None, str | None]:
    if len(content) > LONGEST_TEXT:
        return None, f"longer than {LONGEST_TEXT >> 20} MiB, which no list of `isdct show` is: left out"
    return content.decode("utf-8", "backslashreplace"), None


def owner(parts: tuple[str, ...]) -> tuple[str, str | None]:
    """The dump and the host of a file by its folders: `<dump>/<host>/<file>`; a folder named by a date is a dump."""
    folders = parts[:-1]
    if not folders or parts[-1].startswith(_STAMP) or time_in_name(folders[-1]) is not None:
        return str(Path(*folders)), None
    return str(Path(*folders[:-1])), folders[-1]


def archive_files(path: Path) -> Iterator[TextFile | Problem]:
    """The files of a tar archive, plain or gzip; a problem in place of what cannot or must not be read."""
    try:
        with opened(path) as stream:
            for member in archive_members(stream, str(path)):
                yield member if isinstance(member, Problem) else _member(member, str(path))
    except DAMAGED as error:
        yield Problem(str(path), None, f"cannot be read to its end: {error}")


def _member(member: Member, place: str) -> TextFile | Problem:
    info = member.info
    where = f"{place}:{info.name}"
    if info.size > LONGEST_TEXT:
        return Problem(where, None, f"longer than {LONGEST_TEXT >> 20} MiB, which no list of `isdct show` is: left out")
    text, trouble = _decoded(member.stream.read(LONGEST_TEXT + 1))
    folder, host = owner(tuple(part for part in PurePosixPath(info.name).parts if part != "."))
    modified = int(info.mtime) if 0 < info.mtime < LATEST_S else None
    return TextFile(where, folder, host, PurePosixPath(info.name).name, text, trouble, modified)
