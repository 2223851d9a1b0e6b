"""File System Utilization for people: the headline, Tables II and III of paper U, sizes, days, targets, coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.intervals.buckets import COMPLETE_PCT
from iolens.models.transaction_time import CalibrationState
from iolens.units import MIB, format_bytes_si
from iolens.views.render import tables as t
from iolens.views.render.coverage import COLUMNS, coverage_table, covered
from iolens.views.render.section import by_server, moved, with_servers
from iolens.visible_text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.utilization.analysis import Category, Utilization
    from iolens.analyses.utilization.saturation import Plateau
    from iolens.analyses.utilization.targets import SizeCount, TargetUtilization
    from iolens.models.transaction_time import Calibration
    from iolens.views.render.tables import Row, TableColumn, TableView

DAYS_SHOWN: Final = 14
NOTEWORTHY_HOURS: Final = 0.005  # shows as 0.01; less is the jitter of clocks
TARGETS_SHOWN: Final = 24
BUSIEST_SHOWN: Final = 12
SAME_FACTOR: Final = 1.05  # below it, two shares of time are the same to the decimals shown
NO_DATA: Final = "No data in this window."
TOO_LONG: Final = "Samples are too long to tell whether FSU was steady: fewer than eight fit into the shortest stretch."
NO_SIZES: Final = (
    "Bytes were moved, but nothing here counts disk I/Os by size (brw_stats), without which FSU is not known."
)


def tables(result: Utilization) -> list[TableView]:
    """Everything the result says; with `compare`, both file systems side by side where it fits."""
    systems = [result] if result.compare is None else [result, result.compare]
    shared = [_headline(systems), *categories(systems), _distribution(systems), io_sizes(systems)]
    apart = [
        table(system)
        for table in (sizes_since_start, daily, plateaus, evidence, per_target, gaps)
        for system in systems
        if system.has_levels or table is not plateaus
    ]
    return [*shared, *(table for table in apart if table is not None), coverage(systems), calibration(systems)]


def verdict(result: Utilization) -> str:
    """In one sentence, how busy it was, and how busy the same bytes would have kept it as 1 MiB I/Os (SPEC U8).

    Where FSU has no level, what its mean is good for.
    """
    if not result.has_levels and result.mean_pct is not None and not t.is_missing(result.mean_pct):
        mean = f"Mean FSU is {t.show_percent(result.mean_pct)} % ({result.calibration_words})"
        return covered(result, f"{mean}, which serves to compare times and targets.")
    busy = result.busy_time_pct
    if t.is_missing(busy) or busy is None:
        return NO_DATA if result.bandwidth_busy_time_pct is None else NO_SIZES
    return covered(result, _verdict(result, busy))


def _verdict(result: Utilization, busy: float) -> str:
    optimal, factor = result.optimal_busy_time_pct, result.under_report_factor
    if busy == 0:
        return f"Never busy by FSU (above {border(result):g} %) in this window."
    begins = f"Busy {t.show_percent(busy)} % of the time by FSU; the same bytes as 1 MiB I/Os would"
    if optimal is None or t.is_missing(optimal):
        return f"Busy {t.show_percent(busy)} % of the time by FSU."
    if optimal == 0:
        return f"{begins} never have kept it busy: all of this load is due to smaller I/Os."
    seen = f"{begins} have kept it busy {t.show_percent(optimal)} % of the time"
    if factor is None or t.is_missing(factor):
        return f"{seen}."
    if factor < SAME_FACTOR:
        return f"{seen}: the load is the bytes, larger I/Os would not help."
    return f"{seen}, {factor:,.1f}× less: the rest is due to smaller I/Os, which a count of bytes does not show."


def io_size_span(sizes: list[SizeCount]) -> list[int]:
    """The size bins from the first to the last that counted anything, empty ones between them included."""
    used = {size.size_bytes for size in sizes if size.count}
    return sorted(b for b in {size.size_bytes for size in sizes} if used and min(used) <= b <= max(used))


def category_range(category: Category) -> str:
    """`F < 2`, `2 ≤ F ≤ 30`, `F > 30`."""
    if category.fsu_to_pct is None:
        return f"F > {category.fsu_from_pct:g}"
    if category.fsu_from_pct == 0:
        return f"F < {category.fsu_to_pct:g}"
    return f"{category.fsu_from_pct:g} ≤ F ≤ {category.fsu_to_pct:g}"


def border(result: Utilization) -> float:
    """FSU above which a file system is busy."""
    return next((c.fsu_from_pct for c in result.categories if c.name == "busy"), 30.0)


def fsu_columns(systems: list[Utilization], prefix: str = "mean", heading: str = "Mean") -> list[TableColumn]:
    """A column for each FSU the systems have: by labels of bins, by true bytes."""
    models = {system.model for system in systems}
    columns = {
        "histogram": t.percent(f"{prefix}_fsu_pct", f"{heading} FSU"),
        "counters": t.percent(f"{prefix}_fsu_bytes_pct", f"{heading} FSU by bytes"),
    }
    return [column for model, column in columns.items() if model in models]


def _util_column(systems: list[Utilization]) -> list[TableColumn]:
    known = any(system.mean_util_pct is not None for system in systems)
    return [t.percent("mean_util_pct", "Kernel's %util")] if known else []


def _prefixed(systems: list[Utilization], system: Utilization, heading: str) -> str:
    return heading if len(systems) == 1 else f"{system.filesystem}: {heading}"


def _headline(systems: list[Utilization]) -> TableView:
    columns = (
        t.text("filesystem", "File system"),
        t.time("window_start", "From"), t.time("window_end", "To"),
        t.text("model", "Model"), t.count("targets", "Targets"), t.count("samples", "Samples"),
        t.count("target_samples", "Target samples"), t.text("calibration_state", "Calibration"),
        *fsu_columns(systems), *_band_columns(systems),
        *_util_column(systems),
        *busy_columns(systems), t.text("resolution", "Resolution"),
    )  # fmt: skip
    rows: list[Row] = [t.row_of(system, columns, _band_cells(system)) for system in systems]
    names = " and ".join(system.filesystem for system in systems)
    notes = [_prefixed(systems, system, sentence) for system in systems for sentence in _sentences(system)]
    return t.TableView(
        f"{names}: file system utilization", columns, rows, "\n".join(notes), sideways=True, name="summary"
    )


def _band_columns(systems: list[Utilization]) -> list[TableColumn]:
    """Where the band of any of them is known."""
    if all(system.fsu_band_pct is None for system in systems):
        return []
    return [t.percent("fsu_band_low_pct", "… at least"), t.percent("fsu_band_high_pct", "… at most")]


def _band_cells(system: Utilization) -> dict[str, object]:
    band = system.fsu_band_pct
    return {
        "fsu_band_low_pct": None if band is None else band.low,
        "fsu_band_high_pct": None if band is None else band.high,
    }


def with_levels(systems: Sequence[Utilization]) -> list[Utilization]:
    """Those whose FSU can be compared with a level."""
    return [system for system in systems if system.has_levels]


def busy_columns(systems: list[Utilization]) -> list[TableColumn]:
    """Busy by FSU beside the same bytes as 1 MiB I/Os, and apart from both bandwidth against its peak."""
    above = f"Above {border(systems[0]):g} % of peak"
    by_fsu = [
        t.percent("busy_time_pct", "Busy by FSU"), t.percent("optimal_busy_time_pct", "Busy, as 1 MiB I/Os"),
        t.number("under_report_factor", "Times less", "×", ",.1f"),
    ]  # fmt: skip
    return [
        *(by_fsu if with_levels(systems) else []), t.percent("bandwidth_busy_time_pct", above),
        t.rate("peak_bytes_per_s", "Peak bandwidth"), t.text("peak_origin", "Peak is"),
    ]  # fmt: skip


def _sentences(system: Utilization) -> list[str]:
    return [said for said in (verdict(system), since_start(system), bandwidth(system)) if said]


def bandwidth(system: Utilization) -> str:
    """How often bandwidth was a good part of its peak, and which peak; nothing where no byte was counted."""
    share, peak = system.bandwidth_busy_time_pct, system.peak_bytes_per_s
    if share is None or peak is None or t.is_missing(share) or t.is_missing(peak):
        return ""
    above = f"Bandwidth was above {border(system):g} % of its peak ({format_bytes_si(peak)}/s, {system.peak_origin})"
    said = f"{above} {t.show_percent(share)} % of the time."
    if system.knows_peak:
        return said
    return (
        f"{said} The true peak is not known (give --peak, or configure it); against a higher one the share is smaller."
    )


def categories(systems: list[Utilization]) -> list[TableView]:
    """Table II: idle, moderate and busy observations and their I/Os, where any of them has such."""
    if not with_levels(systems):
        return []
    columns: list[TableColumn] = [t.text("name", "Category"), t.text("fsu", "FSU (%)")]
    for place, system in enumerate(systems):
        mark = "compare_" if place else ""
        columns += [
            t.percent(f"{mark}observations_pct", _prefixed(systems, system, "obs.")),
            t.percent(f"{mark}optimal_pct", "optimal"),
            t.percent(f"{mark}suboptimal_pct", "sub-optimal"),
        ]
    rows: list[Row] = []
    for same in zip(*(system.categories for system in systems), strict=True):
        shares = [(c.observations_pct, c.optimal_pct, c.suboptimal_pct) for c in same]
        rows.append((same[0].name, category_range(same[0]), *(share for three in shares for share in three)))
    note = "\n".join(_optimal_notes(systems))
    return [t.TableView("Idle, moderate, busy", tuple(columns), rows, note, name="categories")]


def _optimal_notes(systems: list[Utilization]) -> list[str]:
    models = {system.model for system in systems}
    notes = {
        "histogram": "Optimal I/Os are those of 1 MiB or larger.",
        "counters": "Counters of operations and bytes do not tell single sizes: which I/Os are optimal is not known.",
    }
    return [note for model, note in notes.items() if model in models]


def _distribution(systems: list[Utilization]) -> TableView:
    shares = (0.5, 0.9, 0.95, 0.99)
    columns = (
        t.text("filesystem", "File system"), t.count("observations", "Observations"),
        *(t.text(f"fsu_p{share * 100:g}", f"{share * 100:g} % are at or below") for share in shares),
        *((t.percent("above_100_pct", "FSU above 100 %"),) if with_levels(systems) else ()),
    )  # fmt: skip
    rows: list[Row] = []
    for system in systems:
        total = sum(bin_.observations for bin_ in system.histogram)
        above = sum(bin_.observations for bin_ in system.histogram if bin_.fsu_from_pct >= 100)
        points = [_quantile(system, share) for share in shares]
        share_above = 100 * above / total if total and system.has_levels else None
        rows.append((system.filesystem, total, *points, share_above)[: len(columns)])
    return t.TableView(
        "Distribution of FSU", columns, rows, "Upper edges of histogram bins.", sideways=True, name="distribution"
    )


def _quantile(system: Utilization, share: float) -> str | None:
    """Upper edge of the first bin whose cumulative share reaches `share`."""
    needed = share * sum(bin_.observations for bin_ in system.histogram)
    reached = 0
    for bin_ in system.histogram:
        reached += bin_.observations
        if reached and reached >= needed:
            return f"{bin_.fsu_to_pct:g} %" if bin_.fsu_to_pct is not None else f"more than {bin_.fsu_from_pct:g} %"
    return None


def io_sizes(systems: list[Utilization]) -> TableView:
    """Disk I/Os by size and direction."""
    columns: list[TableColumn] = [t.size("size_bytes", "I/O size")]
    for place, system in enumerate(systems):
        for direction in ("read", "write"):
            mark = f"compare_{direction}" if place else direction
            columns += [
                t.count(f"{mark}_count", _prefixed(systems, system, f"{direction}s")),
                t.percent(f"{mark}_share_pct", "of all"),
            ]
    sizes = io_size_span([size for system in systems for size in system.io_sizes])
    rows: list[Row] = [
        (size, *(cell for system in systems for cell in _size_cells(system.io_sizes, size))) for size in sizes
    ]
    notes = [_prefixed(systems, system, _optimal_note(system)) for system in systems]
    return t.TableView("Disk I/Os by size", tuple(columns), rows, "\n".join(notes), name="io_sizes")


def since_start(system: Utilization) -> str:
    """What the counters of single samples say where there is no interval; nothing where there is one."""
    since = system.since_start
    if since is None:
        return ""
    began = "at a mount or a clear; they do not say when"
    if since.first_start is not None and since.last_start is not None:
        times = dict.fromkeys(map(t.show_time, (since.first_start, since.last_start)))
        began = " to ".join(times)
    share = "none" if since.suboptimal_pct is None else f"{t.show_percent(since.suboptimal_pct)} % of {since.ios:,}"
    return (
        "No two samples of this window make an interval, so FSU is not known. What"
        f" {counted(since.targets, 'target')} counted up to"
        f" {t.show_time(since.last_sample)} since counters began ({began}): {share} disk I/Os are smaller than 1 MiB."
    )


def sizes_since_start(system: Utilization) -> TableView | None:
    """Disk I/Os by size since counting began, where there is no interval."""
    if system.since_start is None or not system.since_start.ios:
        return None
    columns = (
        t.size("size_bytes", "I/O size"), t.count("read_count", "reads"), t.percent("read_share_pct", "of all"),
        t.count("write_count", "writes"), t.percent("write_share_pct", "of all"),
    )  # fmt: skip
    sizes = system.since_start.io_sizes
    rows: list[Row] = [(size, *_size_cells(sizes, size)) for size in io_size_span(sizes)]
    title = f"Disk I/Os of {system.filesystem} since counters began"
    return t.TableView(title, columns, rows, since_start(system), name="since_start")


def _size_cells(sizes: Sequence[SizeCount], size_bytes: int) -> list[float | None]:
    total = sum(size.count for size in sizes)
    counts = {size.direction: size.count for size in sizes if size.size_bytes == size_bytes}
    cells: list[float | None] = []
    for direction in ("read", "write"):
        value = counts.get(direction)
        cells += [value, 100 * value / total if value is not None and total else None]
    return cells


def _optimal_note(system: Utilization) -> str:
    total = sum(size.count for size in system.io_sizes)
    if system.model == "counters":
        return "Counters of operations and bytes do not tell single sizes."
    if not total:
        return "No I/O sizes were recorded in this window."
    optimal = sum(size.count for size in system.io_sizes if size.size_bytes >= MIB)
    return f"{t.show_percent(100 * optimal / total)} % of {total:,} I/Os are optimal (1 MiB or larger)."


def daily(system: Utilization) -> TableView:
    """Bytes moved per day."""
    columns = (
        t.day("date", f"Day ({system.daily_summary.timezone})"), t.volume("read_bytes", "Read"),
        t.volume("write_bytes", "Written"), t.percent("covered_pct", "Observed"),
    )  # fmt: skip
    shown = system.daily[-DAYS_SHOWN:]
    rows = t.rows_of(shown, columns)
    notes = [_daily_note(system)] if system.daily else [NO_DATA]
    if len(shown) < len(system.daily):
        notes.append(f"The last {len(shown)} of {len(system.daily)} days; JSON has them all.")
    return t.TableView(f"Daily volume of {system.filesystem}", columns, rows, "\n".join(notes), name="per_day")


def _daily_note(system: Utilization) -> str:
    of, volume = system.daily_summary, t.volume("", "")
    left_out = f"{counted(of.days_left_out, 'day')} with less than {COMPLETE_PCT:g} % of the samples"
    if not of.days:
        return f"{left_out}: no complete {of.timezone} day, so there is no mean or median."
    mean = f"read {volume.cell(of.mean_read_bytes)}, written {volume.cell(of.mean_write_bytes)}"
    median = f"read {volume.cell(of.median_read_bytes)}, written {volume.cell(of.median_write_bytes)}"
    without = f" {left_out} {'is' if of.days_left_out == 1 else 'are'} left out." if of.days_left_out else ""
    return f"Per {of.timezone} day over {counted(of.days, 'complete day')}: mean {mean}; median {median}.{without}"


def plateaus(system: Utilization) -> TableView:
    """Steady stretches, and which of them are saturated."""
    columns = (
        t.time("start", "From"), t.time("end", "To"), t.number("minutes", "Length", "min", ",.0f"),
        *fsu_columns([system], "median", "Median"), t.text("saturated", "Saturated"),
    )  # fmt: skip
    rows: list[Row] = [
        (plateau.start, plateau.end, plateau.duration_s / 60, plateau.median_pct, _yes(plateau.saturated))
        for plateau in system.plateaus or ()
    ]
    note = "\n".join(_plateau_notes(system)) if system.samples else NO_DATA
    return t.TableView(f"Steady stretches of {system.filesystem}", columns, rows, note, name="plateaus")


def _plateau_notes(system: Utilization) -> list[str]:
    if system.plateaus is None:
        return [TOO_LONG]
    if not system.plateaus:
        return ["None found."]
    full = sum(plateau.saturated for plateau in system.plateaus)
    ceilings = dict.fromkeys(map(ceiling, system.plateaus))
    missing = dict.fromkeys(plateau.evidence_missing for plateau in system.plateaus if plateau.evidence_missing)
    return [
        "FSU stayed near one level, which is a steady load and not yet a full disk. Saturated, with no more to give,"
        f" are those close to {' or '.join(ceilings)}: {full} of {len(system.plateaus)}.",
        *(f"There is no other evidence: {reason}." for reason in missing),
    ]


def _yes(true: bool) -> str:
    return "yes" if true else "no"


def ceiling(plateau: Plateau) -> str:
    """The ceiling it was held against, and where that is from."""
    unmeasured = "; no saturating test has measured it" if plateau.ceiling_origin == "default" else ""
    return f"the ceiling of {plateau.ceiling_pct:.0f} % ({plateau.ceiling_origin}{unmeasured})"


def evidence(system: Utilization) -> TableView | None:
    """How many I/Os were in flight and how long they took in the steady stretches, where histograms tell."""
    columns = (
        t.time("start", "From"), t.text("saturated", "Saturated"),
        t.number("in_flight_p50", "I/Os in flight", "", ",.0f"),
        t.number("window_in_flight_p50", "In the window", "", ",.0f"),
        t.number("io_time_p50_ms", "I/O time", "ms", ",.0f"),
        t.number("window_io_time_p50_ms", "In the window", "ms", ",.0f"),
    )  # fmt: skip
    rows: list[Row] = [
        (plateau.start, _yes(plateau.saturated), *t.row_of(plateau, columns[2:]))
        for plateau in system.plateaus or ()
        if plateau.evidence_missing is None
    ]
    note = "Medians over all disk I/Os (upper edges of bins). On a full disk more of them wait, and each takes longer."
    return (
        t.TableView(f"Steady stretches of {system.filesystem} and their I/Os", columns, rows, note, name="plateau_ios")
        if rows
        else None
    )


def per_target(system: Utilization) -> TableView:
    """Each target, or the busiest of many."""
    columns = (
        t.text("target", "Target"), *fsu_columns([system]), *_util_column([system]),
        *((t.percent("busy_time_pct", "Busy"),) if system.has_levels else ()),
        t.volume("read_bytes", "Read"), t.volume("write_bytes", "Written"),
    )  # fmt: skip
    shown = by_server(system.servers, system.per_target)
    notes = ([] if shown else [NO_DATA]) + moved(system.servers)
    if len(shown) > TARGETS_SHOWN:
        shown = sorted(system.per_target, key=_busyness, reverse=True)[:BUSIEST_SHOWN]
        notes.insert(0, f"The {BUSIEST_SHOWN} busiest of {len(system.per_target)} targets; JSON has them all.")
    view = with_servers(system.servers, columns, shown)
    return t.TableView(f"Targets of {system.filesystem}", *view, "\n".join(notes), name="per_target")


def _busyness(target: TargetUtilization) -> float:
    mean = target.mean_pct
    return -1.0 if mean is None or t.is_missing(mean) else mean


def gaps(system: Utilization) -> TableView | None:
    """Targets that reported, but not throughout."""
    columns = (
        t.text("target", "Target"), t.number("missing_hours", "Missing", "h", ",.2f"),
        t.number("longest_interval_s", "Longest interval", "s", ",.0f"), t.count("resets", "Resets"),
    )  # fmt: skip
    gaps = [
        target for target in system.coverage.per_target if target.missing_hours >= NOTEWORTHY_HOURS or target.resets
    ]
    gaps.sort(key=lambda target: (-target.missing_hours, -target.resets, target.target))
    rows = t.rows_of(gaps[:BUSIEST_SHOWN], columns)
    note = f"The worst {len(rows)} of {len(gaps)}; JSON has them all." if len(rows) < len(gaps) else ""
    return t.TableView(f"Targets of {system.filesystem} with gaps", columns, rows, note, name="gaps") if rows else None


def coverage(systems: list[Utilization]) -> TableView:
    """What the answer rests on, and what was missing."""
    notes = [_prefixed(systems, system, note) for system in systems for note in system.coverage.notes]
    return coverage_table([(system.filesystem, system.coverage) for system in systems], COLUMNS, "\n".join(notes))


def calibration(systems: list[Utilization]) -> TableView:
    """The coefficients behind the answer; where several apply, to which targets and from when."""
    columns: list[TableColumn] = [t.text("filesystem", "File system"), t.text("name", "Calibration")]
    columns += [t.text("state", "State"), t.text("evidence", "Evidence")]
    several = any(system.calibrations for system in systems)
    if several:
        columns += [t.text("target_class", "For class"), t.count("targets", "Targets"), t.time("valid_from", "From"),
                    t.time("valid_until", "Until")]  # fmt: skip
    for direction in ("write", "read"):
        columns += [
            t.number(f"{direction}_latency_s", f"{direction.capitalize()} latency", "s"),
            t.number(f"{direction}_s_per_byte", f"{direction.capitalize()} time per byte", "s/B"),
            t.number(f"{direction}_limit_mib_per_s", f"{direction.capitalize()} bandwidth limit", "MiB/s", ",.0f"),
            t.number(f"{direction}_limit_iops", f"{direction.capitalize()} rate limit", "I/O/s", ",.0f"),
        ]
    rows: list[Row] = []
    for system in systems:
        everywhere = AppliedCalibration(
            None, None, None, None, system.calibration, None,
            system.calibration_state or CalibrationState.CLASS, system.calibration_evidence or "",
        )  # fmt: skip
        for held in system.calibrations or [everywhere]:
            used, where = held.calibration, _where_it_holds(held) if several else ()
            about = (system.filesystem, used.name, held.state, held.evidence, *where)
            rows.append((*about, *_coefficients(used, "write"), *_coefficients(used, "read")))
    return t.TableView("Calibration", tuple(columns), rows, "Limits of one target.", sideways=True, name="calibration")


def _where_it_holds(applied_calibration: AppliedCalibration) -> tuple[object, ...]:
    in_class = None if applied_calibration.targets is None else len(applied_calibration.targets)
    return (
        applied_calibration.target_class or "all others",
        in_class,
        applied_calibration.valid_from,
        applied_calibration.valid_until,
    )


def _coefficients(calibration: Calibration, direction: str) -> tuple[float | None, ...]:
    of = calibration.of(direction)
    return (
        of.latency_s,
        of.s_per_byte,
        1 / of.s_per_byte / MIB if of.s_per_byte else None,
        1 / of.latency_s if of.latency_s else None,
    )
