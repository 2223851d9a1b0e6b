"""Reports of sysstat's iostat, as text (any of -d -x -k -m -h -s -t, any version) or JSON, whole or cut off.

iostat prints averages per second over an interval it does not print; times that interval they are the operations and
bytes again. Without `-y` the first report is the average since boot and tells nothing of any interval: it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Item, Note, Problem, Rows
from iolens.schema import LARGEST
from iolens.sources.devices.block_devices import (
    COUNTERS,
    KIND,
    TABLE,
    Choice,
    choose,
    devices_by_name,
    given_by_user,
    is_asked_for,
    left_out_notes,
    refuse_settings,
    target_name,
)
from iolens.sources.devices.iostat_reports import STAMP, Banner, IostatReport, Parsed, read_json, read_text
from iolens.sources.reading.bounded_input import DAMAGED, blocks_of, bounded_lines, opened, unpacked
from iolens.sources.reading.captures import FileSource
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import count
from iolens.sources.reading.parsed_numbers import shown as quoted
from iolens.sources.reading.saved_text import stated_zone, supplied_identity
from iolens.sources.reading.ticks import SAMPLES_LOOKED_AT, Ticker, find_interval_us, grid_of
from iolens.units import SECOND_US, epoch_us

KIB, MIB, SECTOR_BYTES = 1024, 1 << 20, 512
ROWS_PER_ITEM: Final = 10_000
SETTINGS: Final = ("since_boot_first", "date_order")
MONTH_FIRST, DAY_FIRST = "mdy", "dmy"
EARLIEST_YEAR, LATEST_YEAR = 1980, 2199

# What a column holds per second, and what one of it is worth. Names differ by option (-k, -m) and by version.
RATES: Final[dict[str, tuple[str, int]]] = {
    "r/s": ("read_ops", 1),
    "w/s": ("write_ops", 1),
    "rkB/s": ("read_bytes", KIB),
    "wkB/s": ("write_bytes", KIB),
    "rMB/s": ("read_bytes", MIB),
    "wMB/s": ("write_bytes", MIB),
    "rsec/s": ("read_bytes", SECTOR_BYTES),
    "wsec/s": ("write_bytes", SECTOR_BYTES),
    "kB_read/s": ("read_bytes", KIB),
    "kB_wrtn/s": ("write_bytes", KIB),
    "MB_read/s": ("read_bytes", MIB),
    "MB_wrtn/s": ("write_bytes", MIB),
    "Blk_read/s": ("read_bytes", SECTOR_BYTES),
    "Blk_wrtn/s": ("write_bytes", SECTOR_BYTES),
}
# The same for the whole interval: exact, and with the rate beside it they tell the interval.
TOTALS: Final[dict[str, tuple[str, int, str]]] = {
    "kB_read": ("read_bytes", KIB, "kB_read/s"),
    "kB_wrtn": ("write_bytes", KIB, "kB_wrtn/s"),
    "Blk_read": ("read_bytes", SECTOR_BYTES, "Blk_read/s"),
    "Blk_wrtn": ("write_bytes", SECTOR_BYTES, "Blk_wrtn/s"),
}
WAITS: Final = {"r_await": ("read_ops", "read_wait_us"), "w_await": ("write_ops", "write_wait_us")}
# Shares of the interval, and what one of it is worth.
LEVELS: Final[dict[str, tuple[str, float]]] = {
    "%util": ("busy_us", 0.01),
    "util": ("busy_us", 0.01),
    "aqu-sz": ("queue_us", 1),
    "avgqu-sz": ("queue_us", 1),
}
WHOLE: Final = ("r/s", "w/s", "d/s", "f/s", "rrqm/s", "wrqm/s", "drqm/s", "tps")  # counts, once times the interval

ROUNDING: Final = 0.005  # values have two decimals
TELLING_TOTAL: Final = 1000  # below, rounding of the rate hides the interval
TELLING_COUNTS: Final = 3
COUNTS_TELL_BELOW_S: Final = 10.0  # longer intervals times the rounding come near to a whole request
LATE_CS: Final = 10  # hundredths of a second by which a report may be off its time

_SLASHED: Final = re.compile(rb"\b(\d{1,2})/(\d{1,2})/\d{2,4}\b")
_TEXT_START: Final = re.compile(rb"^\S+ \S+ \([^)\s]+\)[ \t]+\d\S*[ \t]", re.MULTILINE)
_TEXT_TABLE: Final = re.compile(rb"^(?:avg-cpu:|Device:?\s+\S+|[^\n]* Device\s*$)", re.MULTILINE)
_JSON_START: Final = re.compile(rb'^\s*\{\s*"sysstat"\s*:')
_JSON_KEYS: Final = re.compile(rb'"(?:disk_device|avg-cpu)"')


class Iostat(FileSource):
    """Reports of iostat."""

    name = "iostat"
    summary = "sysstat's iostat, text or JSON (-o JSON), with any of its options that show devices"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it has sysstat's first line and a table of iostat's, or sysstat's JSON with its reports."""
        text = unpacked(head)
        if _JSON_START.match(text):
            return _JSON_KEYS.search(text) is not None
        has_table = (b"avg-cpu:" in text or b"Device" in text) and _TEXT_TABLE.search(text) is not None
        return has_table and _TEXT_START.search(text) is not None

    def open(self, path: Path, options: ReadOptions) -> _IostatRecording:
        """The file, if it can be read."""
        _check_settings(path, options)
        return _IostatRecording(path, options, supplied_identity(path, **given_by_user(options)))


SOURCE: Final = Iostat()


@dataclass(frozen=True)
class _IostatRecording:
    """One file and what the user said about it."""

    path: Path
    options: ReadOptions
    identity: str

    @cached_property
    def is_day_first(self) -> bool:
        """Whether 11/05/26 is in May: asked for where a date leaves it open, for it may take a look at all others."""
        return _date_order(self.path, self.options) == DAY_FIRST

    @property
    def place(self) -> str:
        return str(self.path)

    def items(self) -> Iterator[Item]:
        """Every interval in the file."""
        section = _IostatSection(self, Banner())
        seen = 0
        for banner in self._sections():
            if isinstance(banner, Banner):
                yield from section.finish()
                seen += section.seen
                section = _IostatSection(self, banner, is_first=not seen)
            elif isinstance(banner, Problem):
                yield banner
            elif banner.columns:
                yield from section.take(banner)
        yield from section.finish()
        if not seen + section.seen:
            what = "no device in it" if self.path.stat().st_size else "empty file"
            yield Problem(self.place, None, f"{what}: expected device reports, as of `iostat -d` or `iostat -x`")

    def _sections(self) -> Iterator[Parsed]:
        try:
            with opened(self.path) as stream:
                is_json = stream.read(64).lstrip().startswith(b"{")
            with opened(self.path) as stream:
                if is_json:
                    yield from read_json(blocks_of(stream, 1), self.place)
                else:
                    yield from read_text(bounded_lines(stream), self.place)
        except DAMAGED as error:
            yield Problem(self.place, None, f"cannot be read to its end: {error}")


class _Timed(NamedTuple):
    """A report and the time it was printed, where it tells."""

    report: IostatReport
    time_us: int | None


@dataclass(slots=True)
class _IostatSection:
    """One start of iostat. Reports are held back until enough are there to tell their interval."""

    recording: _IostatRecording
    banner: Banner
    is_first: bool = True
    seen: int = 0
    held: list[_Timed] = field(default_factory=list)
    rows: _Columns | None = None
    ticker: Ticker | None = None
    interval_us: int = 0
    previous_us: int | None = None
    printed: int = 0  # intervals so far
    clock: _Clock = field(init=False)
    known: dict[str, None] = field(default_factory=dict)  # devices seen, in order
    choice: Choice = field(default_factory=lambda: Choice({}, {}))

    def __post_init__(self) -> None:
        self.clock = _Clock(self.recording, self.banner)

    def take(self, report: IostatReport) -> Iterator[Item]:
        """One report in, what is known by now out."""
        self.seen += 1
        try:
            timed = _Timed(report, self.clock.time_us(report.stamp))
        except ValueError as error:
            yield Problem(self.recording.place, report.line, str(error))
            return
        if self.rows is None:
            self.held.append(timed)
            if len(self.held) >= SAMPLES_LOOKED_AT:
                yield from self._begin()
        else:
            yield from self._interval(timed)

    def finish(self) -> Iterator[Item]:
        """The end of the section."""
        if self.rows is None and self.held:
            yield from self._begin()
        if self.rows is not None:
            yield from self.rows.take(at_end=True)
            yield from left_out_notes(self.recording.place, self.choice.left_out)

    def _begin(self) -> Iterator[Item]:
        held, self.held = self.held, []
        host = self.banner.host or self.recording.options.target
        if not host:
            problem = "no first line `Linux … (host)` above the reports"
            raise InputError(self.recording.place, problem, "--target SERVER", held[0].report.line)
        self.rows = _Columns(self.recording.options.filesystem or host, host)
        self.interval_us = self._find_interval_us(held)
        is_since_boot = self._is_since_boot(held[0].report)
        times = [timed.time_us for timed in held[is_since_boot:] if timed.time_us is not None]
        self.ticker = Ticker(grid_of({"": times or [self._began_us()]}, self.interval_us / SECOND_US))
        if is_since_boot:
            yield Note(self.recording.place, held[0].report.line, "this report is the average since boot: left out")
            self.previous_us = held[0].time_us
        for timed in held[is_since_boot:]:
            yield from self._interval(timed)

    def _interval(self, timed: _Timed) -> Iterator[Item]:
        assert self.rows is not None
        assert self.ticker is not None
        self.printed += 1
        timestamp = timed.time_us
        if timestamp is None:
            timestamp = self._began_us() + self.printed * self.interval_us
        spent_us = self._spent_us(timestamp)
        self.previous_us = timestamp
        interval_s = _exact_interval_s(timed.report, spent_us / SECOND_US)
        tick = self.ticker.tick(timestamp, "")
        if not is_asked_for(tick, self.recording.options):
            return
        for device, shown in self._kept(timed.report).items():
            if device in timed.report.columns:
                moved = measures(timed.report, device, interval_s)
                for name in [name for name, value in moved.items() if value > LARGEST]:
                    reason = f"{name} of {quoted(device)} is out of range: left out"
                    yield Problem(self.recording.place, timed.report.line, reason)
                    del moved[name]
                self.rows.add(shown, tick, tick - spent_us, interval_s, moved)
        yield from self.rows.take()

    def _spent_us(self, timestamp: int) -> int:
        """The nominal interval, unless the stamps show that this one was another: they are whole seconds."""
        if self.previous_us is None:
            return self.interval_us
        spent = timestamp - self.previous_us
        is_usual = abs(spent - self.interval_us) <= max(SECOND_US, self.interval_us // 4)
        return self.interval_us if is_usual or spent <= 0 else spent

    def _began_us(self) -> int:
        """When iostat was started, as the user said."""
        at = self.recording.options.at
        if at is None or not self.is_first:
            problem = "reports without a time (iostat -t prints it)"
            raise InputError(self.recording.place, problem, "--at, when iostat was started")
        return epoch_us(at)

    def _find_interval_us(self, held: list[_Timed]) -> int:
        if self.recording.options.interval_s:
            return round(self.recording.options.interval_s * SECOND_US)
        times = [timed.time_us for timed in held if timed.time_us is not None]
        if len(set(times)) > 1:
            return find_interval_us([times])
        reported = [reported for timed in held[1:] if (reported := _stated_interval_s(timed.report)) is not None]
        if reported:
            return max(round(median(reported)), 1) * SECOND_US
        problem = "nothing here tells the interval between reports"
        raise InputError(self.recording.place, problem, "--interval", held[0].report.line)

    def _is_since_boot(self, report: IostatReport) -> bool:
        """Whether the first report is one over all the time since boot, by what evidence there is."""
        said = self.recording.options.settings.get("since_boot_first")
        if said is not None:
            return bool(said)
        reported = _stated_interval_s(report)
        interval_s = self.interval_us / SECOND_US
        if reported is not None:
            return abs(reported - interval_s) > max(1.0, interval_s / 4)
        if report.blank_lines >= 2:  # sysstat 12 leaves a second blank line where it left out that report
            return False
        return not _counts_are_whole(report, interval_s)

    def _kept(self, report: IostatReport) -> dict[str, str]:
        if not self.known.keys() >= report.columns.keys():
            self.known |= dict.fromkeys(report.columns)
            self.choice = choose(devices_by_name(self.known), self.recording.options.devices)
        return self.choice.kept


def measures(report: IostatReport, device: str, interval_s: float) -> dict[str, int]:
    """What one device did in a report's interval; what the report does not tell is absent."""
    columns, sized = report.columns[device], report.sized.get(device, {})
    values: dict[str, float] = {}
    for name, (measure, worth) in RATES.items():
        if name in columns:
            values[measure] = (sized[name] if name in sized else columns[name] * worth) * interval_s
    for name, (measure, worth, _) in TOTALS.items():
        if name in columns:
            values[measure] = sized[name] if name in sized else columns[name] * worth
    for name, (operations, measure) in WAITS.items():
        if name in columns and operations in values:
            values[measure] = columns[name] * 1000 * round(values[operations])
    for name, (measure, share) in LEVELS.items():
        if name in columns:
            values[measure] = columns[name] * share * interval_s * SECOND_US
    return {name: _rounded(name, value) for name, value in values.items()}


def _rounded(measure: str, value: float) -> int:
    """Devices move whole sectors and whole requests."""
    return round(value / SECTOR_BYTES) * SECTOR_BYTES if measure.endswith("_bytes") else round(value)


def _stated_interval_s(report: IostatReport) -> float | None:
    """The interval by a total and its rate, the largest of them."""
    pairs = [
        (columns[name], columns[rate])
        for device, columns in report.columns.items()
        for name, (_, _, rate) in TOTALS.items()
        if name in columns and columns.get(rate) and name not in report.sized.get(device, {})
    ]
    total, rate = max(pairs, default=(0.0, 1.0))
    return total / rate if total >= TELLING_TOTAL else None


def _exact_interval_s(report: IostatReport, nominal_s: float) -> float:
    """The interval iostat divided by, in its own hundredths of a second: the one that makes every count whole.

    A nominal second is often 1.01; rates times 1.00 would be off by a hundredth. Where counts cannot tell, nominal.
    """
    reported = _stated_interval_s(report)
    if reported is not None and abs(reported - nominal_s) <= LATE_CS / 100:
        return round(reported, 2)
    counts = _counts(report)
    if nominal_s > COUNTS_TELL_BELOW_S or not counts:
        return nominal_s
    nominal_cs = round(nominal_s * 100)
    for late_cs in sorted(range(-LATE_CS, LATE_CS + 1), key=abs):
        interval_s = (nominal_cs + late_cs) / 100
        if interval_s > 0 and all(_is_whole(rate, interval_s) for rate in counts):
            return interval_s
    return nominal_s


def _counts_are_whole(report: IostatReport, interval_s: float) -> bool:
    """Whether enough rates are whole counts over about that interval, which an average since boot never is."""
    counts = _counts(report)
    if len(counts) < TELLING_COUNTS or interval_s > COUNTS_TELL_BELOW_S / 5:
        return False
    exact_s = _exact_interval_s(report, interval_s)
    return all(_is_whole(rate, exact_s) for rate in counts)


def _counts(report: IostatReport) -> list[float]:
    return [columns[name] for columns in report.columns.values() for name in WHOLE if columns.get(name)]


def _is_whole(rate: float, interval_s: float) -> bool:
    count = rate * interval_s
    return abs(count - round(count)) <= ROUNDING * interval_s + 1e-6 * count


@dataclass(slots=True)
class _Columns:
    """Rows on their way into columns."""

    filesystem: str
    host: str
    columns: dict[str, list[object]] = field(default_factory=dict)
    count: int = 0

    def add(self, device: str, time_us: int, start_us: int, duration_s: float, counts: Mapping[str, int]) -> None:
        """One device over one interval."""
        row = {"time": time_us, "start": start_us, "duration_s": duration_s, "target": target_name(self.host, device)}
        for name, value in (*row.items(), *((name, counts.get(name)) for name in COUNTERS)):
            self.columns.setdefault(name, []).append(value)
        self.count += 1

    def take(self, *, at_end: bool = False) -> Iterator[Rows]:
        """The rows so far, once there are enough of them."""
        if self.count and (at_end or self.count >= ROWS_PER_ITEM):
            yield Rows(TABLE, {"filesystem": self.filesystem, **KIND, **self.columns}, self.count)
            self.columns, self.count = {}, 0


@dataclass
class _Clock:
    """Times from what iostat prints: a local time, in the order of some locale, or ISO-8601."""

    recording: _IostatRecording
    banner: Banner
    last: datetime | None = None

    @cached_property
    def zone(self) -> tzinfo:
        """Of times that carry none."""
        filesystem = self.recording.options.filesystem or self.banner.host
        return stated_zone(self.recording.options, filesystem, self.recording.place)

    def time_us(self, stamp: str | None) -> int | None:
        """The time of a report; None when it tells none."""
        if stamp is None:
            return None
        match = STAMP.fullmatch(stamp.strip())
        if match is None:
            raise ValueError(f"{quoted(stamp)}: a time in a form not known here; S_TIME_FORMAT=ISO gives one that is")
        timestamp = datetime.combine(self._day(match["day"], stamp), _time(match["time"], match["half"]))
        if match["zone"]:
            return epoch_us(datetime.fromisoformat(f"{timestamp.isoformat()}{match['zone']}"))
        if not match["day"] and self.last is not None and timestamp < self.last.replace(tzinfo=None):
            timestamp += timedelta(days=1)  # the banner reported the day iostat was started, and midnight has passed
        local = timestamp.replace(tzinfo=self.zone)
        again = local.replace(fold=1)
        if self.last is not None and epoch_us(local) <= epoch_us(self.last) and again.utcoffset() != local.utcoffset():
            local = again  # clocks went back
        self.last = local
        return epoch_us(local)

    def _day(self, text: str | None, stamp: str) -> date:
        reported = text or self.banner.day
        if reported is None:
            raise ValueError(f"{quoted(stamp)}: neither this nor the first line tells the day")
        parts = re.split(r"[-/.]", reported)
        if len(parts) != 3 or not all(part.isdecimal() for part in parts):
            raise ValueError(
                f"{quoted(reported)}: a date in a form not known here; S_TIME_FORMAT=ISO gives one that is"
            )
        first, second, third = (count(part, "date", LATEST_YEAR) for part in parts)
        if len(parts[0]) == 4:
            return _date(first, second, third)
        year = third if len(parts[2]) == 4 else third + (2000 if third < 70 else 1900)
        is_day_first = "." in reported or ("/" in reported and self.recording.is_day_first)
        month, day = (second, first) if is_day_first else (first, second)
        if not text and self.last is not None:
            return self.last.date()
        return _date(year, month, day)


def _date(year: int, month: int, day: int) -> date:
    if year < EARLIEST_YEAR:
        raise ValueError(f"the year {year}: before any report of iostat")
    return date(year, month, day)


def _time(text: str, half: str | None) -> time:
    hour, minute, second = (int(part) for part in text.split(":"))
    if half is not None:
        hour = hour % 12 + (12 if half == "PM" else 0)
    return time(hour, minute, min(second, 59))


def _check_settings(path: Path, options: ReadOptions) -> None:
    refuse_settings(options, "iostat", str(path), SETTINGS)
    since_boot_first, date_order = (options.settings.get(name) for name in SETTINGS)
    if not isinstance(since_boot_first, bool | None):
        raise InputError(str(path), f"sources.iostat.since_boot_first = {since_boot_first!r}", "true or false")
    if date_order not in (MONTH_FIRST, DAY_FIRST, None):
        expected = f"{MONTH_FIRST!r} or {DAY_FIRST!r}"
        raise InputError(str(path), f"sources.iostat.date_order = {date_order!r}", expected)


def _date_order(path: Path, options: ReadOptions) -> str:
    """Which of 15/11/26 is the day: as configured, else what some date in the file proves, else month first (C, US)."""
    if (said := options.settings.get("date_order")) is not None:
        return str(said)
    try:
        with opened(path) as stream:
            for line in bounded_lines(stream):
                match = _SLASHED.search(line) if isinstance(line, bytes) and len(line) < 120 else None
                if match is not None and int(match[1]) > 12:
                    return DAY_FIRST
    except DAMAGED:
        pass  # reported when the reports are read
    return MONTH_FIRST
