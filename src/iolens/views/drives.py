"""Wear of drives for people: the fleet in words, spreads, high WAFs and why, hot spots, what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.units import epoch_us, format_bytes_si
from iolens.views.render import tables as t
from iolens.views.render.figures import FSU, READ, WRITE, Axis, Bars, Figure, LineMark, Mark, Panel, PointsMark, Rule
from iolens.views.render.section import Answer, Notice, Part, ReportSection
from iolens.views.render.window_axes import EMPTY, LINE_AT_MOST, window_title
from iolens.visible_text import counted, times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from iolens.analyses.drives.analysis import DriveLife, Drives, DriveSpread
    from iolens.analyses.drives.readings import FleetReading
    from iolens.arrays import Floats
    from iolens.views.render.tables import Row, TableColumn, TableView


SHOWN: Final = 10  # drives and groups; JSON has them all
NAMED: Final = 6  # serial numbers in a list
CENTURY: Final = 100.0
NO_DATA: Final = "No readings of drives in this window."


def tables(result: Drives) -> list[TableView]:
    """Everything the result says."""
    if not result.drives:
        return [headline(result)]
    views = [headline(result), spreads(result), years_left(result)]
    if result.outliers.drives:
        views.append(outliers(result))
    return [*views, busiest(result), groups(result), coverage(result)]


def verdict(result: Drives) -> str:
    """In a few sentences, how the drives are doing."""
    if not result.drives:
        return NO_DATA
    size = "" if result.capacity_bytes is None else f" of {format_bytes_si(result.capacity_bytes)}"
    parts = [f"{counted(result.drives, 'drive')}{size}."]
    if result.waf.median is not None:
        fleet = "" if result.fleet_waf is None else f", {_shown(result.fleet_waf)} for all together"
        parts.append(f"Write amplification: {_range(result.waf)}{fleet}.")
    if result.dwpd.median is not None:
        parts.append(f"Drive writes per day: {_range(result.dwpd)}.")
    if result.wear_pct.max:
        parts.append(f"The most worn has used {t.show_percent(result.wear_pct.max)} % of its rated life.")
    return " ".join([*parts, *_explained(result)])


def _range(spread: DriveSpread) -> str:
    least, median, most = (_shown(value or 0.0) for value in (spread.min, spread.median, spread.max))
    return f"median {median} ({least} … {most})"


def _explained(result: Drives) -> list[str]:
    high = result.outliers
    if not high.drives or high.waf_above is None:
        return []
    others = f"{counted(high.drives, 'drive')} {'has' if high.drives == 1 else 'have'} a WAF above"
    others = f"{others} {_shown(high.waf_above)}"
    if not high.low_use:
        unknown = high.use_not_known == high.drives
        return [f"{others}; {'their' if high.drives > 1 else 'its'} use is not known." if unknown else
                f"{others}, which low use does not explain."]  # fmt: skip
    share = "because of low use" if high.low_use == high.drives else f"{high.low_use} of them because of low use"
    if high.median_drive_writes is None or high.others_median_drive_writes is None:
        return [f"{others}, {share}."]
    few, usual = (_shown(number) for number in (high.median_drive_writes, high.others_median_drive_writes))
    written = f"has written {'them' if high.drives > 1 else 'it'} {times(few)} over, the others {times(usual)}"
    return [f"{others}, {share}: in the median the host {written}."]


def headline(result: Drives) -> TableView:
    """The fleet, and what the answer rests on."""
    columns = (
        t.text("filesystem", "File system"), t.time("window_start", "From"), t.time("window_end", "To"),
        t.time("first_reading", "First reading"), t.time("last_reading", "Last reading"),
        t.count("drives", "Drives"), t.volume("capacity_bytes", "Capacity"),
        t.volume("host_write_bytes", "Written by hosts"), t.volume("nand_write_bytes", "Written to flash"),
        t.volume("host_read_bytes", "Read by hosts"), _number("fleet_waf", "WAF, all together"),
        _number("fleet_dwpd", "DWPD, all together"), t.count("media_errors", "Media errors"),
        t.count("samples", "Readings"),
    )  # fmt: skip
    row = t.row_of(result, columns)
    notes = [verdict(result), *map(t.sentence, result.notes)]
    return t.TableView(f"{result.filesystem}: drives", columns, [row], "\n".join(notes), sideways=True, name="summary")


def spreads(result: Drives) -> TableView:
    """How the drives differ."""
    columns = (
        t.text("what", "Over drives"), t.count("drives", "Drives"), _number("min", "Min"), _number("median", "Median"),
        _number("p95", "95th"), _number("max", "Max"), _number("mean", "Mean"), _number("fleet", "Together"),
    )  # fmt: skip
    rows = [
        _spread("WAF", result.waf, result.fleet_waf),
        _spread("DWPD", result.dwpd, result.fleet_dwpd),
        _spread("Wear (%)", result.wear_pct),
        _spread("Spare left (%)", result.spare_pct),
        _spread("Drive writes, lifetime", result.drive_writes),
        _spread("Power-on time (h)", result.power_on_hours),
    ]
    window = result.window
    if window is not None:
        rows += [
            _spread("WAF in the window", window.waf, window.fleet_waf),
            _spread("DWPD in the window", window.dwpd, window.fleet_dwpd),
            _spread("Wear in the window (points)", window.wear_pct),
        ]
    words = (
        "WAF: bytes written to flash ÷ bytes written by hosts. DWPD: host bytes ÷ capacity ÷ days powered; in the"
        " window, days by the calendar."
    )
    return t.TableView("Spread", columns, [row for row in rows if row[1]], words, name="spreads")


def years_left(result: Drives) -> TableView:
    """How long the drives last, by the wear they report and by their rating."""
    columns = (
        t.text("what", "Years left"), t.count("drives", "Drives"), _years("min", "Min"), _years("median", "Median"),
        _years("p95", "95th"), _years("max", "Max"),
    )  # fmt: skip
    left = result.years_left
    rows = [
        _spread("By wear, at the pace of their lives", left.by_wear)[:6],
        _spread("By wear, at the pace of the window", left.window_by_wear)[:6],
        _spread("By rating, at the pace of their lives", left.by_rating)[:6],
        _spread("By rating, at the pace of the window", left.window_by_rating)[:6],
    ]
    if t.is_missing(result.rated_dwpd):
        note = "By rating needs --rated-dwpd."
    else:
        years = f"{result.warranty_years:g} year{'s' * (result.warranty_years != 1)}"
        note = f"Rating: {result.rated_dwpd:g} DWPD over {years} of 365 days"
        most = result.rated_used_pct.max
        used = "how much of it is used is not known" if most is None else (
            f"the most written drive has used {t.show_percent(most)} % of it")  # fmt: skip
        note = f"{note}; {used}."
    return t.TableView("Years left", columns, [row for row in rows if row[1]], note, name="years_left")


def _spread(what: str, spread: DriveSpread, fleet: float | None = None) -> Row:
    return what, spread.drives, spread.min, spread.median, spread.p95, spread.max, spread.mean, fleet


def outliers(result: Drives) -> TableView:
    """The highest write amplifications, and whether low use explains them."""
    columns = (
        t.text("serial", "Drive"), t.text("host", "Host"), _number("waf", "WAF"),
        _number("drive_writes", "Drive writes"), _number("dwpd", "DWPD"), _number("window_waf", "WAF in the window"),
        t.text("outlier_reason", "Reason"),
    )  # fmt: skip
    ordered = sorted((life for life in result.per_drive if life.outlier), key=lambda life: -(life.waf or 0.0))
    rows: list[Row] = [_cells(life, columns) for life in ordered[:SHOWN]]
    high = result.outliers
    rule = f"A WAF above {_shown(high.waf_above or 0.0)} is high ({high.limit_origin})."
    if high.drive_writes_below is not None:
        rule += f" Low use: less than {_shown(high.drive_writes_below)} drive writes, half the median."
    return t.TableView("High write amplification", columns, rows, f"{_some(rows, ordered)}{rule}", name="outliers")


def busiest(result: Drives) -> TableView:
    """The drives that wear fastest."""
    columns = (
        t.text("serial", "Drive"), t.text("host", "Host"), t.volume("host_write_bytes", "Written"),
        _number("dwpd", "DWPD"), _number("window_dwpd", "DWPD in the window"), _number("waf", "WAF"),
        t.percent("wear_pct", "Wear"), _years("years_left", "Years left"),
    )  # fmt: skip
    ordered = sorted(result.per_drive, key=lambda life: (-(life.wear_pct or 0.0), -(_pace(life) or 0.0), life.serial))
    rows: list[Row] = [_cells(life, columns) for life in ordered[:SHOWN]]
    note = "Most worn first, then most written. Years left: the least of those known, by wear or by rating."
    return t.TableView("Drives that wear fastest", columns, rows, f"{_some(rows, ordered)}{note}", name="fastest_wear")


def groups(result: Drives) -> TableView:
    """Models or hosts, hot spots first."""
    columns = (
        t.text("group", result.group_by.capitalize()), t.count("drives", "Drives"),
        t.volume("host_write_bytes", "Written"), _number("waf", "WAF"), _number("waf_max", "… max"),
        _number("dwpd", "DWPD"), _number("dwpd_max", "… max"), _number("window_dwpd", "DWPD in the window"),
        t.percent("wear_max_pct", "Most worn"), t.count("outliers", "High WAF"),
    )  # fmt: skip
    rows = t.rows_of(result.groups[:SHOWN], columns)
    return t.TableView(f"By {result.group_by}", columns, rows, _some(rows, result.groups).strip(), name="groups")


def coverage(result: Drives) -> TableView:
    """What the drives do not tell."""
    columns = (
        t.text("filesystem", "Not reported or not counted"), t.count("without_host_writes", "Without host writes"),
        t.count("without_nand_writes", "Without flash writes"), t.count("without_capacity", "Without capacity"),
        t.count("without_hours", "Without power-on hours"), t.count("without_wear", "Without wear"),
        t.count("never_written", "Never written"), t.count("read_once", "Read only once"),
        t.text("counters_fell", "A counter fell"), t.text("not_read_lately", "Not read in the last day"),
        t.text("sources", "Sources"), t.count("overlapping_rows", "Readings by other sources left out"),
        t.count("rows_without_serial", "Readings without serial number"),
    )  # fmt: skip
    own = {
        "filesystem": result.filesystem,
        "counters_fell": _names(result.coverage.counters_fell),
        "not_read_lately": _names(result.coverage.not_read_lately),
    }
    row = tuple(own.get(column.name, getattr(result.coverage, column.name, None)) for column in columns)
    return t.TableView("Coverage", columns, [row], sideways=True, name="coverage")


def _cells(life: DriveLife, columns: Sequence[TableColumn]) -> Row:
    left = [
        years
        for years in (
            life.years_left_by_wear, life.years_left_by_rating, life.window_years_left_by_wear,
            life.window_years_left_by_rating,
        )
        if years is not None
    ]  # fmt: skip
    own = {
        "window_waf": life.window.waf if life.window else None,
        "window_dwpd": life.window.dwpd if life.window else None,
        "years_left": min(left, default=None),
    }
    return t.row_of(life, columns, own)


def _pace(life: DriveLife) -> float | None:
    return life.window.dwpd if life.window is not None and life.window.dwpd is not None else life.dwpd


def _names(serials: list[str]) -> list[str]:
    return serials if len(serials) <= NAMED else [*serials[:NAMED], f"and {len(serials) - NAMED:,} more"]


def _some(shown: Sequence[object], every: Sequence[object]) -> str:
    return "" if len(shown) == len(every) else f"{len(shown)} of {len(every):,}; JSON has all. "


def _number(name: str, heading: str) -> TableColumn:
    """Three significant digits; thousands in full."""
    return t.TableColumn(name, heading, "number", _shown)


def _shown(number: float) -> str:
    if t.is_missing(number):
        return t.MISSING
    return f"{number:,.0f}" if 999.5 <= abs(number) < 1e6 else f"{number:.3g}"


def _years(name: str, heading: str) -> TableColumn:
    """Years; beyond a century the number means nothing."""
    return t.TableColumn(name, heading, "number", lambda value: "> 100" if value > CENTURY else f"{value:.1f}")


# Figures of drives ----------------------------------------------------------------------------------------------------
# Fig. 2 of paper P (WAF, and lifetime writes against it), drive writes per day, wear over time.

BINS: Final = 40
MARGIN: Final = 1.15  # of a logarithmic axis beyond its values
NARROWEST: Final = 1.5  # ratio of its ends
SPACE: Final = 3.0  # … beyond a rating
TICK_STEPS: Final = ((0.5, (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)), (1.2, (1, 1.5, 2, 3, 5, 7)), (2.5, (1, 2, 5)))
NO_WEAR: Final = "no drive reports its wear"
UNWORN: Final = "every drive reports 0 %"
NO_RATES: Final = "drives were read once: nothing to compare"


FIGURES: Final = ("waf", "dwpd", "wear")


def figures(result: Drives) -> dict[str, Callable[[], Figure]]:
    """Fig. 2 of paper P, drive writes per day, and wear over time."""
    return {
        "waf": lambda: amplification(result),
        "dwpd": lambda: drive_writes_per_day(result),
        "wear": lambda: over_time(result),
    }


def amplification(result: Drives) -> Figure:
    """How many drives have which WAF, and how much the host has written to them (Fig. 2); logarithmic scales."""
    heading, name = "Write amplification, and lifetime writes against it", "waf"
    known = [life for life in result.per_drive if life.waf is not None]
    if not known:
        panel = Panel(window_title(result), Axis("write amplification (WAF)"), Axis("drives"), message=EMPTY)
        return Figure(name, heading, (panel,))
    wafs = _values(known, lambda life: life.waf)
    x = _log_axis("write amplification (WAF)", wafs)
    return Figure(name, heading, (_distribution(result, wafs, x), _scatter(result, known, x)), linked_x=True)


def drive_writes_per_day(result: Drives) -> Figure:
    """How many drives are written how often, over their lives and in the window."""
    heading, name = "Drive writes per day", "dwpd"
    values = _values(result.per_drive, lambda life: life.dwpd)
    positive = values[values > 0]
    if not positive.size:
        panel = Panel(window_title(result), Axis("drive writes per day"), Axis("drives"), message=EMPTY)
        return Figure(name, heading, (panel,))
    recent = _values(result.per_drive, lambda life: life.window.dwpd if life.window else None)
    shown = np.concatenate([positive, recent[recent >= positive.min()]])
    x = _log_axis("drive writes per day (DWPD)", shown, result.rated_dwpd)
    panels = (_distribution(result, positive, x), _shares(values, recent, x, result.rated_dwpd))
    return Figure(name, heading, panels, linked_x=True)


def over_time(result: Drives) -> Figure:
    """Wear of the least worn, the mean and the most worn drive, and drive writes per day and WAF between readings."""
    heading, name = "Wear, drive writes and write amplification over time", "wear"
    timestamps = result.over_time
    if not timestamps:
        panel = Panel(window_title(result), Axis("time", "time"), Axis("wear (%)"), message=EMPTY)
        return Figure(name, heading, (panel,))
    times = np.array([epoch_us(fleet_reading.time) for fleet_reading in timestamps])
    spare = 0 if len(times) > 1 else 43_200_000_000
    x = Axis("time", "time", float(times[0] - spare), float(times[-1] + spare))
    panels = (_wear(result, timestamps, times, x), _paces(timestamps, times, x))
    return Figure(name, heading, panels, linked_x=True)


def _values(lives: Iterable[DriveLife], number: Callable[[DriveLife], float | None]) -> Floats:
    return np.array([value for value in map(number, lives) if value is not None], dtype=float)


def _log_axis(label: str, values: Floats, rated: float | None = None) -> Axis:
    """From the smallest to the largest value; a rating stands inside, with space for its text."""
    low, high = float(values.min()), max(float(values.max()), SPACE * (rated or 0.0))
    widen = max(1.0, (NARROWEST * low / high) ** 0.5)
    low, high = low / MARGIN / widen, high * MARGIN * widen
    return Axis(f"{label}, log scale", "log", low, high, _ticks(low, high))


def _ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Round numbers, as many as can be read."""
    decades = np.log10(high / low)
    steps = next((steps for most, steps in TICK_STEPS if decades <= most), (1,))
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))))
    places = [float(f"{step}e{power}") for power in powers for step in steps]
    return tuple((place, f"{place:,.10g}") for place in places if low <= place <= high)


def _distribution(result: Drives, values: Floats, x: Axis) -> Panel:
    """Drives in bins of equal ratio; single drives show on a logarithmic scale."""
    assert x.low is not None
    assert x.high is not None
    counts, edges = np.histogram(values, np.geomspace(x.low, x.high, BINS + 1))
    names = tuple(
        f"{low:.3g} to {high:.3g}: {count} drives"
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    )
    ends = [float(end) for end in np.percentile(values, [50.0, 95.0])]
    label = f"{values.size:,} drives; dashed: median {ends[0]:.3g}, 95th percentile {ends[1]:.3g}"
    bars = Bars(edges[:-1], edges[1:], counts.astype(float), label, WRITE, names)
    rules = (Rule(end, "vertical", "") for end in ends)
    y = Axis("drives, log scale", "log", 0.5, 3.0 * float(counts.max()))
    return Panel(window_title(result), x, y, (bars, *rules))


def _scatter(result: Drives, known: list[DriveLife], x: Axis) -> Panel:
    title = "Lifetime writes ÷ capacity of each drive"
    written = [life for life in known if life.drive_writes]
    if not written:
        return Panel(title, x, Axis("drive writes"), message="the capacity of the drives is not known")
    outliers = result.outliers
    marks: list[Mark] = []
    for name, colour, high in (("usual", WRITE, False), (f"WAF above {outliers.waf_above or 0.0:.3g}", READ, True)):
        mine = [life for life in written if life.outlier == high]
        if mine:
            wafs, writes = _values(mine, lambda life: life.waf), _values(mine, lambda life: life.drive_writes)
            marks.append(PointsMark(wafs, writes, name, colour, weight=1.5 if high else 1.0))
    if outliers.drives and outliers.waf_above is not None:
        marks.append(Rule(outliers.waf_above, "vertical", ""))
    if outliers.drive_writes_below is not None:
        marks.append(Rule(outliers.drive_writes_below, "horizontal", "half the median"))
    y = _log_axis("drive writes", _values(written, lambda life: life.drive_writes))
    return Panel(title, x, y, tuple(marks))


def _shares(values: Floats, recent: Floats, x: Axis, rated: float | None) -> Panel:
    """Share of drives at or below a DWPD; those below the axis stand at its beginning."""
    marks: list[Mark] = [
        LineMark(
            np.maximum(np.sort(some), x.low or 0.0), 100.0 * np.arange(1, some.size + 1) / some.size, label, colour
        )
        for some, label, colour in ((values, "lifetime", FSU), (recent, "in the window", READ))
        if some.size
    ]
    if rated is not None:
        marks.append(Rule(rated, "vertical", f"rated {rated:g}"))
    return Panel("Drives at or below", x, Axis("drives (%)", low=0, high=102), tuple(marks))


def _wear(result: Drives, timestamps: list[FleetReading], times: NDArray[Any], x: Axis) -> Panel:
    lines = (("most worn", "wear_max_pct", READ), ("mean", "wear_mean_pct", FSU), ("least worn", "wear_min_pct", WRITE))
    series = [(label, _series(timestamps, name), colour) for label, name, colour in lines]
    known = np.concatenate([values for _, values, _ in series])
    known = known[np.isfinite(known)]
    if not known.size:
        return Panel(window_title(result), x, Axis("rated life used (%)"), message=NO_WEAR)
    if not known.any():
        return Panel(window_title(result), x, Axis("rated life used (%)"), message=UNWORN)
    marks = tuple(_mark(times, values, label, colour) for label, values, colour in series)
    return Panel(window_title(result), x, Axis("rated life used (%)", low=0, high=1.1 * max(known.max(), 1.0)), marks)


def _paces(timestamps: list[FleetReading], times: NDArray[Any], x: Axis) -> Panel:
    dwpd, waf = _series(timestamps, "dwpd"), _series(timestamps, "waf")
    if not np.isfinite(dwpd).any():
        return Panel("Between readings", x, Axis("drive writes per day"), message=NO_RATES)
    marks: list[Mark] = [_mark(times, dwpd, "drive writes per day", WRITE)]
    right = None
    if np.isfinite(waf).any():
        marks.append(_mark(times, waf, "write amplification", READ, "right"))
        right = Axis("WAF", low=0, high=1.1 * float(np.nanmax(waf)))
    y = Axis("drive writes per day", low=0, high=1.1 * float(np.nanmax(dwpd)) or 1.0)
    return Panel("All drives together, since the readings before", x, y, tuple(marks), right)


def _series(times: list[FleetReading], name: str) -> Floats:
    values = [getattr(fleet_reading, name) for fleet_reading in times]
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _mark(times: NDArray[Any], values: Floats, label: str, colour: str, side: Any = "left") -> Mark:
    """A line over what is known; dots where that is a single one, or very many."""
    known = np.isfinite(values)
    shown = LineMark if 1 < int(known.sum()) <= LINE_AT_MOST else PointsMark
    return shown(times[known], values[known], label, colour, side)


# Drives in the report; nothing where no drive was read ----------------------------------------------------------------

REPORT_ORDER: Final = 48
NEARLY_WORN_PCT: Final = 80.0
WORN_PCT: Final = 100.0


def report_answers(result: Drives) -> list[Answer]:
    """How the drives are doing."""
    return [Answer("drives", (verdict(result),), amplification(result))] if result.drives else []


def report_identity(result: Drives) -> list[str]:
    """How many drives were read."""
    return [counted(result.drives, "drive")] if result.drives else []


def report_notices(result: Drives) -> list[Notice]:
    """Drives that are worn out, or nearly."""
    worn = result.wear_pct.max
    if not result.drives or worn is None or not worn >= NEARLY_WORN_PCT:
        return []
    words = f"The most worn drive has used {t.show_percent(worn)} % of its rated life."
    step = "Replace worn drives, and check how long the others last."
    return [Notice("high" if worn >= WORN_PCT else "warn", "drives", words, step, ("drives",))]


def report_sections(result: Drives) -> list[ReportSection]:
    """Figures and tables of one file system."""
    if not result.drives:
        return []
    parts: list[Part] = []
    if result.outliers.drives:
        parts.append(outliers(result))
    parts += [
        drive_writes_per_day(result),
        spreads(result),
        over_time(result),
        years_left(result),
    ]
    parts += [busiest(result), groups(result), headline(result)]
    return [
        ReportSection("Drives", tuple(parts), "drives"),
        ReportSection("What the wear of drives rests on", (coverage(result),), "appendix"),
    ]


def report_methods(results: Sequence[Drives]) -> list[ReportSection]:
    """What the words mean."""
    if not any(result.drives for result in results):
        return []
    return [
        ReportSection(
            "Wear of drives",
            (
                "Write amplification (WAF) is bytes written to flash divided by bytes written by hosts, over a drive's"
                " life; for several drives together, the sums are divided. Drive writes per day (DWPD) are host bytes"
                " divided by capacity and by the days a drive was powered. Where drives were read more than once, the"
                " same numbers of the window are differences between readings, by the calendar.",
                "A drive rewrites its flash even when nobody writes to it, so a little-used drive shows a high WAF"
                " without wearing out. A WAF is called high beyond three inter-quartile ranges above the third"
                " quartile, and low use is less than half the median of lifetime writes.",
            ),
        )
    ]
