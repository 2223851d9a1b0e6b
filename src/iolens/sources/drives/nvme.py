"""Logs of nvme-cli: `nvme smart-log` and the vendors' additions with bytes written to flash, as text or JSON.

They lack the serial number and the time. `id-ctrl` or `nvme list` beside them, `--target`, or the file's name tells the
drive; `--at`, lines that tell the time, or a date in the name the time. Logs of one drive and time are one row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Capture, Item, Note, Problem
from iolens.sources.devices.block_devices import refuse_settings
from iolens.sources.drives.nvme_logs import (
    HEAD,
    IDENTITY,
    JSON_HEAD,
    SMART,
    DriveLogs,
    Log,
    NvmeLogReader,
    blocks_of,
    controller,
)
from iolens.sources.drives.rows import DriveReading, DriveRows, stated_time, time_in_name, without_date
from iolens.sources.drives.smartctl import SETTINGS, SUFFIXES, host_setting
from iolens.sources.reading.batches import within
from iolens.sources.reading.bounded_input import unpacked, whole_text
from iolens.sources.reading.captures import content_identity, read_each, refuse_empty
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import shown
from iolens.sources.reading.saved_text import combined_identity, needed_filesystem, stated_zone, zone_name
from iolens.units import epoch_us, parse_local_time

_LOG_WORD: Final = re.compile(
    r"(?:ocp[-_.]|intel[-_.]|solidigm[-_.]|samsung[-_.]|micron[-_.]|wdc[-_.]|toshiba[-_.]|vs[-_.])*"
    r"(?:smart[-_]log(?:[-_]add)?|smart[-_]add[-_]log|smart|id[-_]ctrl|nvme[-_]list|list)(?![A-Za-z0-9]).*",
    re.IGNORECASE,
)
_SMARTCTL: Final = re.compile(rb'"(?:json_format_version|smartctl)"\s*:')


_SUPPLY: Final = (
    "supply --target, a file named after the serial number (SERIAL.smart-log.txt), `nvme id-ctrl` or `nvme list` "
    'beside it, or host = "folder" in [sources.nvme]'
)


class Nvme:
    """What nvme-cli tells of drives."""

    name = "nvme"
    summary = "`nvme smart-log` and vendors' logs with bytes written to flash, text or JSON; plain or gzip"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it begins with a log of nvme-cli."""
        text = unpacked(head)
        if _SMARTCTL.search(text):
            return False
        return HEAD.search(text) is not None or (b"{" in text and JSON_HEAD.search(text) is not None)

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per folder, whose files may tell of the same drives; with `--target` one of all files."""
        refuse_settings(options, self.name, "[sources.nvme]", SETTINGS)
        hosts_are_folders = host_setting(options, self.name)
        files, refused = read_each(paths, partial(_checked, options=options))
        yield from refused
        groups: dict[Path, list[Path]] = {}
        for path in files:
            folder = path.resolve().parent
            groups.setdefault(Path() if options.target is not None else folder, []).append(path)
        for group in groups.values():
            item = _Folder(tuple(sorted(group)), options, hosts_are_folders)
            more = f" and {len(group) - 1} more" if len(group) > 1 else ""
            yield Capture(str(group[0]) + more, item.identity, item.items)


SOURCE: Final = Nvme()


def _checked(path: Path, options: ReadOptions) -> Path:
    needed_filesystem(options, str(path))
    refuse_empty(path, "a log of nvme-cli")
    return path


class Token(NamedTuple):
    """What tells one drive from another before its serial number is known."""

    name: str | None  # by the file's name
    device: str | None  # by the host's name for it


_Key = tuple[Token, int]  # a drive at a time


@dataclass(slots=True)
class _Logs:
    """What was found of the drives of one folder."""

    identities: dict[Token, dict[str, object]] = field(default_factory=dict)
    readings: dict[_Key, dict[str, object]] = field(default_factory=dict)
    devices: dict[_Key, str] = field(default_factory=dict)
    places: dict[_Key, tuple[str, int]] = field(default_factory=dict)
    kinds: dict[tuple[_Key, str], dict[str, object]] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)  # names that stand for serial numbers, already reported


@dataclass(frozen=True, slots=True)
class _Folder:
    """Files that may tell of the same drives."""

    paths: tuple[Path, ...]
    options: ReadOptions
    hosts_are_folders: bool

    @property
    def identity(self) -> str:
        options = self.options
        return combined_identity(
            [content_identity(path) for path in self.paths],
            filesystem=options.filesystem,
            zone=zone_name(options, options.filesystem),
            at=options.at,
            target=options.target,
            names=[self._host, *(path.name for path in self.paths)],  # they may tell the drive and the time
            since=options.since,
            until=options.until,
        )

    @property
    def _host(self) -> str | None:
        return self.paths[0].resolve().parent.name if self.hosts_are_folders else None

    def items(self) -> Iterator[Item]:
        return within(self._all(), self.options)

    def _all(self) -> Iterator[Item]:
        logs = _Logs()
        for path in self.paths:
            yield from self._file(path, logs)
        rows = DriveRows(needed_filesystem(self.options, str(self.paths[0])))
        used: set[Token] = set()
        for key in sorted(logs.readings, key=lambda key: (key[1], str(key[0]))):
            yield from self._row(logs, key, rows, used)
        for token in (identity for identity in logs.identities if identity not in used):
            yield Note(str(self.paths[0]), None, f"no log of {_shown_token(token)}: only who it is")
        yield from rows.flush()

    def _file(self, path: Path, result: _Logs) -> Iterator[Item]:
        """The logs of one file, put to the drives they are of."""
        text, trouble = whole_text(path)
        reader = NvmeLogReader(str(path), partial(self._local_time, str(path)))
        logs = reader.read(text)
        yield from reader.problems
        if trouble is not None:
            yield Problem(str(path), None, trouble)
        if not logs and not reader.problems and trouble is None:
            yield Problem(str(path), None, "no log of nvme-cli in it")
        devices = {controller(log.device) for log in logs if log.device is not None}
        for block in blocks_of(logs):
            token = self._token(_drive_name(path), block, devices)
            for log in block.logs:
                if token is None:
                    yield Problem(
                        str(path), log.line, f"a {log.kind} that does not tell which drive it is of: {_SUPPLY}"
                    )
                else:
                    yield from self._put(path, log, token, block.device, result)

    def _token(self, name: str | None, block: DriveLogs, devices: set[str | None]) -> Token | None:
        """The drive of a block: by `--target`, by the file's name, by the device; None if nothing tells."""
        if self.options.target is not None:
            return Token(self.options.target, None)
        device = block.device or (next(iter(devices)) if len(devices) == 1 else None)
        short = None if device is None else controller(device)
        by_name = None if name is None else controller(name)
        if len(devices) > 1:
            return None if short is None else Token(None if by_name else name, short)
        if name is None or by_name is not None:
            known = by_name or short
            return None if known is None else Token(None, known)
        return Token(name, None)

    def _put(self, path: Path, log: Log, token: Token, device: str | None, logs: _Logs) -> Iterator[Item]:
        place = str(path)
        reported = {name: value for name, value in log.values.items() if value is not None}
        if log.kind == IDENTITY:
            logs.identities.setdefault(token, {}).update(reported)
            return
        if log.keeps_nothing:
            yield Note(place, log.line, f"a {log.kind} whose counters the drive does not keep")
            return
        if not reported:
            yield Problem(place, log.line, f"a {log.kind} without any counter that could be read")
            return
        try:
            time_us = log.time_us or stated_time(self.options, (path.name,), place)
        except InputError as error:
            yield Problem(place, log.line, f"{error.problem}; expected {error.expected}")
            return
        key = (token, time_us)
        known = logs.devices.setdefault(key, device) if device is not None else None
        if known is not None and device is not None and controller(known) != controller(device):
            reason = f"of {device}, but {_shown_token(token)} is {known} at this time: left out"
            yield Problem(place, log.line, f"a {log.kind} {reason}")
            return
        if known is not None and device is not None:
            logs.devices[key] = max(known, device, key=len)  # a namespace tells more than its controller
        first = logs.kinds.setdefault((key, log.kind), reported)
        if first is not reported:
            if first != reported:
                reason = f"another {log.kind} of {_shown_token(token)} at the same time: the first counts"
                yield Problem(place, log.line, reason)
            return
        logs.readings.setdefault(key, {}).update(reported)
        if log.kind == SMART or key not in logs.places:
            logs.places[key] = (place, log.line)

    def _row(self, logs: _Logs, key: _Key, rows: DriveRows, used: set[Token]) -> Iterator[Item]:
        (token, time_us), (place, line) = key, logs.places[key]
        owner = _identified(logs, key)
        used.update([owner] if owner is not None else [])
        identity = logs.identities[owner] if owner is not None else {}
        serial = self._serial(token, identity)
        if serial is None:
            reason = f"nothing here tells the serial number of {_shown_token(token)}, a name every host has: {_SUPPLY}"
            yield Problem(place, line, reason)
            return
        if identity.get("serial") is None and self.options.target is None and serial not in logs.called:
            logs.called.add(serial)
            yield Note(place, line, f"no serial number: the drive is called {shown(serial)}")
        values = logs.readings[key]
        reading = DriveReading(
            serial,
            time_us,
            model=_text(identity, "model"),
            firmware=_text(identity, "firmware"),
            host=self._host,
            device=logs.devices.get(key) or token.device,
            capacity_bytes=_count(identity, "capacity"),
            host_write_bytes=_count(values, "host_write"),
            vendor_host_write_bytes=_count(values, "vendor_host_write"),
            host_read_bytes=_count(values, "host_read"),
            nand_write_bytes=_count(values, "nand"),
            power_on_hours=_number(values, "hours"),
            wear_pct=_number(values, "wear"),
            spare_pct=_number(values, "spare"),
            media_errors=_count(values, "media_errors"),
        )
        yield from rows.take(reading, place, line)

    def _serial(self, token: Token, identity: Mapping[str, object]) -> str | None:
        known = identity.get("serial")
        if isinstance(known, str):
            return known
        if token.name is not None:
            return token.name if token.device is None else f"{token.name}:{token.device}"
        return None if self._host is None else f"{self._host}:{token.device}"

    def _local_time(self, place: str, text: str) -> int:
        try:
            time = parse_local_time(text)
        except ValueError as error:
            raise InputError(place, str(error)) from None
        if time.tzinfo is None:
            time = time.replace(tzinfo=stated_zone(self.options, self.options.filesystem, place))
        return epoch_us(time)


def _identified(logs: _Logs, key: _Key) -> Token | None:
    """Under what name a drive is identified: its own, or its host's name for it, as `nvme list` tells."""
    token, device = key[0], logs.devices.get(key)
    short = token.device or (None if device is None else controller(device))
    return next((item for item in (token, Token(None, short)) if item in logs.identities), None)


def _shown_token(token: Token) -> str:
    return shown(":".join(part for part in token if part is not None))


def _drive_name(path: Path) -> str | None:
    """What a file is named after: `S4YP.smart-log.2026-01-05.txt` and `20260105-S4YP.json` are of S4YP."""
    name = path.name
    while name.endswith(SUFFIXES):
        name = name[: name.rindex(".")]
    if time_in_name(name) is not None:
        name = without_date(name)
    match = _LOG_WORD.search(name)
    name = (name if match is None else name[: match.start()]).strip("-_. ")
    return name or None


def _text(values: Mapping[str, object], name: str) -> str | None:
    value = values.get(name)
    return value if isinstance(value, str) else None


def _count(values: Mapping[str, object], name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) else None


def _number(values: Mapping[str, object], name: str) -> float | None:
    value = values.get(name)
    return float(value) if isinstance(value, int | float) else None
