"""Wear of drives for people: the fleet in words, spreads, high WAFs and why, hot spots, what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.units import format_bytes_si
from iolens.views.render import tables as t
from iolens.visible_text import counted, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.drives.analysis import DriveLife, Drives, DriveSpread
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
