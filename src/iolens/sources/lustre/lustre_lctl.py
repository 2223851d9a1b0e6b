"""Saved `lctl get_param` text of a server or client: many parameters in one file, one time or a long series of them.

`name=value`, `name=` and lines, or the first line right after the `=`; `name: value` of `lctl get_param -y` likewise;
plain or gzip. A file without names (`lctl get_param -n`) is read when the user says which target it is of.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from iolens.errors import InputError
from iolens.records import Capture, Item, Problem
from iolens.sources.lustre.capacity import CAPACITY_LEAVES, LOCK_LEAVES
from iolens.sources.lustre.client import ClientNode, ClientReader
from iolens.sources.lustre.parameters import (
    IO_LATENCY,
    JOB_STATS,
    LLITE,
    MDT,
    OBDFILTER,
    OSD,
    LeftOut,
    Parameter,
    ParameterText,
    client_family,
    parameter_named,
    pattern_of,
)
from iolens.sources.lustre.server import GivenNames, SampleSplitter, ServerReader, ServerSample, needs_filesystem
from iolens.sources.lustre.stats import names_known_counter
from iolens.sources.reading.bounded_input import DAMAGED, LongLine, bounded_lines, opened, unpacked
from iolens.sources.reading.captures import PIECE_BYTES, Lookahead, content_identity, read_each
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.ticks import SAMPLES_LOOKED_AT, Ticker, grid_of
from iolens.units import epoch_us, parse_time

# Families of parameters Lustre has; those that are not read are named as left out.
FAMILIES: Final = frozenset({
    b"obdfilter", b"mdt", b"mds", b"mdd", b"mgs", b"mgc", b"ost", b"ldlm", b"llite", b"osc", b"mdc", b"lov", b"lmv",
    b"lod", b"lfsck", b"osp", b"lwp", b"nodemap", b"qmt", b"qsd", b"seq", b"fld", b"echo_client", b"echo", b"ofd",
    b"out", b"sptlrpc", b"srpc", b"peers", b"nis", b"routes", b"ptlrpc", b"cl", b"lnet",
})  # fmt: skip
SINGLE_NAMES: Final = frozenset({
    b"health_check", b"memused", b"memused_max", b"lnet_memused", b"version", b"pinger", b"timeout", b"debug",
    b"debug_mb", b"debug_path", b"subsystem_debug", b"printk", b"jobid_var", b"jobid_name", b"jobid_this_session",
    b"at_min", b"at_max", b"at_extra", b"at_history", b"at_early_margin", b"ldlm_timeout", b"bulk_timeout",
    b"max_dirty_mb", b"alloc_fail_rate", b"dump_on_timeout", b"dump_on_eviction", b"devices", b"debug_peer_on_timeout",
    b"fail_loc", b"fail_val", b"stats", b"peers", b"nis", b"routes", b"catastrophe", b"upcall", b"daemon_file",
})  # fmt: skip

_NAME: Final = re.compile(rb"[A-Za-z][\w-]*(?:\.[^\s=]+)?")
_USED_NAME: Final = re.compile(
    rb"^(?:(?:obdfilter|osd-\w+|mdt|mds|ost\.OSS|mgs\.MGS|ldlm\.(?:services|namespaces\.(?:filter|mdt)-[^\s=.]+))\.[^\s=]+"
    rb"|(?:llite|osc|mdc)\.[^\s=]+\.(?:\w+_)?stats)(?:=|:[ \t\r]|:$)",
    re.MULTILINE,
)
_LATENCY_HEADING: Final = b"io_latency_by_size:"
_BARE_START: Final = re.compile(rb"\s*(?:snapshot_time:?\s+\d|job_stats:|io_latency_by_size:\s)")
_BARE_KINDS: Final = re.compile(rb"samples \[|pages per bulk|disk I/O size|job_id:|job_stats:\s*\Z|io_latency_by_size:")
_NOT_A_TARGET: Final = re.compile(rb"^(?:req_waittime|ioctl|inode_permission) ", re.MULTILINE)  # a service, a client
_BARE_BEGINS: Final = (b"snapshot_time", b"job_stats:", _LATENCY_HEADING)
_BRW_TEXT: Final = re.compile(rb"pages per bulk|disk I/O size|read ++\|? *+write")
_MARKER: Final = re.compile(rb"BEGIN\s++(\d{9,11}(?:\.\d{1,9})?)\s*+")

Parsed = ParameterText | Problem | int  # a text, something not understood, or the time a marker gives
_Split = LeftOut | ServerSample | Problem


class LustreLctl:
    """Saved `lctl get_param` text."""

    name = "lustre-lctl"
    summary = "saved `lctl get_param` text of Lustre servers and clients, one snapshot or many"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether some line names a parameter of a target, or the text is one parameter without its name."""
        text = unpacked(head)
        if _USED_NAME.search(text):
            return True
        return bool(_BARE_START.match(text) and _BARE_KINDS.search(text) and not _NOT_A_TARGET.search(text))

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per file, the earliest first; ticks are common to all of them."""
        limit = max(2, SAMPLES_LOOKED_AT // max(len(paths), 1) + 1)
        lctl_scans, refused = read_each(paths, lambda path: _scan(path, options, limit))
        yield from refused
        scans = sorted(lctl_scans, key=lambda scan: scan.begin_us)
        ticker = Ticker(grid_of(_series(scans), options.interval_s))
        for scan in scans:
            yield Capture(str(scan.text.path), scan.identity, partial(scan.text.items, scan.samples, ticker.copy()))
            if scan.is_whole:
                for stamp, series in scan.times:
                    ticker.tick(stamp, series)


SOURCE: Final = LustreLctl()


@dataclass(frozen=True, slots=True)
class _LctlText:
    """One file and what the user said about it."""

    path: Path
    options: ReadOptions
    is_bare: bool  # the text of one parameter without its name

    @property
    def place(self) -> str:
        return str(self.path)

    @property
    def at_us(self) -> int | None:
        return epoch_us(self.options.at) if self.options.at is not None else None

    @property
    def naming(self) -> GivenNames:
        return GivenNames(self.options.filesystem, self.options.target)

    @property
    def node(self) -> ClientNode:
        """The client, should the text be of one; such text does not name it."""
        return ClientNode.of(LustreLctl.name, self.options, None, self.path.name.partition(".")[0])

    def samples(self) -> Iterator[_Split]:
        """The samples of the file as it is read; before them what is left out of them, filled as they are read."""
        left_out = LeftOut(self.place)
        yield left_out
        splitter = SampleSplitter()
        reader = _BareReader(self) if self.is_bare else _NamedReader(self, left_out)
        try:
            with opened(self.path) as stream:
                for parameter in reader.read(bounded_lines(stream)):
                    if isinstance(parameter, ParameterText):
                        yield from splitter.take(parameter)
                    elif isinstance(parameter, int):
                        yield from splitter.mark(parameter)
                    else:
                        yield parameter
        except DAMAGED as error:
            yield Problem(self.place, None, f"cannot be read to its end: {error}")
        yield from splitter.finish()

    def items(self, samples: Iterable[_Split], ticker: Ticker) -> Iterator[Item]:
        """Everything in the file, sample by sample; `ticker` stays as it is, for the next call."""
        ticker = ticker.copy()
        left_out = LeftOut(self.place)
        reader, client = ServerReader(self.naming), ClientReader(self.node)
        empty, has_client = True, False
        for sample in samples:
            if isinstance(sample, LeftOut):
                left_out, reader = sample, ServerReader(self.naming, left_out=sample)
                continue
            if isinstance(sample, Problem):
                empty = False
                yield sample
                continue
            is_of_server = sample.has_target or not sample.has_client
            if is_of_server and not sample.has_target and not (sample.series and self.options.filesystem):
                if sample.series:
                    left_out.say("services and locks of a server that shows no target: supply --filesystem")
                continue
            empty = False
            snapshot, nominal = sample.snapshot_us(self.at_us), sample.nominal_us(self.at_us)
            if snapshot is None or nominal is None:
                first = next(iter(sample.readings.values()))
                yield Problem(self.place, first.line, "nothing here tells the time: supply it with --at")
                continue
            tick = ticker.tick(nominal, sample.series)
            readings = sample.readings.values()
            if is_of_server:
                yield from reader.items(readings, tick, snapshot)
            if sample.has_client:  # the services of a server that has mounts are the server's
                has_client = True
                mine = [text for text in readings if text.parameter.is_of_client or not is_of_server]
                yield from client.items(mine, tick, snapshot)
        yield from client.notes(self.place) if has_client else ()
        yield from left_out.notes()
        if empty:
            problem = "no parameter of a Lustre target" if self.path.stat().st_size else "empty file"
            yield Problem(self.place, None, f"{problem}, expected obdfilter.*.stats, mdt.*.md_stats, llite.*.stats, …")


class _LctlScan(NamedTuple):
    """What the beginning of a file tells: enough to sort files, find the interval and name the capture."""

    text: _LctlText
    samples: Lookahead[_Split]
    times: list[tuple[int, str]]
    is_whole: bool
    identity: str

    @property
    def begin_us(self) -> float:
        return min((stamp for stamp, _ in self.times), default=float("inf"))


def _scan(path: Path, options: ReadOptions, limit: int) -> _LctlScan:
    text = _LctlText(path, options, _is_bare(path))
    supplied = {"settings"} if text.node.name and options.settings else set()  # checked before anything is read
    samples = Lookahead(path, text.samples, _size)
    needed = {"filesystem", "target", *supplied} if text.is_bare else supplied
    if text.is_bare and not (text.options.filesystem and text.options.target):
        problem = "a text without parameter names does not tell its target"
        raise InputError(text.place, problem, "--filesystem and --target")
    times: list[tuple[int, str]] = []
    for sample in samples.look():
        if not isinstance(sample, ServerSample):
            continue
        if needs_filesystem(sample.readings.values()):
            needed.add("filesystem")
        if sample.nominal_us(None) is None or not (sample.stamps or sample.marker_us):
            needed.add("at")
        if (nominal := sample.nominal_us(text.at_us)) is not None:
            times.append((nominal, sample.series))
        if len(times) >= limit:
            return _LctlScan(text, samples, times, False, _identity(text, needed))
    return _LctlScan(text, samples, times, True, _identity(text, needed))


def _is_bare(path: Path) -> bool:
    try:
        with opened(path) as stream:
            return bool(_BARE_START.match(stream.read(4096)))
    except DAMAGED:
        return False


def _size(piece: _Split) -> int:
    texts = piece.readings.values() if isinstance(piece, ServerSample) else ()
    return PIECE_BYTES + sum(PIECE_BYTES + len(text.data) for text in texts)


def _identity(text: _LctlText, needed: set[str]) -> str:
    """The content's hash; what the user had to supply is part of it, for it changes what the content means."""
    supplied = {name: value for name in needed if (value := getattr(text.options, name)) is not None}
    identity = content_identity(text.path)
    if not supplied:
        return identity
    said = "\0".join(f"{name}={supplied[name]}" for name in sorted(supplied))
    return "file/" + hashlib.sha256(f"{identity}\0{said}".encode()).hexdigest()


def _series(scans: Iterable[_LctlScan]) -> dict[str, list[int]]:
    """Sample times by series. Files of one sample each form series together, longer files each their own."""
    series: dict[str, list[int]] = {}
    for number, scan in enumerate(scans):
        for stamp, name in scan.times:
            key = name if len(scan.times) == 1 else f"{number} {name}"
            series.setdefault(key, []).append(stamp)
    seen = sorted({stamp for stamps in series.values() for stamp in stamps})[:SAMPLES_LOOKED_AT]
    last = seen[-1] if seen else 0
    return {name: [stamp for stamp in stamps if stamp <= last] for name, stamps in series.items()}


class _NamedReader:
    """Text with parameter names."""

    def __init__(self, text: _LctlText, left_out: LeftOut) -> None:
        self.text = text
        self.left_out = left_out
        self.name: bytes | None = None  # None: outside any parameter
        self.parameter: Parameter | None = None  # None: one that is not read
        self.lines: list[bytes] = []
        self.line = 0
        self.lost = False  # within a run of lines that belong to nothing, reported once
        self.strangers: set[bytes] = set()
        self.is_yaml = False  # `name: value` was seen

    def read(self, lines: Iterable[bytes | LongLine]) -> Iterator[Parsed]:
        options = self.text.options
        for number, line in enumerate(lines, 1):
            if isinstance(line, LongLine):
                self.name, self.parameter = self.name or b"", None  # the parameter it is in is not whole
                yield line.problem(self.text.place, number)
            elif line[:1].isalnum() and (
                split := (_split(line) if b"=" in line else None) or (self._yaml_split(line) if b":" in line else None)
            ):
                yield from self._end()
                yield from self._begin(*split, number)
            elif (line[4:5] == b"-" or line[:5] == b"BEGIN") and (stamp := _marker_us(line, options)) is not None:
                yield from self._end()
                self.name, self.lost = None, False
                yield stamp
            elif line.startswith(b"error:"):
                yield from self._end()
                self.name = None
                yield self._problem(number, f"lctl could not read: {_shown(line)}")
            elif self.name is None and line[:1].isalnum() and _is_listed(line):
                continue
            elif self.parameter is not None:
                self.lines.append(line)
            elif self.name is None and not self.lost and line.strip():
                self.lost = True
                yield self._problem(number, f"not a parameter: {_shown(line)}")
        yield from self._end(at_end_of_file=True)

    def _begin(self, name: bytes, value: bytes, number: int) -> Iterator[Parsed]:
        self.name, self.lines, self.line, self.lost = name, [value], number, False
        family, *rest = name.split(b".")
        if rest and not _is_family(family) and family not in self.strangers:
            self.strangers.add(family)
            yield self._problem(number, f"parameters called {_shown(family)}… are not known")
        text = name.decode("ascii", "backslashreplace")
        self.parameter = parameter_named(text)
        if self.parameter is None and _is_family(family):
            self.left_out.add(pattern_of(text))

    def _yaml_split(self, line: bytes) -> tuple[bytes, bytes] | None:
        """Name and value by `lctl get_param -y`; a name without a dot only where no text can have such a line."""
        name, colon, value = line.partition(b": ")
        if not colon:
            name, colon, value = line.rstrip().removesuffix(b":"), line.rstrip()[-1:], b"\n"
        if colon[:1] != b":" or _NAME.fullmatch(name) is None:
            return None
        family, dot, _ = name.partition(b".")
        if dot and _is_family(family):
            self.is_yaml = True
            return name, value
        is_named = not dot and name in SINGLE_NAMES and (self.is_yaml or self.name is None)
        return (name, value) if is_named else None

    def _end(self, at_end_of_file: bool = False) -> Iterator[Parsed]:
        if self.parameter is None:
            return
        reading = ParameterText(self.parameter, b"".join(self.lines), self.text.place, self.line)
        self.parameter = None
        cut = at_end_of_file and not reading.data.endswith(b"\n")
        if cut and reading.parameter.leaf in (*CAPACITY_LEAVES, *LOCK_LEAVES, "num_exports"):
            yield self._problem(self.line, f"the file ends within {reading.parameter.leaf}: the number may be cut")
        else:
            yield reading

    def _problem(self, number: int, reason: str) -> Problem:
        return Problem(self.text.place, number, reason)


class _BareReader:
    """The text of one parameter without its name, once or many times over."""

    def __init__(self, text: _LctlText) -> None:
        self.text = text
        self.lines: list[bytes] = []
        self.line = 1
        self.is_whole = True

    def read(self, lines: Iterable[bytes | LongLine]) -> Iterator[Parsed]:
        for number, line in enumerate(lines, 1):
            if isinstance(line, LongLine):
                self.is_whole = False
                yield line.problem(self.text.place, number)
                continue
            stamp = _marker_us(line, self.text.options)
            if stamp is not None or (line.startswith(_BARE_BEGINS) and self._holds_text()):
                yield from self._end(number)
            if stamp is None:
                self.lines.append(line)
            else:
                yield stamp
        yield from self._end(0)

    def _holds_text(self) -> bool:
        return any(line.strip() not in (b"", _LATENCY_HEADING) for line in self.lines)

    def _end(self, next_line: int) -> Iterator[Parsed]:
        if self._holds_text() and self.is_whole:
            data = b"".join(self.lines)
            parameter = self._parameter(data)
            named = parameter.is_of_client or names_known_counter(data)
            if parameter.leaf in ("stats", "md_stats") and not named:
                # Named, it would be a target that has not counted yet: every counter zero.
                reason = "a text without its name, and without a counter that Lustre is known to have: left out"
                yield Problem(self.text.place, self.line, reason)
            else:
                yield ParameterText(parameter, data, self.text.place, self.line)
        self.lines, self.line, self.is_whole = [], next_line, True

    def _parameter(self, data: bytes) -> Parameter:
        target = self.text.options.target or ""
        if (family := client_family(target)) is not None:
            return Parameter(family, target, "rpc_stats" if family != LLITE and b"rpcs in flight" in data else "stats")
        lustre_target = self.text.naming.find(target, ())
        is_mdt = not isinstance(lustre_target, str) and lustre_target.kind == "mdt"
        if data.lstrip().startswith(b"job_stats:"):
            return Parameter(MDT if is_mdt else OBDFILTER, target, JOB_STATS)
        if _BRW_TEXT.search(data):
            return Parameter(OBDFILTER, target, "brw_stats")
        if _LATENCY_HEADING in data:
            return Parameter(OSD, target, IO_LATENCY)
        return Parameter(MDT, target, "md_stats") if is_mdt else Parameter(OBDFILTER, target, "stats")


def _split(line: bytes) -> tuple[bytes, bytes] | None:
    name, _, value = line.partition(b"=")
    if _NAME.fullmatch(name) is None or (b"." not in name and name not in SINGLE_NAMES):
        return None
    return name, value


def _is_listed(line: bytes) -> bool:
    """A parameter that has no value, as `lctl` names directories."""
    name = line.strip()
    return b"." in name and _NAME.fullmatch(name) is not None and _is_family(name.partition(b".")[0])


def _is_family(family: bytes) -> bool:
    return family in FAMILIES or family.startswith(b"osd-") or family in SINGLE_NAMES


def _marker_us(line: bytes, options: ReadOptions) -> int | None:
    """`BEGIN <epoch>` or an ISO-8601 time alone on a line."""
    if line.startswith(b"BEGIN"):
        match = _MARKER.fullmatch(line)
        return round(float(match[1]) * 1_000_000) if match else None  # nine to eleven digits
    if line[4:5] != b"-" or len(line) < 17:
        return None
    try:
        text = line.decode("ascii").strip()
        if options.timezone and datetime.fromisoformat(text).tzinfo is None:
            return epoch_us(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(options.timezone)))
        return epoch_us(parse_time(text))
    except ValueError:
        return None


def _shown(line: bytes) -> str:
    return repr(line.strip()[:60].decode("ascii", "backslashreplace"))
