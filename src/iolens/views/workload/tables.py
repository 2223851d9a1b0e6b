"""The workload for people: targets, models with a verdict in words, sizes, idle periods, the week and the day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from iolens.analyses.workload.bandwidth import LARGEST_MINUTE
from iolens.units import format_bytes_si
from iolens.views.render import tables as t
from iolens.views.render.coverage import covered
from iolens.views.render.section import by_server, moved, with_servers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.workload.analysis import TargetWorkload, Workload
    from iolens.analyses.workload.bandwidth import IdlePeriods, RhythmHours, Throughput
    from iolens.views.render.tables import Row, TableColumn, TableView

NO_SIZES: Final = "No request sizes in this window."
DIRECTIONS: Final = ("read", "write")
PERCENT: Final = 100.0
DAY_MINUTES: Final = 1440
ORDINALS: Final = {95.0: "95th percentile", 99.0: "99th percentile", 100.0: "largest"}


def tables(result: Workload) -> list[TableView]:
    """The tables of the sections that were asked for, and what they rest on."""
    asked = result.sections
    shown = (
        ("bandwidth" in asked, (targets, peaks)),
        ("mix" in asked, (mix,)),
        (bool(result.models), (models,)),
        ("sizes" in asked, (sizes, size_peaks)),
        (bool(result.size_bandwidth), (size_bandwidth,)),
        ("rhythm" in asked, (week, day)),
        ("throughput" in asked, (throughput, idle_periods)),
        (result.throughput is not None and result.throughput.zero_pct > 0, (zero_periods,)),
        (bool(result.maintenance), (maintenance,)),
        (True, (coverage,)),
    )
    return [describe(result) for wanted, several in shown if wanted for describe in several]


# In words.


def verdict(result: Workload) -> str:
    """Mix, burstiness and idleness in a few sentences."""
    said = " ".join(words for words in (_of_mix(result), _of_throughput(result), _of_peaks(result)) if words)
    return covered(result, said)


def _of_mix(result: Workload) -> str:
    whole = result.aggregate
    if whole is None:
        return ""
    shares = [
        f"{t.show_percent(share)} % of the {what}"
        for share, what in ((whole.write_requests_pct, "requests"), (whole.write_bytes_pct, "bytes"))
        if share is not None
    ]
    return f"Writes are {' and '.join(shares)}." if shares else ""


def _of_throughput(result: Workload) -> str:
    answer = result.throughput
    if answer is None:
        return ""
    if not answer.largest_bytes_per_s:
        return "Nothing was moved at all."
    least = "" if answer.below_third_of_peak_pct is None else (
        f"; for {t.show_percent(answer.below_third_of_peak_pct)} % of the time it is below a third of"
        f" {peak_named(answer)}"
    )  # fmt: skip
    return (
        f"Throughput is {_rate(answer.mean_bytes_per_s)} on average and {_rate(answer.largest_bytes_per_s)} in the"
        f" largest minute{least}. {t.show_percent(answer.idle_pct)} % of the minutes are idle (below"
        f" {_rate(answer.idle_below_bytes_per_s)}), the longest period {_minutes(answer.longest_idle_min)}."
    )


def peak_named(throughput: Throughput) -> str:
    """What throughput is compared with: a peak the hardware is known to reach, or only the window's largest minute."""
    if throughput.peak_origin == LARGEST_MINUTE:
        return f"the {LARGEST_MINUTE}"
    return f"the peak ({_rate(throughput.peak_bytes_per_s)}, {throughput.peak_origin})"


def _of_peaks(result: Workload) -> str:
    shares = [
        f"{t.show_percent(100.0 * peak.aggregate_bytes_per_s / peak.sum_of_targets_bytes_per_s)} % ({peak.direction}s)"
        for peak in result.peak_vs_sum
        if peak.percentile == PERCENT and peak.sum_of_targets_bytes_per_s
    ]
    if not shares or len(result.targets) < 2:
        return ""
    return f"All targets together reach {' and '.join(shares)} of the sum of their own peaks."


def _rate(value: float) -> str:
    return f"{format_bytes_si(value)}/s"


def _minutes(count: int) -> str:
    return f"{count} min" if count < 120 else f"{count / 60:.3g} h"


def named(model: str) -> str:
    """`read_interarrival` for people."""
    direction, _, what = model.partition("_")
    return f"{direction} {'inter-arrival time' if what == 'interarrival' else 'idle time' if what == 'idle' else what}"


# As tables.


def targets(result: Workload) -> TableView:
    """Percentiles of bandwidth by target (Fig. 4), and of all together."""
    columns = (
        t.text("target", "Target"), t.count("samples", "Samples"),
        *(t.rate(f"{direction}_{name}_bytes_per_s", f"{heading} {direction}") for direction in DIRECTIONS
          for name, heading in (("p95", "95 %"), ("p99", "99 %"), ("max", "Max"))),
        t.percent("idle_pct", "Idle"),
    )  # fmt: skip
    note = [verdict(result), *_of_targets(result)]
    if result.coverage.ticks_left_out:
        note.append(
            f"The total is of ticks with at least nine in ten targets; {result.coverage.ticks_left_out:,} had fewer."
        )
    if result.coverage.percentile_error_pct:
        note.append(f"Percentiles come from a sketch and are right to {result.coverage.percentile_error_pct:g} %.")
    return _by_target(result, "per_target", f"{result.filesystem}: bandwidth by target", columns, note)


def mix(result: Workload) -> TableView:
    """Share of writes by target (Fig. 7)."""
    columns = (
        t.text("target", "Target"), t.volume("read_bytes", "Read"), t.volume("write_bytes", "Written"),
        t.percent("write_requests_pct", "Writes of requests"), t.percent("write_bytes_pct", "Writes of bytes"),
        t.percent("idle_pct", "Idle"),
    )  # fmt: skip
    note = _of_targets(result) if "bandwidth" in result.sections else [verdict(result), *_of_targets(result)]
    return _by_target(result, "mix", f"{result.filesystem}: reads and writes", columns, note)


def _by_target(result: Workload, name: str, title: str, columns: tuple[TableColumn, ...], note: list[str]) -> TableView:
    lines: list[TargetWorkload] = by_server(result.servers, busiest(result))
    if result.aggregate is not None:
        lines = [*lines, result.aggregate]
    notes = "\n".join(line for line in (*note, *moved(result.servers)) if line)
    return t.TableView(title, *with_servers(result.servers, columns, lines), notes, name=name)


def busiest(result: Workload) -> list[TargetWorkload]:
    """As many targets as a table shows: those that moved most, in the order of their names."""
    if len(result.targets) <= result.top:
        return result.targets
    moved = sorted(result.targets, key=lambda line: (line.read_bytes or 0) + (line.write_bytes or 0), reverse=True)
    return sorted(moved[: result.top], key=lambda line: line.target)


def _of_targets(result: Workload) -> list[str]:
    if len(result.targets) <= result.top:
        return []
    return [f"The {result.top} of {len(result.targets)} targets that moved most (--top); JSON has them all."]


def peaks(result: Workload) -> TableView:
    """The aggregate against the sum of individual percentiles (Fig. 6)."""
    columns = (
        t.text("percentile", "Percentile"), t.text("direction", "Direction"),
        t.rate("aggregate_bytes_per_s", "All together"),
        t.rate("sum_of_targets_bytes_per_s", "Sum of the targets' own percentiles"),
        t.percent("aggregate_of_sum_pct", "Together of the sum"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            ORDINALS[peak_against_sum.percentile],
            peak_against_sum.direction,
            peak_against_sum.aggregate_bytes_per_s,
            peak_against_sum.sum_of_targets_bytes_per_s,
            100.0 * peak_against_sum.aggregate_bytes_per_s / peak_against_sum.sum_of_targets_bytes_per_s
            if peak_against_sum.sum_of_targets_bytes_per_s
            else None,
        )
        for peak_against_sum in result.peak_vs_sum
    ]
    return t.TableView("Peaks at once, and one by one", columns, rows, name="peaks")


def models(result: Workload) -> TableView:
    """The tail models side by side (Figs. 5, 11, 13), and what to make of them in words."""
    columns = (
        t.text("model", "Model"), t.text("unit", "Unit"), t.count("samples", "Positive values"),
        t.count("off_tick_samples", "Samples off the tick"), t.percent("zero_share_pct", "Zeros"),
        t.number("paper_alpha", "Paper: alpha"),
        _amount("paper_xm", "Paper: x_m"), t.number("paper_r2", "Paper: R²", form=".4f"),
        t.number("quantised_alpha", "Quantised: alpha"), _amount("quantised_xm", "Quantised: x_m"),
        t.number("quantised_r2", "Quantised: R²", form=".4f"),
        t.number("mle_alpha", "Likelihood: alpha"), _amount("mle_xm", "Likelihood: x_m"),
        t.text("mle_xm_candidates", "Likelihood: x_m is the best of"),
        t.number("mle_ks", "Likelihood: KS distance", form=".3g"),
        t.count("mle_n_tail", "Likelihood: values above x_m"),
        t.number("mle_p_value", "Likelihood: p-value", form=".2g"), t.text("best_model", "Best of five, all values"),
        t.text("tail_best_model", "Best of five, above x_m"),
    )  # fmt: skip
    rows: list[Row] = []
    for name, tail in result.models.items():
        fits = [
            value
            for fit in (tail.paper, tail.quantised)
            for value in ((None,) * 3 if fit is None else (fit.alpha, fit.xm, fit.r2))
        ]
        likely: tuple[Any, ...] = (None,) * 6
        if (mle := tail.mle) is not None:
            candidates = f"{mle.xm_candidates:,} of {mle.xm_values:,} values"
            likely = mle.alpha, mle.xm, candidates, mle.ks, mle.n_tail, mle.p_value
        best = [None if model is None else model.replace("_", " ") for model in (tail.best_model, tail.tail_best_model)]
        counted = tail.samples, tail.off_tick_samples, tail.zero_share_pct
        rows.append((named(name), tail.unit, *counted, *fits, *likely, *best))
    words = [f"{named(name).capitalize()}: {model.verdict}." for name, model in result.models.items()]
    notes = "\n".join([*words, *_off_tick(result), *_censored(result)])
    return t.TableView(f"{result.filesystem}: heavy tails", columns, rows, notes, sideways=True, name="models")


def _off_tick(result: Workload) -> list[str]:
    """Samples that no model of the time between requests has."""
    return [
        f"{model.off_tick_samples:,} samples are left out of the {named(name)}: they are not {result.tick_s:g} s long."
        for name, model in result.models.items()
        if model.off_tick_samples
    ]


def _censored(result: Workload) -> list[str]:
    """Idle runs that may have been longer than is known."""
    return [
        f"{idle.direction.capitalize()} idle runs that touch {what}: {runs:,}, the longest of at least"
        f" {longest:,.4g} s; in no model, because they may have been longer."
        for idle in result.censored_idle
        for what, runs, longest in (
            ("an end of the window", idle.runs, idle.longest_s),
            ("a gap in the samples", idle.runs_at_gaps, idle.longest_at_gaps_s),
        )
        if runs
    ]


def _amount(name: str, heading: str) -> TableColumn:
    """Bytes per second or seconds, as the row's unit says."""
    return t.TableColumn(name, heading, "number", lambda value: format(value, ",.0f" if value >= 1000 else ".4g"))


def size_peaks(result: Workload) -> TableView:
    """Where request sizes cluster."""
    columns = (
        t.text("direction", "Direction"), t.size("size_bytes", "Up to"), t.percent("requests_pct", "Of its requests"),
    )  # fmt: skip
    rows = t.rows_of(result.size_peaks, columns)
    shares = [
        f"{sum(peak.requests_pct for peak in mine):.3g} % of the {direction}s"
        for direction in DIRECTIONS
        if (mine := [size_peak for size_peak in result.size_peaks if size_peak.direction == direction])
    ]
    nothing = "No bin holds 5 % of the requests and more than the bins beside it." if result.sizes else NO_SIZES
    return t.TableView(
        "Peaks of the request sizes",
        columns,
        rows,
        f"They hold {' and '.join(shares)}." if shares else nothing,
        name="size_peaks",
    )


def size_bandwidth(result: Workload) -> TableView:
    """Bandwidth by the size of requests in the same minute of the same target (Fig. 9)."""
    columns = (
        t.text("direction", "Direction"), t.size("size_bytes", "99 % of requests up to"), t.count("windows", "Minutes"),
        t.rate("median_bytes_per_s", "Median bandwidth"), t.rate("max_bytes_per_s", "Largest bandwidth"),
        t.count("taken_every", "Taken: one minute of"),
    )  # fmt: skip
    return t.TableView(
        "Request size and bandwidth",
        columns,
        t.rows_of(result.size_bandwidth, columns),
        "Bandwidth of a minute of a target is the 99th percentile of its samples; the largest is of all minutes.",
        name="size_bandwidth",
    )


def sizes(result: Workload) -> TableView:
    """Request sizes of all targets (Fig. 8): the bins with most requests."""
    columns = (
        t.size("size_bytes", "Up to"),
        *(column for direction in DIRECTIONS for column in (
            t.count(f"{direction}_requests", f"{direction.capitalize()}s"),
            t.percent(f"{direction}_pct", f"{direction.capitalize()}s"),
            t.percent(f"{direction}_cumulative_pct", f"{direction.capitalize()}s up to here"))),
    )  # fmt: skip
    cells = {
        (size.direction, size.size_bytes): (size.requests, 100.0 * size.pdf, 100.0 * size.cdf) for size in result.sizes
    }
    requests = {
        size: sum(cells.get((direction, size), (0,))[0] for direction in DIRECTIONS)
        for size in {size.size_bytes for size in result.sizes}
    }
    shown = sorted(sorted(requests, key=requests.__getitem__, reverse=True)[: result.top])
    rows: list[Row] = [
        (size, *(value for direction in DIRECTIONS for value in cells.get((direction, size), (None, None, None))))
        for size in shown
    ]
    note = "" if rows else NO_SIZES
    if len(requests) > result.top:
        note = f"The {result.top} of {len(requests)} bins with most requests (--top); JSON has them all."
    return t.TableView(f"{result.filesystem}: request sizes", columns, rows, note, name="sizes")


def week(result: Workload) -> TableView:
    """Bytes per observed hour by weekday (Fig. 15a)."""
    return _rhythm(result, "weekdays", "The week", "Weekday", [] if result.rhythm is None else result.rhythm.weekday)


def day(result: Workload) -> TableView:
    """Bytes per observed hour by hour of the day (Fig. 15b)."""
    return _rhythm(result, "hours", "The day", "Hour", [] if result.rhythm is None else result.rhythm.hour)


def _rhythm(result: Workload, name: str, title: str, heading: str, lines: Sequence[RhythmHours]) -> TableView:
    columns = (
        t.text("name", heading), t.number("observed_hours", "Observed", "h", ",.1f"),
        t.volume("read_bytes_per_hour", "Read per hour"), t.volume("write_bytes_per_hour", "Written per hour"),
    )  # fmt: skip
    rows = t.rows_of(lines, columns)
    zone = "" if result.rhythm is None else f"In {result.rhythm.timezone}; per hour that was observed."
    return t.TableView(f"{title} of {result.filesystem}", columns, rows, zone, name=name)


def throughput(result: Workload) -> TableView:
    """Mean, peak and how bursty it is (D §4)."""
    columns = (
        t.rate("mean_bytes_per_s", "Mean"), t.rate("peak_bytes_per_s", "Peak"), t.text("peak_origin", "Peak is"),
        t.rate("largest_bytes_per_s", "Largest minute"), t.time("peak_time", "It ended at"),
        t.rate("peak_read_bytes_per_s", "Largest minute, reads"),
        t.rate("peak_write_bytes_per_s", "Largest minute, writes"),
        t.volume("read_bytes_per_day", "Read per day"), t.volume("write_bytes_per_day", "Written per day"),
        t.percent("below_third_of_peak_pct", "Time below a third of the peak"),
        t.count("observed_minutes", "Minutes observed"), t.count("wall_minutes", "Minutes in all"),
        t.rate("idle_below_bytes_per_s", "Idle is below"), t.percent("idle_pct", "Idle minutes"),
        t.count("longest_idle_min", "Longest idle period (min)"), t.percent("zero_pct", "Minutes without a byte"),
        t.count("longest_zero_min", "Longest without a byte (min)"),
    )  # fmt: skip
    rows: list[Row] = []
    if result.throughput is not None:
        rows = [(result.filesystem, *t.row_of(result.throughput, columns))]
    head = t.text("filesystem", "File system")
    note = "" if result.throughput is None else _per_day(result.throughput.observed_minutes)
    return t.TableView(
        f"{result.filesystem}: throughput", (head, *columns), rows, note, sideways=True, name="throughput"
    )


def _per_day(minutes: int) -> str:
    """How bytes per day come about: a rate, however much of a day was observed."""
    part = ", less than a day" if minutes < DAY_MINUTES else ""
    return f"Bytes per day are a rate: the mean of the {minutes:,} observed minutes{part}, scaled to 24 h."


def idle_periods(result: Workload) -> TableView:
    """Table III of paper D."""
    answer = result.throughput
    title = "Idle periods" if answer is None else f"Idle periods: below {_rate(answer.idle_below_bytes_per_s)}"
    return _periods("idle_periods", title, [] if answer is None else answer.idle_periods)


def zero_periods(result: Workload) -> TableView:
    """The same for minutes without a single byte."""
    return _periods(
        "zero_periods", "Periods without a byte", [] if result.throughput is None else result.throughput.zero_periods
    )


def _periods(name: str, title: str, lines: Sequence[IdlePeriods]) -> TableView:
    columns = (
        t.count("from_min", "From (min)"), t.count("to_min", "To (min)"), t.count("count", "Periods"),
        t.count("minutes", "Minutes"), t.percent("share_pct", "Of observed time"),
        t.percent("wall_share_pct", "Of all time"),
    )  # fmt: skip
    return t.TableView(
        title, columns, t.rows_of(lines, columns), "Missing minutes are not idle, and end a period.", name=name
    )


def maintenance(result: Workload) -> TableView:
    """Times in which the file system was not in use."""
    columns = (
        t.time("start", "From"), t.time("end", "To"), t.text("name", "Name"),
        t.text("origin", "Origin"),
    )  # fmt: skip
    rows = t.rows_of(result.maintenance, columns)
    note = "Left out of everything above but the sizes." if result.maintenance_left_out else (
        "Part of everything above; --without-maintenance leaves it out."
    )  # fmt: skip
    return t.TableView("Maintenance", columns, rows, note, name="maintenance")


def coverage(result: Workload) -> TableView:
    """What the answer rests on."""
    fields = (
        t.count("targets_known", "Targets known"), t.count("targets_reporting", "Targets reporting"),
        t.text("missing_targets", "Without data"), t.text("target_kinds", "Kind"),
        t.percent("complete_pct", "Complete"), t.text("sources", "Sources"),
        t.count("overlapping_rows", "Overlapping rows"), t.count("missing_samples", "Missing samples"),
        t.count("ticks_left_out", "Ticks with too few targets"),
        t.number("percentile_error_pct", "Error of percentiles", "%", "g"),
    )  # fmt: skip
    columns = (
        t.text("filesystem", "File system"),
        t.number("tick_s", "Tick", "s", ",g"),
        t.count("samples", "Samples"),
    )
    row: Row = (
        result.filesystem,
        result.tick_s,
        result.samples,
        *t.row_of(result.coverage, fields),
    )
    return t.TableView(
        "Coverage", (*columns, *fields), [row], "\n".join(result.coverage.notes), sideways=True, name="coverage"
    )


# Sizes in words, for figures and the report.
