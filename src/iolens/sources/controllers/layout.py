"""How a site's export of storage controllers is laid out: `[sources.controller]` of the configuration, checked.

Which column is the time, which the controller, which become bytes and operations in which unit, and how request sizes
are written down. Without a configuration the columns carry the names given here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from iolens.errors import InputError
from iolens.schema import LARGEST
from iolens.sources.reading.parsed_numbers import count_or_none
from iolens.units import KIB, SECOND_US, parse_bytes, parse_duration

PLACE: Final = "[sources.controller]"
RATE, CUMULATIVE, PER_INTERVAL = "rate", "cumulative", "per-interval"
KINDS: Final = (RATE, CUMULATIVE, PER_INTERVAL)
BYTES: Final = ("read_bytes", "write_bytes", "background_bytes")
OPERATIONS: Final = ("read_ops", "write_ops", "background_ops")
DIRECTIONS: Final = ("read", "write")
BIN: Final = "bin"
BIN_WIDTH: Final = 16 * KIB

_TOP: Final = (
    "time", "time_format", "timezone", "controller", "name", "interval", "delimiter", "table", "columns", "sizes",
)  # fmt: skip
_MEASURE: Final = ("column", "unit", "kind")
_SIZES: Final = (
    "table", "time", "controller", "interval", "kind", "read", "write", "size", "direction", "count", "label",
    "bin_width",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measure:
    """One column of `target_io`: the sum of these columns times `factor`, per second where `kind` is rate."""

    column: str
    names: tuple[str, ...]
    factor: int
    kind: str


@dataclass(frozen=True, slots=True)
class SizeColumns:
    """How request sizes are written: one column per bin (a pattern per direction), or one row per bin."""

    kind: str = CUMULATIVE
    wide: tuple[tuple[str, str], ...] = ()  # direction and pattern, `{n}` standing for the bin's label
    size: str | None = "size_kib"
    direction: str | None = "direction"
    counts: tuple[tuple[str, str], ...] = (("", "count"),)  # direction ("" where a column tells it) and column
    label_bytes: int = KIB  # what a label counts
    interval_us: int | None = None
    table: str | None = None
    time: str | None = None
    controller: str | None = None

    def columns(self, heading: Collection[str]) -> dict[str, tuple[str, int]]:
        """Columns of the heading that count a bin: direction and upper bound in bytes."""
        pairs: dict[str, tuple[str, int]] = {}
        for direction, pattern in self.wide:
            before, _, after = pattern.partition("{n}")
            fitting = re.compile(f"{re.escape(before)}0*+([0-9]*+){re.escape(after)}")
            for name in heading:
                match = fitting.fullmatch(name)
                label = count_or_none(match[1], LARGEST // self.label_bytes) if match else None
                if label is not None:
                    pairs[name] = (direction, label * self.label_bytes)
        return pairs

    def long_columns(self) -> tuple[str, ...]:
        """The columns of a table with one row per bin; none where each bin has a column."""
        if self.wide or self.size is None:
            return ()
        return tuple(filter(None, (self.size, self.direction, *(name for _, name in self.counts))))


@dataclass(frozen=True, slots=True)
class ControllerLayout:
    """Everything a reader must know."""

    time: str = "time"
    time_format: str | None = None
    controller: str | None = "controller"
    name: str | None = None  # of the one controller, where no column tells it
    interval_us: int | None = None
    delimiter: str = ","
    table: str | None = None
    measures: tuple[Measure, ...] = ()
    sizes: SizeColumns | None = None
    is_default: bool = False

    @property
    def kind(self) -> str:
        """What the numbers of `target_io` are, the same for all."""
        return self.measures[0].kind if self.measures else RATE


_DEFAULT_MEASURES: Final = tuple(Measure(name, (f"{name}_per_s",), 1, RATE) for name in (*BYTES, *OPERATIONS))
DEFAULT: Final = ControllerLayout(measures=_DEFAULT_MEASURES, sizes=SizeColumns(), is_default=True)


def layout_of(settings: Mapping[str, Any]) -> ControllerLayout:
    """The layout the configuration describes; the default one where it says nothing of columns."""
    _known(settings, _TOP, "")
    columns, sizes = _section(settings, "columns"), _section(settings, "sizes")
    described = bool(columns or sizes)
    measures = tuple(_measure(name, part) for name, part in columns.items()) if described else DEFAULT.measures
    if len({measure.kind for measure in measures}) > 1:
        raise InputError(PLACE, "columns are of different kinds", "all rate, all cumulative or all per-interval")
    name, controller = _text(settings, "name"), _text(settings, "controller")
    if name is not None and controller is not None:
        raise InputError(PLACE, "both controller and name are given", "the column of names, or the one name")
    return ControllerLayout(
        _text(settings, "time") or DEFAULT.time,
        _text(settings, "time_format"),
        None if name is not None else controller or DEFAULT.controller,
        name,
        _interval(settings, ""),
        _delimiter(settings),
        _text(settings, "table"),
        measures,
        (_sizes(sizes) if sizes else None) if described else DEFAULT.sizes,
        not described,
    )


def _measure(name: str, part: Any) -> Measure:
    where = f"columns.{name}"
    if name not in (*BYTES, *OPERATIONS):
        raise InputError(PLACE, f"unknown key {where}", f"one of {', '.join((*BYTES, *OPERATIONS))}")
    if not isinstance(part, Mapping):
        raise InputError(PLACE, f"{where} = {part!r}", 'such as { column = "read_mb", unit = "MB/s" }')
    _known(part, _MEASURE, f"{where}.")
    names = part.get("column")
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, list) or not listed or not all(isinstance(item, str) and item for item in listed):
        raise InputError(PLACE, f"{where}.column = {names!r}", "the name of a column, or a list of names to add up")
    unit = part.get("unit", "")
    if not isinstance(unit, str):
        raise InputError(PLACE, f"{where}.unit = {unit!r}", "a text in quotes")
    factor, per_second = _unit(unit, where, is_bytes=name in BYTES)
    return Measure(name, tuple(listed), factor, _measure_kind(part.get("kind"), per_second, where))


def _unit(unit: str, where: str, *, is_bytes: bool) -> tuple[int, bool]:
    """What one of the unit is, in bytes or operations, and whether it is per second."""
    plain, slash, second = unit.strip().partition("/")
    expected = "B, KiB, MiB, kB, MB, … or per second: MB/s" if is_bytes else "nothing, or /s"
    if slash and second.strip() != "s":
        raise InputError(PLACE, f"{where}.unit = {unit!r}", expected)
    plain = plain.strip()
    if not is_bytes:
        if plain not in ("", "1"):
            raise InputError(PLACE, f"{where}.unit = {unit!r}", expected)
        return 1, bool(slash)
    try:
        if not plain:
            raise ValueError("no unit")
        return parse_bytes(f"1{plain}"), bool(slash)
    except ValueError:
        raise InputError(PLACE, f"{where}.unit = {unit!r}", expected) from None


def _measure_kind(kind: Any, per_second: bool, where: str) -> str:
    if kind is None:
        if per_second:
            return RATE
        raise InputError(
            PLACE, f"{where} has neither a kind nor a unit per second", f"kind = one of {', '.join(KINDS)}"
        )
    if kind not in KINDS:
        raise InputError(PLACE, f"{where}.kind = {kind!r}", f"one of {', '.join(KINDS)}")
    if per_second != (kind == RATE):
        raise InputError(PLACE, f"{where}: kind {kind} does not go with its unit", "a unit per second for rates only")
    return str(kind)


def _sizes(part: Mapping[str, Any]) -> SizeColumns:
    _known(part, _SIZES, "sizes.")
    kind = part.get("kind", CUMULATIVE)
    if kind not in (CUMULATIVE, PER_INTERVAL):
        raise InputError(PLACE, f"sizes.kind = {kind!r}", f"{CUMULATIVE} or {PER_INTERVAL}")
    said = {name: _text(part, name, "sizes.") for name in _SIZES if name not in ("kind", "interval")}
    directions = tuple((direction, text) for direction in DIRECTIONS if (text := said[direction]) is not None)
    label_bytes = _label(said["label"], said["bin_width"])
    common: dict[str, Any] = {
        "kind": kind,
        "label_bytes": label_bytes,
        "interval_us": _interval(part, "sizes."),
        **{name: said[name] for name in ("table", "time", "controller")},
    }
    if said["size"] is None:
        if not directions or any(pattern.count("{n}") != 1 for _, pattern in directions):
            raise InputError(
                PLACE, "sizes has neither size nor patterns", 'such as read = "read_{n}k" for wide columns'
            )
        return SizeColumns(wide=directions, size=None, direction=None, counts=(), **common)
    if directions and (said["direction"] or said["count"]):
        raise InputError(PLACE, "sizes has read or write besides direction or count", "one way of telling directions")
    counts = directions or (("", said["count"] or "count"),)
    direction = None if directions else said["direction"] or "direction"
    return SizeColumns(size=said["size"], direction=direction, counts=counts, **common)


def _label(label: str | None, bin_width: str | None) -> int:
    """What a bin's label counts: bins, or bytes in some unit."""
    width = BIN_WIDTH
    if bin_width is not None:
        try:
            width = parse_bytes(bin_width)
        except ValueError as error:
            raise InputError(PLACE, f"sizes.bin_width: {error}") from None
        if width <= 0:
            raise InputError(PLACE, f"sizes.bin_width = {bin_width!r}", "such as 16KiB")
    if label == BIN:
        return width
    try:
        return parse_bytes(f"1{label or 'KiB'}")
    except ValueError:
        raise InputError(PLACE, f"sizes.label = {label!r}", "bin, B, KiB or MiB") from None


def _known(part: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    for key in part:
        if key not in keys:
            raise InputError(PLACE, f"unknown key {where}{key}", f"one of {', '.join(keys)}")


def _section(settings: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = settings.get(key, {})
    if not isinstance(part, Mapping):
        raise InputError(PLACE, f"{key} = {part!r}", f"a section [sources.controller.{key}]")
    return part


def _text(part: Mapping[str, Any], key: str, where: str = "") -> str | None:
    value = part.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        raise InputError(PLACE, f"{where}{key} = {value!r}", "a text in quotes")
    return value


def _interval(part: Mapping[str, Any], where: str) -> int | None:
    text = _text(part, "interval", where)
    if text is None:
        return None
    try:
        interval = round(parse_duration(text) * SECOND_US)
    except ValueError as error:
        raise InputError(PLACE, f"{where}interval: {error}") from None
    if interval <= 0:
        raise InputError(PLACE, f"{where}interval = {text!r}", "a duration above zero, such as 2s")
    return interval


def _delimiter(settings: Mapping[str, Any]) -> str:
    delimiter = _text(settings, "delimiter") or DEFAULT.delimiter
    if len(delimiter) != 1:
        raise InputError(PLACE, f"delimiter = {delimiter!r}", "one character")
    return delimiter
