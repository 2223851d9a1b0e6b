"""Why a run was slow in plain words, from the same numbers as the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.units import epoch_us, format_bytes, format_bytes_si
from iolens.views.render import tables as t
from iolens.views.render.figures import (
    FSU,
    OTHERS,
    READ,
    STEADY,
    WRITE,
    Axis,
    BandMark,
    Figure,
    LineMark,
    Mark,
    Panel,
    PointsMark,
)
from iolens.views.render.log_scales import bytes_unit
from iolens.views.render.shown_times import time_with_zone
from iolens.views.render.tables import show_percent
from iolens.views.runs import number, shown_number
from iolens.visible_text import core_hours, counted, listed, shown_name, times, visible

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation
    from iolens.analyses.explain.results import (
        ExplainedFactor,
        HistorySeries,
        LastingChange,
        RunNeighbour,
        ShareOf,
        Verdict,
    )
    from iolens.arrays import Booleans, Floats, Integers
    from iolens.views.render.tables import Row, TableView


LEAST: Final = 5  # like runs that are needed
MOST_TARGETS: Final = 8  # that are named
MOST_NEIGHBOURS: Final = 3

LABELS: Final[Mapping[str, str]] = {
    "bytes": "bytes moved",
    "opens": "opens",
    "mean_access_bytes": "mean access (bytes)",
    "small_access_pct": "accesses below 100 KiB (%)",
    "sequential_pct": "sequential accesses (%)",
    "strategy": "strategy",
    "fsu_others_pct": "FSU of others (%)",
    "mdt_ops_per_s": "metadata operations of others (1/s)",
    "imbalance": "imbalance of OSTs (std ÷ mean)",
    "fullness_pct": "fullness of its fullest OST (%)",
    "slowest_ost_ratio": "I/O time on its slowest OST ÷ others",
    "coverage_factor": "own bytes ÷ all bytes",
}

_SENTENCES: Final[Mapping[str, Callable[[Any], str]]] = {
    "bytes": lambda value: f"it moved {format_bytes_si(value)}",
    "opens": lambda value: f"it opened files {times(f'{value:,}')}",
    "mean_access_bytes": lambda value: f"its mean access is {format_bytes(value)}",
    "small_access_pct": lambda value: f"{shown_number(value)} % of its accesses are below 100 KiB",
    "sequential_pct": lambda value: f"{shown_number(value)} % of its accesses are sequential",
    "strategy": lambda value: f"its strategy is {str(value).replace('_', ' ')}",
    "fsu_others_pct": lambda value: f"the disks of its OSTs were {shown_number(value)} % busy for others",
    "mdt_ops_per_s": lambda value: f"others asked the metadata servers for {shown_number(value)} operations per second",
    "imbalance": lambda value: (
        f"the loads of its OSTs differed by {shown_number(100 * value)} % (standard deviation ÷ mean)"
    ),
    "fullness_pct": lambda value: f"its fullest OST was {shown_number(value)} % full",
    "slowest_ost_ratio": lambda value: (
        f"an I/O on its slowest OST took {shown_number(value)} times as long as on other OSTs"
    ),
    "coverage_factor": lambda value: f"{shown_number(100 * value)} % of the bytes its OSTs moved were its own",
}

_UNLEVELLED: Final[Mapping[str, Callable[[Any], str]]] = {
    "fsu_others_pct": lambda value: f"the FSU of its OSTs was {shown_number(value)} % for others, not calibrated",
}

_HEADS: Final[Mapping[Verdict, str]] = {
    "own": "slow because of what it did itself",
    "system": "slow because of the system",
    "both": "slow because of what it did itself and because of the system",
}

_SHARES: Final[Mapping[ShareOf, str]] = {
    "disk_seconds": "disk time",
    "metadata_seconds": "time of the metadata servers",
    "metadata_operations": "metadata operations",
}

_OSTS: Final[Mapping[str, str]] = {
    "log": "OSTs of its files",
    "option": "OSTs as given",
    "job_stats": "OSTs that it used, by job_stats",
}


def verdict_words(result: RunExplanation) -> str:
    """The verdict with its evidence, in a sentence or two."""
    if result.verdict in _HEADS:
        said = [finding.message for finding in result.slow_osts]
        said += [_evidence(line, result) for line in result.evidence]
        return f"{_HEADS[result.verdict]}: {'; '.join(said)}."
    if result.verdict == "no log":
        job = shown_name(str(result.job_id))
        return f"no Darshan log of job {job} is stored: whether it was slow, and what it did itself, is not known."
    if result.verdict == "too little history":
        return _too_little(result)
    return _unexplained(result) if result.verdict == "unexplained" else f"not slow: {_speed(result)}."


def who_words(result: RunExplanation) -> str:
    """Which run it is."""
    name = shown_name(result.executable or ("run" if result.run else "job"))
    job = f", job {shown_name(result.job_id)}" if result.job_id else ""
    user = f" of {shown_name(result.user)}" if result.user else ""
    return f"{name}{job}{user}"


def notes(result: RunExplanation) -> Iterator[str]:
    """What the answer rests on, what was lost, and what is not known."""
    if result.verdict not in _HEADS:
        yield from (f"{_capital(finding.message)}." for finding in result.slow_osts)
    if result.slow:
        yield f"{_capital(_speed(result))}."
    if result.slow and result.fall is not None:
        yield f"{_fall(result)}."
    if result.core_hours_lost:
        yield (
            f"{core_hours(shown_number(result.core_hours_lost))} lost: {_seconds(result.io_time_s)} of I/O instead of"
            f" {_seconds(result.history_median_io_time_s)} in the median, on {_cores(result.cores)}."
        )
    if result.history.relaxed and result.history.runs:
        yield "Too few runs moved the same: compared with runs of the same user, program and number of processes."
    if result.history.after:
        before = counted(result.history.runs - result.history.after, "like run")
        after = counted(result.history.after, "run")
        yield f"Only {before} came before it, which is too few; also used: {after} after it."
    if result.history.left_out:
        yield f"{counted(result.history.left_out, 'like run')} further away in time not used."
    yield from _system_notes(result)
    yield from _unknown(result)
    yield from (f"{_capital(note)}." for note in result.notes)


def neighbour_words(result: RunExplanation) -> str | None:
    """Who else used what the verdict names, a sentence for each kind of targets."""
    kinds = dict.fromkeys(line.share_of for line in result.neighbours)
    return " ".join(_of_neighbours(result, share_of) for share_of in kinds) or None


def _of_neighbours(result: RunExplanation, share_of: ShareOf) -> str:
    lines = [line for line in result.neighbours if line.share_of == share_of][:MOST_NEIGHBOURS]
    shown = [f"{shown_name(line.name)} ({show_percent(line.share_pct)} %)" for line in lines]
    place = "the metadata servers"
    if share_of == "disk_seconds":
        place = listed(result.neighbours_on, MOST_TARGETS) if result.neighbours_on else "its OSTs"
    return f"Others on {place}, by their share of the {_SHARES[share_of]}: {', '.join(shown)}."


def share_words(line: RunNeighbour) -> str:
    """What a neighbour's share is of."""
    return _SHARES[line.share_of]


def shown_percentile(percentile: float) -> int:
    """As a whole number; 0 and 100 only where it is below or above all."""
    return round(percentile) if percentile in (0.0, 100.0) else min(max(round(percentile), 1), 99)


def ordinal(number: float) -> str:
    """`1st`, `22nd`, `97th`."""
    whole = shown_percentile(number)
    ending = "th" if whole % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(whole % 10, "th")
    return f"{whole}{ending}"


def _evidence(line: ExplainedFactor, result: RunExplanation) -> str:
    runs = counted(result.history.runs, "like run")
    if line.change is not None:
        return f"{_said(line, result)} ({_changed(line, line.change)})"
    if line.percentile is None or line.rho is None:
        return _said(line, result)
    place = f"{ordinal(line.percentile)} percentile of {runs}"
    if line.percentile in (0.0, 100.0):
        place = f"{'more' if line.percentile else 'less'} than in all of {runs}"
    if line.factor == "strategy":
        return f"{_said(line, result)} (unlike most of {runs}; runs with it are slower, ρ = {_signed(line.rho)})"
    falls = "falls" if line.rho < 0 else "rises"
    return f"{_said(line, result)} ({place}; performance {falls} with it, ρ = {_signed(line.rho)})"


def _said(line: ExplainedFactor, result: RunExplanation) -> str:
    sentence = _UNLEVELLED.get(line.factor) if not result.has_levels else None
    said = (sentence or _SENTENCES[line.factor])(line.value)
    return said if line.target is None else said.replace(" OST ", f" OST, {visible(line.target)}, ", 1)


def _changed(line: ExplainedFactor, change: LastingChange) -> str:
    """A step that performance followed."""
    usual = "" if line.factor == "strategy" else f", {shown_number(change.before)} before"
    return f"lastingly since {time_with_zone(change.since)}{usual}; performance fell with it"


def _fall(result: RunExplanation) -> str:
    """That performance fell for good."""
    fall = result.fall
    if fall is None:
        return ""
    return (
        f"Performance fell lastingly, from {shown_number(fall.before)} to {shown_number(fall.after)}"
        f" {result.performance.unit} in the median, with the run of {time_with_zone(fall.since)}"
        f" (p = {fall.p:.2g})"
    )


def _unexplained(result: RunExplanation) -> str:
    unusual = [
        line
        for line in (*result.own, *result.system)
        if line.percentile is not None and not 10 <= line.percentile <= 90 and not _is_good(line)
    ]
    if not unusual:
        return "slow, and nothing that was measured was unusual."
    said = [f"{_said(line, result)} ({ordinal(line.percentile or 0.0)} percentile)" for line in unusual]
    return f"slow, and not explained. Unusual, but not known to make runs slower: {'; '.join(said)}."


def _is_good(line: ExplainedFactor) -> bool:
    """Whether like runs with such a value are known to be faster."""
    if line.rho is None or line.p_holm is None or line.p_holm >= 0.05 or line.percentile is None:
        return False
    return (line.rho > 0) == (line.percentile > 50)


def _too_little(result: RunExplanation) -> str:
    if result.performance.value is None:
        return "how fast the run was is not known: its log has no bytes or no I/O time."
    runs = counted(result.history.runs, "like run")
    return f"too little history: {runs}, and at least {LEAST} are needed to say whether it was slow."


def _speed(result: RunExplanation) -> str:
    speed = result.performance
    if speed.value is None or speed.history_percentile is None or speed.median is None:
        return "how fast it was is not known"
    return (
        f"{shown_number(speed.value)} {speed.unit}, the {ordinal(speed.history_percentile)} percentile of"
        f" {counted(result.history.runs, 'like run')}; their median is {shown_number(speed.median)}"
    )


def _system_notes(result: RunExplanation) -> Iterator[str]:
    if result.filesystem is None:
        return
    osts = listed(result.targets, MOST_TARGETS) if result.targets else "none"
    if result.targets_known:
        yield f"{_OSTS[str(result.targets_from)]}: {osts}."
    elif result.targets:
        yield f"The OSTs of its files are not known: all {len(result.targets):,} of {result.filesystem} are taken."
    if result.method == "overlap":
        yield ("No job_stats name the job: its share of the load is by bytes, an association and no proof.")
    if (words := neighbour_words(result)) is not None:
        yield words


def _unknown(result: RunExplanation) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for item in result.not_known:
        reasons.setdefault(item.reason, []).append(LABELS.get(item.factor, item.factor))
    yield from (f"Not known: {', '.join(names)}: {reason}." for reason, names in reasons.items())


def _seconds(amount: float | None) -> str:
    return "an unknown time" if amount is None else f"{shown_number(amount)} s"


def _cores(cores: int | None) -> str:
    return "an unknown number of cores" if cores is None else counted(cores, "core")


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


# One run against its history ------------------------------------------------------------------------------------------
# The verdict in words, then every factor in a line.

PERCENTILE: Final = t.TableColumn("percentile", "Percentile", "number", lambda value: str(shown_percentile(value)))


def tables(result: RunExplanation) -> list[TableView]:
    """The factors; with neighbours, these as well."""
    columns = (
        t.text("kind", "Whose"), t.text("factor", "Factor"), number("value", "Value"),
        PERCENTILE, t.number("rho", "ρ", form="+.2f"),
        t.number("p_holm", "p (Holm)", form=".2g"), t.text("named", "Explains"),
    )  # fmt: skip
    title = f"{who_words(result)}: {verdict_words(result)}"
    factors = t.TableView(
        title,
        columns,
        [*_rows(result)],
        "\n".join(notes(result)),
        name="factors",
        keep=("factor", "value", "percentile", "named"),
    )
    if not result.neighbours:
        return [factors]
    others = (t.text("name", "Job"), t.percent("share_pct", "Share"), t.text("share_of", "Of the"))
    lines = [t.row_of(line, others, {"share_of": share_words(line)}) for line in result.neighbours]
    return [factors, t.TableView("Others in its time", others, lines, name="neighbours")]


def _rows(result: RunExplanation) -> Iterator[Row]:
    for kind, lines in (("own", result.own), ("system", result.system)):
        for line in lines:
            label, value = LABELS[line.factor], line.value
            if isinstance(value, str):
                label, value = f"{label}: {value}", None
            elif line.target is not None:
                label = f"{label}: {visible(line.target)}"
            yield kind, label, value, line.percentile, line.rho, line.p_holm, "yes" if line.named else ""


# Figures of an explained run ------------------------------------------------------------------------------------------
# Its time over the load of its targets, and each factor over the history.

FIGURES: Final = ("timeline", "factors")
NO_LOAD: Final = "the load of its targets is not known"
NO_HISTORY: Final = "no like runs"

LEAST_SPREAD: Final = 0.01  # of the largest value: what differs by less is not drawn


def figures(result: RunExplanation) -> dict[str, Callable[[], Figure]]:
    """By name."""
    return {"timeline": lambda: timeline(result), "factors": lambda: factors(result)}


def timeline(result: RunExplanation) -> Figure:
    """FSU of the run's targets with the share of others, above what the run moved."""
    title = f"{who_words(result)}: its I/O and the load of its targets"
    return Figure("timeline", title, (_load_panel(result), _activity_panel(result)), linked_x=True)


def factors(result: RunExplanation) -> Figure:
    """A panel for performance and each factor that varies: the history in the order of time, its quartiles, the run."""
    title = f"{who_words(result)}: the run among like runs"
    series = result.series
    shown = {} if series is None else _varying(result, series)
    if series is None or not shown:
        return Figure("factors", title, (Panel("", Axis("start of the run", "time"), Axis(""), message=NO_HISTORY),))
    is_run = series.is_run.astype(bool)
    panels = [_factor_panel(label, series.start_us, values, is_run) for label, values in shown.items()]
    last = [replace(panel, x=Axis("start of the run", "time")) for panel in panels[-1:]]
    return Figure("factors", title, (*panels[:-1], *last), linked_x=True)


def _varying(result: RunExplanation, series: HistorySeries) -> dict[str, Floats]:
    """Performance and factors that are known of the run and differ among runs, by their labels."""
    columns = {f"performance ({result.performance.unit})": series.performance}
    columns |= {LABELS[name]: values for name, values in series.factors.items() if name != "strategy"}
    is_run = series.is_run.astype(bool)
    return {label: values for label, values in columns.items() if _varies(values, is_run)}


def _varies(values: Floats, is_run: Booleans) -> bool:
    known = values[np.isfinite(values)]
    if not np.isfinite(values[is_run]).any():
        return False
    return bool(known.max() - known.min() > LEAST_SPREAD * np.abs(known).max())


def _factor_panel(label: str, start_us: Integers, values: Floats, is_run: Booleans) -> Panel:
    x = start_us.astype(float)
    others = values[~is_run & np.isfinite(values)]
    marks: list[Mark] = []
    if others.size:
        low, high = np.percentile(others, [25, 75])
        ends = np.array([x.min(), x.max()])
        marks.append(BandMark(ends, np.full(2, low), np.full(2, high), "middle half of like runs", STEADY))
    marks.append(PointsMark(x[~is_run], values[~is_run], "like runs", WRITE))
    marks.append(PointsMark(x[is_run], values[is_run], "this run", READ, weight=2.5))
    return Panel(label, Axis("", "time"), Axis(_unit(label)), tuple(marks), height=0.5)


def _unit(label: str) -> str:
    """What stands in brackets; the rest is the panel's title."""
    return label.partition("(")[2].removesuffix(")")


def _load_panel(result: RunExplanation) -> Panel:
    load = result.load
    y = Axis("FSU (%)", low=0.0)
    if load is None or not np.isfinite(load.fsu_pct).any():
        return Panel("load of its targets", _window(result), y, message=NO_LOAD)
    x = np.repeat(load.step_us, 2)[1:-1].astype(float)
    others, everyone = (np.repeat(values, 2) for values in (load.others_pct, load.fsu_pct))
    marks: list[Mark] = [LineMark(x, everyone, "all", FSU)]
    if np.isfinite(others).any():
        marks.insert(0, BandMark(x, np.zeros(len(x)), others, "others", OTHERS))
    return Panel("load of its targets", _window(result), y, tuple(marks))


def _activity_panel(result: RunExplanation) -> Panel:
    load = result.load
    if load is None or not load.bytes_per_s.any():
        return Panel("the run", _window(result), Axis("bytes/s"), message="no activity of the run is known")
    scale, unit = bytes_unit(float(load.bytes_per_s.max()))
    x = np.repeat(load.activity_us, 2)[1:-1].astype(float)
    line = LineMark(x, np.repeat(load.bytes_per_s / scale, 2), "read and written", WRITE)
    return Panel("the run", _window(result), Axis(f"{unit}/s, all ranks", low=0.0), (line,), height=0.7)


def _window(result: RunExplanation) -> Axis:
    low, high = (float(epoch_us(time)) for time in (result.window_start, result.window_end))
    return Axis("time", "time", low, high)
